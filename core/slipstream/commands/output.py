"""What can be printed where."""

from __future__ import annotations

import codecs
import json
import sys
from typing import Any, TextIO


def can_say_everything(stream: TextIO) -> bool:
    """Whether every character can be written to it."""
    try:
        return codecs.lookup(stream.encoding or "ascii").name.startswith("utf")
    except LookupError:
        return False


def print_json(data: Any) -> None:  # Any: a JSON document
    """One line on stdout that stays valid JSON whatever the terminal can show."""
    print(json.dumps(data, ensure_ascii=not can_say_everything(sys.stdout)))
