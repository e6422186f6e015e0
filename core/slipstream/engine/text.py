"""Token ids to text as they come, never half a character."""

from __future__ import annotations

from collections.abc import Callable, Sequence

REPLACEMENT = "\ufffd"  # what a decoder writes for bytes that are not (yet) a character
MAX_HELD = 8  # tokens held back at most; a character has four bytes, so waiting longer would not mend it


class Detokeniser:
    """Decodes a growing sequence in pieces. Joined, the pieces are the text of the whole.

    Tokens are decoded together with the piece before them, because many tokenisers drop a leading space or join
    marks by looking back.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._ids: list[int] = []
        self._before = 0  # ids[before:read] are out already and decoded again for the sake of what follows
        self._read = 0
        self._known = ""  # the text of ids[before:read]
        self._given = 0  # characters of ids[read:] that are out

    def feed(self, ids: Sequence[int]) -> str:
        """The text that is now certain. The same in sum, in whatever pieces the ids come."""
        if len(self._ids) - self._read + len(ids) <= MAX_HELD:
            self._ids.extend(ids)
            text = self._tail()
            if not text.endswith(REPLACEMENT):
                return self._release(text)
            del self._ids[len(self._ids) - len(ids) :]
        # What is whole is let go one by one, so that a half character behind it can be held for its full time.
        return "".join(self._add(token) for token in ids)

    def _add(self, token: int) -> str:
        self._ids.append(token)
        text = self._tail()
        certain = text.rstrip(REPLACEMENT)
        if certain == text:
            return self._release(text)
        if len(self._ids) - self._read <= MAX_HELD:
            new = certain[self._given :]
            self._given += len(new)
            return new
        new = self._release(text)
        # What mends the last of these bytes must not take them back.
        self._before, self._known = self._read, ""
        return new

    def _release(self, tail: str) -> str:
        new = tail[self._given :]
        self._before, self._read, self._given = self._read, len(self._ids), 0
        self._known = self._decode(self._ids[self._before : self._read])
        return new

    def finish(self) -> str:
        """What was held back, as the decoder writes it."""
        return self._tail()[self._given :]

    def _tail(self) -> str:
        """The text of ids[read:]."""
        return self._decode(self._ids[self._before :])[len(self._known) :]
