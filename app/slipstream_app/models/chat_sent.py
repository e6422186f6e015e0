"""Which turns of a chat the model is given: all of a branch, or from where earlier ones were dropped."""

from __future__ import annotations

from collections.abc import Callable, Collection

from slipstream_app.messages import Message
from slipstream_app.models.chat_tree import Tree
from slipstream_app.models.chat_values import ChatValues


class SentTurns:
    def __init__(self, tree: Callable[[], Tree], values: ChatValues) -> None:
        """`tree`: of the chat that is open."""
        self._tree = tree
        self._values = values

    def begin(self, leaf: int | None = None) -> int | None:
        """The first message that is sent, where earlier ones of this branch were dropped."""
        begin = self._values.first_sent
        return begin if any(message.id == begin for message in self._tree().path(leaf)) else None

    def up_to(self, leaf: int | None = None) -> list[Message]:
        """Of the branch that ends there; of the one that is shown."""
        tree = self._tree()
        return tree.path(leaf, begin=self.begin(leaf)) if tree.leaf is not None else []

    def before(self, message: Message) -> list[Message]:
        """What an answer was given."""
        return self._tree().path(message.parent, begin=message.facts.get("from")) if message.parent else []

    def begin_without(self, dropped: Collection[int]) -> int | None:
        """The first message that is still sent when these are not."""
        return next((message.id for message in self.up_to() if message.id not in dropped), None)
