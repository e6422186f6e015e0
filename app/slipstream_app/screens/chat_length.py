"""How long what would be sent is, beside the composer; and dropping the oldest turns when it is too long."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from slipstream_app.bridge.session import Session
from slipstream_app.models.chat import Chats
from slipstream_app.models.chat_prompt import Shortened
from slipstream_app.numbers import count_text
from slipstream_app.widgets.composer import Composer
from slipstream_app.widgets.drop_turns import DropTurns


class ChatLength(QObject):
    def __init__(self, session: Session, chats: Chats, composer: Composer, window: QWidget) -> None:
        """`window`: over which the turns to drop are shown."""
        super().__init__(window)
        self._session = session
        self._chats = chats
        self._composer = composer
        self._window = window
        composer.edited.connect(self.look)
        composer.drop_turns_asked.connect(chats.preview_drop)
        chats.counted.connect(composer.set_count)
        chats.shortened.connect(self._on_shortened)

    @Slot()
    def look(self) -> None:
        """Something is different now: count anew, soon."""
        self._chats.count(self._chats.draft(self._composer.text, self._composer.attachments))

    def forget(self) -> None:
        """The count was another chat's."""
        self._composer.set_count(None)

    @Slot(object)
    def _on_shortened(self, shortened: Shortened) -> None:
        info = self._session.info
        if not shortened.dropped or info is None or shortened.tokens >= info.context:
            words = self.tr("The last message alone has {0} tokens; shorten it.")
            self._composer.say(words.format(count_text(shortened.tokens)))
            return
        box = DropTurns([self._chats.tree[one] for one in shortened.dropped], shortened.tokens, self._window)
        box.agreed.connect(lambda: self._chats.drop(shortened))
        box.open()
