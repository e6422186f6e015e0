"""The exact text of tool calls by their ids, so that the next prompt says what the model wrote, also after a restart.

Lines of JSON, appended; the latest are read at the start. A line that a crash cut short is skipped.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slipstream.prompt.parts import ToolCall
from slipstream.store.atomic import write_text

logger = logging.getLogger(__name__)

KEPT = 2048
KEPT_SIZE = 2**21  # characters and tokens of all calls together: some 50 MB of memory at most
LONGEST = 2**18  # characters and tokens of a call that is worth a line
REWRITE_BYTES = 2**24


class KeptCalls:
    """From any thread. `path`: None to forget with the process."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._calls: OrderedDict[str, ToolCall] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()
        if path is not None:
            try:
                self._load(path)
            except OSError as error:
                self._give_up(error)

    def remember(self, call: ToolCall) -> None:
        with self._lock:
            self._add(call)
            if self._path is None or _size(call) > LONGEST:
                return
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(_line(call))
            except OSError as error:
                self._give_up(error)

    def recall(self, call_id: str) -> ToolCall | None:
        with self._lock:
            return self._calls.get(call_id)

    def clear(self) -> None:
        with self._lock:
            self._calls.clear()
            self._size = 0
            if self._path is not None:
                self._path.unlink(missing_ok=True)

    def _add(self, call: ToolCall) -> None:
        if (before := self._calls.pop(call.id, None)) is not None:
            self._size -= _size(before)
        self._calls[call.id] = call
        self._size += _size(call)
        while len(self._calls) > KEPT or (self._size > KEPT_SIZE and len(self._calls) > 1):
            _, oldest = self._calls.popitem(last=False)
            self._size -= _size(oldest)

    def _load(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            path.touch(0o600)
            return
        for call in _read(path):
            self._add(call)
        size = path.stat().st_size
        if size > REWRITE_BYTES:
            write_text(path, "".join(_line(call) for call in self._calls.values()), 0o600)
        elif size:
            with path.open("rb+") as file:
                file.seek(-1, 2)
                if file.read(1) != b"\n":  # what was cut short must not spoil the next line
                    file.write(b"\n")

    def _give_up(self, error: OSError) -> None:
        logger.warning("tool calls are kept in memory alone (%s)", error)
        self._path = None


def _size(call: ToolCall) -> int:
    return len(call.raw) + len(call.arguments_json) + len(call.answer)


def _line(call: ToolCall) -> str:
    return json.dumps(asdict(call)) + "\n"


def _read(path: Path) -> Iterator[ToolCall]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                told: dict[str, Any] = json.loads(line)  # Any: the file may say anything
                answer = tuple(told.pop("answer", ()))
                call = ToolCall(**told, answer=answer)
            except (ValueError, TypeError, AttributeError):
                continue
            texts = [value for name, value in asdict(call).items() if name != "answer"]
            if all(isinstance(text, str) for text in texts) and all(type(id_) is int for id_ in call.answer):
                yield call
