"""The branches of a chat: which messages are shown, and which stand beside them."""

from __future__ import annotations

from collections.abc import Iterable

from slipstream_app.messages import Message


class Tree:
    """Messages by id, and the branch that ends in `leaf`."""

    def __init__(self, messages: Iterable[Message] = (), leaf: int | None = None) -> None:
        self._messages: dict[int, Message] = {}
        self._children: dict[int | None, list[int]] = {}
        for message in messages:
            self._insert(message)
        self.leaf = leaf if leaf in self._messages else self._newest_under(None)

    def _insert(self, message: Message) -> None:
        if message.id not in self._messages:
            self._children.setdefault(message.parent, []).append(message.id)
        self._messages[message.id] = message

    def add(self, message: Message) -> None:
        """A new message, or a new state of one. A new one becomes the leaf."""
        is_new = message.id not in self._messages
        self._insert(message)
        if is_new:
            self.leaf = message.id

    def __getitem__(self, message: int) -> Message:
        return self._messages[message]

    def __contains__(self, message: int) -> bool:
        return message in self._messages

    def path(self, leaf: int | None = None, *, begin: int | None = None) -> list[Message]:
        """From the first message, or from `begin` where that is on the way, to `leaf`, or to the one that is shown."""
        out: list[Message] = []
        at = self.leaf if leaf is None else leaf
        while at is not None:
            message = self._messages[at]
            out.append(message)
            at = message.parent if message.id != begin else None
        return out[::-1]

    def siblings(self, message: int) -> list[int]:
        """Every message in its place, oldest first, itself included."""
        return self._children[self._messages[message].parent]

    def place(self, message: int) -> tuple[int, int]:
        """Its number among its siblings, from 1, and how many there are."""
        siblings = self.siblings(message)
        return siblings.index(message) + 1, len(siblings)

    def walk(self, message: int, step: int) -> bool:
        """Show the sibling `step` places on, with what was last said under it. False when there is none."""
        siblings = self.siblings(message)
        at = siblings.index(message) + step
        if not 0 <= at < len(siblings):
            return False
        self.leaf = self._newest_under(siblings[at])
        return True

    def _newest_under(self, message: int | None) -> int | None:
        while children := self._children.get(message):
            message = children[-1]
        return message
