"""Reading named server-sent events."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]


def read_events(text: str) -> list[Json]:
    """The data of each event, which must be named as its type says. Comments are left out."""
    found: list[Json] = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        assert [line.split(": ")[0] for line in lines] == ["event", "data"], block
        data = json.loads(lines[1].removeprefix("data: "))
        assert lines[0] == f"event: {data['type']}"
        found.append(data)
    return found


def types(events: list[Json], *without: str) -> list[str]:
    """The types in order, repeated ones once."""
    named = [event["type"] for event in events if event["type"] not in without]
    return [kind for at, kind in enumerate(named) if at == 0 or named[at - 1] != kind]
