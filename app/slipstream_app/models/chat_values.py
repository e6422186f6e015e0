"""What a chat has of its own, kept with it: its parameters, what is no longer sent, whether thoughts are open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipstream_app.bridge.session import Session
from slipstream_app.history import History
from slipstream_app.messages import Json
from slipstream_app.models.chat_parameters import Parameters


class ChatValues:
    """Of the chat that is open. Those of a new one are kept once it is stored."""

    def __init__(self, session: Session, history: History, base: Callable[[], Parameters]) -> None:
        """`base`: what new chats have where neither the model's own defaults nor the chat say otherwise."""
        self._session = session
        self._history = history
        self._base = base
        self.chat: int | None = None
        self.stored: dict[str, Any] = {}  # Any: JSON

    def open(self, chat: int | None, stored: Json) -> None:
        self.chat, self.stored = chat, dict(stored)

    def keep(self, name: str, value: object) -> None:
        self.stored[name] = value
        if self.chat is not None:
            self._history.set_parameters(self.chat, self.stored)

    @property
    def defaults(self) -> Parameters:
        """Of the loaded model, as the user saved them."""
        info = self._session.info
        base = self._base()
        return base if info is None else base.with_json(self._history.model_defaults(info.name))

    @property
    def parameters(self) -> Parameters:
        return self.defaults.with_json(self.stored.get("parameters", {}))

    def set_parameters(self, parameters: Parameters) -> None:
        self.keep("parameters", parameters.changed(self.defaults))

    def save_defaults(self) -> bool:
        """False when no model is loaded."""
        info = self._session.info
        if info is None:
            return False
        self._history.set_model_defaults(info.name, self.parameters.changed(self._base()))
        self.keep("parameters", {})
        return True

    @property
    def first_sent(self) -> int | None:
        """The message from which on the model is given them, where earlier ones were dropped."""
        return self.stored.get("from")

    @property
    def open_thoughts(self) -> bool:
        """Whether thoughts are shown unfolded."""
        return bool(self.stored.get("open_thoughts", False))

    def set_open_thoughts(self, is_open: bool) -> None:
        self.keep("open_thoughts", is_open)
