"""The loop of a benchmark worker: one JSON object a line in, one a line out.

Standard library only: a worker runs in an environment that may hold nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any, TypedDict

Handler = Callable[..., Any]  # Any: a JSON value in each keyword, and one out


class Generated(TypedDict):
    """One answer. Both times are on one monotonic clock; what `rounds` counts comes after the first token."""

    ids: list[int]
    first_token_s: float
    last_token_s: float
    rounds: int  # target forwards
    widths: dict[str, int]  # rows of a forward -> rounds with so many; empty where the program does not say
    network_rounds: int  # rounds drafted by a network


class Stopwatch:
    """When the first and the newest tokens came."""

    def __init__(self) -> None:
        self.first_s = 0.0
        self.last_s = 0.0

    def mark(self) -> None:
        self.last_s = time.perf_counter()
        self.first_s = self.first_s or self.last_s


def answer(
    ids: Sequence[int],
    watch: Stopwatch,
    rounds: int,
    widths: Mapping[int, int] | None = None,
    network_rounds: int = 0,
) -> Generated:
    return {
        "ids": list(ids),
        "first_token_s": watch.first_s,
        "last_token_s": watch.last_s,
        "rounds": rounds,
        "widths": {str(width): count for width, count in sorted((widths or {}).items())},
        "network_rounds": network_rounds,
    }


def versions(*packages: str) -> dict[str, str]:
    """Of those that are installed here."""
    out = {"python": ".".join(str(part) for part in sys.version_info[:3])}
    for package in packages:
        try:
            out[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return out


def serve(open_worker: Callable[[], tuple[dict[str, Any], Mapping[str, Handler]]]) -> None:
    """Load, say {"ok": info}, then answer {"do": name, ...} lines until the input ends.

    An error becomes {"error": sentence}; its traceback goes to stderr.
    """
    # Libraries print as they like; only replies may reach the pipe.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(make: Callable[[], Any]) -> bool:
        try:
            said = {"ok": make()}
        except Exception as error:  # whatever a program under test trips over is a result, not our end
            traceback.print_exc()
            said = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(said) + "\n")
        replies.flush()
        return "ok" in said

    handlers: Mapping[str, Handler] = {}

    def start() -> dict[str, Any]:
        nonlocal handlers
        began = time.perf_counter()
        info, handlers = open_worker()
        return info | {"load_s": round(time.perf_counter() - began, 1)}

    if not reply(start):
        return
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        handler = handlers[request.pop("do")]
        reply(lambda handler=handler, request=request: handler(**request))
