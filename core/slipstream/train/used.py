"""Conversations from the user's own use: answers that `generate --json` wrote. Only what the user names is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slipstream.errors import InvalidRequest, reason
from slipstream.train.corpus import Conversation

KIND = "used"


def read_answers(paths: Sequence[Path], vocabulary: int) -> list[Conversation]:
    """From files with one answer each, or one a line, and from folders of such files.

    Raises InvalidRequest, naming the file that holds something else.
    """
    files = [file for path in paths for file in (sorted(path.glob("*.json*")) if path.is_dir() else [path])]
    found: list[Conversation] = []
    for file in files:
        try:
            text = file.read_text("utf-8")
            found += [_conversation(entry, vocabulary) for entry in _entries(text)]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidRequest(f"{file} is no answer of generate --json ({reason(error)}); leave it out") from error
    return [one for one in dict.fromkeys(found) if one.answered >= 2]


def mark(answers: Sequence[Conversation]) -> str:
    """A name for just these answers, for the folder of the run that learns from them."""
    digest = hashlib.sha256()
    for one in answers:
        digest.update(repr((one.ids, one.start)).encode())
    return digest.hexdigest()[:12]


def _entries(text: str) -> list[dict[str, Any]]:
    """A whole object, or one a line. Any: JSON."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.split("\n") if line.strip()]


def _conversation(entry: dict[str, Any], vocabulary: int) -> Conversation:
    prompt, answer = (tuple(int(token) for token in entry[name]) for name in ("prompt_ids", "token_ids"))
    if not prompt or not all(0 <= token < vocabulary for token in prompt + answer):
        raise ValueError("its tokens are another model's")
    return Conversation((*prompt, *answer), len(prompt), KIND, float(entry["options"]["temperature"]))
