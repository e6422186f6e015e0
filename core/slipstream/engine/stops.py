"""Where an answer ends: end tokens and stop strings, also across token borders."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Holds back text that may be the beginning of a stop string, and cuts before the first whole one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.matched: str | None = None

    @property
    def has_any(self) -> bool:
        return bool(self._stops)

    def feed(self, text: str) -> str:
        """The text that is safe to show. After a match (`matched` is set) nothing more comes."""
        if self.matched is not None or not self._stops:
            return "" if self.matched is not None else text
        text = self._held + text
        # The one that ends first wins, the longest of those: so it does not matter in which pieces the text came.
        found = [(text.find(stop) + len(stop), text.find(stop), stop) for stop in self._stops if stop in text]
        if found:
            _, at, self.matched = min(found)
            self._held = ""
            return text[:at]
        held = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def finish(self) -> str:
        """The held tail, released when the answer ends otherwise."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """The longest end of `text` that is a beginning of `stop`."""
    for size in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0
