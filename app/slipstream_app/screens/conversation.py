"""The open chat as it is read: the transcript, what was dropped from it, finding words in it; else a start page."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from slipstream.measure.verdict import Comparison, Verdict
from slipstream_app.bridge.session import Session
from slipstream_app.messages import Message, State
from slipstream_app.models.chat import Chats
from slipstream_app.settings import Settings
from slipstream_app.theme import Theme
from slipstream_app.widgets.announcing import announce
from slipstream_app.widgets.chat_bars import FindBar, OfferBar
from slipstream_app.widgets.chat_start import ChatStart
from slipstream_app.widgets.shown import Shown
from slipstream_app.widgets.transcript import Transcript


class Conversation(QWidget):
    def __init__(
        self, theme: Theme, chats: Chats, session: Session, settings: Settings, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._chats = chats
        self._session = session
        self._settings = settings
        self.transcript = Transcript(theme)
        self.start = ChatStart(theme)
        self.find_bar = FindBar(theme)
        self.find_bar.next_asked.connect(self.find_next)
        self.dropped_bar = OfferBar(theme, "bar", self.tr("Send all again"))
        self.dropped_bar.accepted.connect(chats.send_all)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.transcript)
        self.stack.addWidget(self.start)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.find_bar)
        column.addWidget(self.dropped_bar)
        column.addWidget(self.stack, 1)
        chats.opened.connect(self.open)
        chats.path_changed.connect(self.show_path)
        chats.reply_changed.connect(self.transcript.reply_changed)
        chats.reply_ended.connect(self._on_reply_ended)
        chats.verifying.connect(self._on_verifying)
        chats.verified.connect(self._on_verified)
        self.open()

    # What is shown.

    def _all_shown(self) -> list[Shown]:
        """Every message of the branch but the tools' results, which stand in the cards of their calls."""
        path = self._chats.path
        results = {str(one.facts.get("call_id")): one.text for one in path if one.role == "tool"}
        can_ask = self._session.info is not None and self._chats.reply is None
        first_sent, open_thoughts = self._chats.first_sent, self._chats.values.open_thoughts
        is_dropped = first_sent is not None
        out: list[Shown] = []
        for message in path:
            is_dropped = is_dropped and message.id != first_sent
            if message.role == "tool":
                continue
            shown = Shown(
                message,
                self._chats.tree.place(message.id),
                results if message.calls else {},
                can_resume=can_ask and self._chats.can_resume(message),
                can_verify=bool(message.facts.get("timings", {}).get("output_tokens")),
                open_thoughts=open_thoughts,
                is_dropped=is_dropped,
                detail=self._settings.detail,
            )
            out.append(shown)
        return out

    def _shown(self, message: int) -> Shown | None:
        """None when it is not on the branch."""
        return next((shown for shown in self._all_shown() if shown.message.id == message), None)

    @Slot()
    def open(self) -> None:
        """Another chat is open."""
        self.transcript.clear()
        self.show_path()
        self.transcript.follow()
        self.find_bar.hide()

    @Slot()
    def show_path(self) -> None:
        """The branch that is shown, with what may be done now."""
        shown = self._all_shown()
        self.transcript.set_messages(shown, self._chats.reply_to)
        self.stack.setCurrentWidget(self.transcript if shown else self.start)
        dropped = sum(one.is_dropped for one in shown)
        self.dropped_bar.setVisible(dropped > 0)
        self.dropped_bar.words.say(self.tr("The first %n message(s) are no longer sent to the model.", None, dropped))

    @Slot(int)
    def _on_reply_ended(self, message: int) -> None:
        if message in self._chats.tree:
            if (shown := self._shown(message)) is not None:
                self.transcript.reply_ended(shown)
            self._announce(self._chats.tree[message])
            self.show_path()

    def _announce(self, message: Message) -> None:
        """For VoiceOver: that it is finished, not each token."""
        tokens = int(message.facts.get("timings", {}).get("output_tokens", 0))
        words = {
            State.DONE: self.tr("Reply finished, %Ln token(s)", None, tokens),
            State.STOPPED: self.tr("Reply stopped"),
        }.get(message.state, self.tr("Reply failed"))
        announce(self.transcript, words)

    # Verifying.

    @Slot(int, int, int)
    def _on_verifying(self, message: int, done: int, total: int) -> None:
        widget = self.transcript.widget_of(message)
        if widget is not None:
            widget.actions_row.set_verifying((done, total))

    @Slot(int, object)
    def _on_verified(self, message: int, outcome: object) -> None:
        if isinstance(outcome, Comparison):
            words = {
                Verdict.IDENTICAL: self.tr("Verified: identical"),
                Verdict.TIE: self.tr("Verified: a numeric tie"),
                Verdict.DIFFERENT: self.tr("Verified: different"),
            }
            announce(self.transcript, words[outcome.verdict])
        if (shown := self._shown(message)) is not None:
            self.transcript.update_message(shown)

    # Find.

    @Slot()
    def find_next(self) -> None:
        if not self.find_bar.wanted:
            self.find_bar.open()
            return
        found = self.find_bar.next_in(self._chats.path)
        if found is None:
            return
        self.transcript.show_message(found)
        widget = self.transcript.widget_of(found)
        if widget is not None:
            widget.find_text(self.find_bar.wanted)
