"""The Chat screen: the list of chats, the transcript, the composer, the parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from PySide6.QtCore import QDateTime, QLocale, Qt, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QVBoxLayout, QWidget

from slipstream.errors import SlipstreamError
from slipstream.events import Status
from slipstream_app.bridge.pair import BUILT_IN
from slipstream_app.history import Problem
from slipstream_app.messages import Hit, title_of
from slipstream_app.models import chat_defaults
from slipstream_app.models.chat import Chats
from slipstream_app.models.chat_defaults import ChatDefaults
from slipstream_app.models.chat_list import ChatList
from slipstream_app.models.chat_mode import ChatMode
from slipstream_app.models.chat_prompt import Prompter
from slipstream_app.screens.base import AppContext, Entry, Screen
from slipstream_app.screens.chat_asks import MessageAsks
from slipstream_app.screens.chat_exchange import ChatExchange
from slipstream_app.screens.chat_length import ChatLength
from slipstream_app.screens.chat_why import WhySpeed
from slipstream_app.screens.conversation import Conversation
from slipstream_app.widgets.banner import Banner, Kind
from slipstream_app.widgets.chat_bars import OfferBar
from slipstream_app.widgets.chat_drawers import ChatDrawers
from slipstream_app.widgets.composer import Composer
from slipstream_app.widgets.sessions_list import SessionsList
from slipstream_app.widgets.text_column import TextColumn

LIST_WIDTH = 220
NARROW = 760  # below, the list of chats is hidden while the drawer is open


class ChatScreen(Screen):
    NAME: ClassVar[str] = "chat"

    def __init__(self, app: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(app, parent)
        theme = app.theme
        self.prompter = Prompter(parent=self)
        self.defaults = ChatDefaults(app.session, app.settings, app.speedups)
        self.chats = Chats(
            app.session, app.history, self.prompter, self, base=self.defaults.parameters, titled=self._titled
        )
        self._mode = ChatMode(self.chats, app.drafting, self)
        self.list_model = ChatList(app.history, self)
        # Made where they stay: a widget that moves is styled anew, with all that is in it.
        self.splitter = QSplitter(Qt.Orientation.Horizontal, self)
        self.list = SessionsList(theme, self.list_model, self.splitter)
        self._centre = QWidget(self.splitter)
        self.conversation = Conversation(theme, self.chats, app.session, app.settings, self._centre)
        self.transcript, self.find_bar = self.conversation.transcript, self.conversation.find_bar
        self.start = self.conversation.start
        self.composer = Composer(theme)
        self.drawers = ChatDrawers(theme, app.bus, app.telemetry)
        self._is_closed = False
        self.why = WhySpeed(theme, app.session, app.history, self.prompter, self)
        self.length = ChatLength(app.session, self.chats, self.composer, self)
        self.asks = MessageAsks(self.chats, self.transcript, self.composer, self.why, self)
        self.exchange = ChatExchange(app.history, app.banners, self)
        self._lay_out()
        self._connect()
        self._on_status(app.session.status)
        self._on_setting("chat/return_sends")
        self._open_last()
        self._say_problem()
        self.chats.expire(app.settings.number("chat/keep_days"))

    # Its parts.

    def _lay_out(self) -> None:
        theme = self.app.theme
        self.undo_bar = OfferBar(theme, "card", self.tr("Undo"), is_primary=True)
        column = QVBoxLayout(self._centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.conversation, 1)
        foot = TextColumn(theme)
        foot.body.addWidget(self.undo_bar)
        foot.body.addWidget(self.composer)
        column.addWidget(foot)
        self.splitter.setHandleWidth(1)
        self.splitter.setStretchFactor(1, 1)
        self.splitter.setCollapsible(1, False)
        self._zoom = theme.zoom
        self._widen_list()
        theme.resized.connect(self._widen_list)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.splitter, 1)
        row.addWidget(self.drawers)

    def _connect(self) -> None:
        app, chats = self.app, self.chats
        self.undo_bar.accepted.connect(chats.undo_delete)
        app.bus.status_changed.connect(self._on_status)
        app.settings.changed.connect(self._on_setting)
        chats.opened.connect(self._on_opened)
        chats.path_changed.connect(self._refresh)
        chats.reply_began.connect(self._on_reply_began)
        chats.reply_ended.connect(self._refresh)
        chats.list_changed.connect(self._on_list)
        chats.parameters_changed.connect(self._on_parameters)
        chats.refused.connect(self._on_refused)
        chats.verified.connect(self._on_verified)
        chats.deleted.connect(self._on_deleted)
        chats.delete_settled.connect(self.undo_bar.hide)
        self.why.refused.connect(self.composer.say)
        self.exchange.refused.connect(self.composer.say)
        self.exchange.imported.connect(self._on_imported)
        self.transcript.asked.connect(self.asks.do)
        self.start.prompt_chosen.connect(self.composer.set_text)
        self.start.load_asked.connect(self._on_load)
        self.start.models_asked.connect(self._on_models)
        self._connect_composer()

    def _connect_composer(self) -> None:
        chats, composer = self.chats, self.composer
        composer.submitted.connect(self.submit)
        composer.stop_asked.connect(chats.stop)
        composer.edit_last_asked.connect(self.asks.edit_last)
        composer.edit_cancelled.connect(self.asks.cancel_edit)
        composer.parameters_asked.connect(self.drawers.toggle_parameters)
        self.drawers.changed.connect(chats.set_parameters)
        self.drawers.save_asked.connect(chats.save_defaults)
        self.drawers.toggled.connect(self._on_drawers)
        self.drawers.telemetry_asked.connect(self._on_all_telemetry)
        self.list.new_asked.connect(self.new_chat)
        self.list.chosen.connect(self.open_chat)
        self.list.renamed.connect(chats.rename)
        self.list.delete_asked.connect(chats.delete)
        self.list.export_asked.connect(self.exchange.export)

    # As a screen.

    @property
    def title(self) -> str:
        return self.chats.title or self.tr("New chat")

    def commands(self) -> Mapping[str, Callable[[], object]]:
        path = self.chats.path
        is_running = self.chats.reply is not None
        can_ask = self.app.session.info is not None and not is_running
        answers = [message for message in path if message.role == "assistant"]
        found: dict[str, Callable[[], object]] = {
            "chat.new": self.new_chat,
            "chat.import": self.exchange.choose,
            "chat.search_all": self.list.focus_search,
            "chat.parameters": self.drawers.toggle_parameters,
            "chat.telemetry": self.drawers.toggle_telemetry,
        }
        if self.chats.chat is not None:
            found |= {"chat.export": self.export_current, "chat.delete": self.delete_current}
            found |= {"chat.find": self.find_bar.open, "chat.find_next": self.conversation.find_next}
        if is_running:
            found["chat.stop"] = self.chats.stop
        if answers:
            found["chat.copy_last"] = self.asks.copy_last
            found["chat.previous_branch"] = lambda: self.asks.walk_last(-1)
            found["chat.next_branch"] = lambda: self.asks.walk_last(1)
        if can_ask and answers:
            found["chat.regenerate"] = self.asks.regenerate_last
        return found

    def visited(self, argument: object) -> None:
        if isinstance(argument, Mapping):
            chat, message = argument.get("chat"), argument.get("message")
            if isinstance(chat, int):
                self.open_chat(chat, message)
            prompt = argument.get("prompt")
            if isinstance(prompt, str):
                self.new_chat()
                self.composer.set_text(prompt)
        self.composer.input.setFocus()

    def entries(self, words: str) -> Sequence[Entry]:
        hits = self.app.history.search(words, limit=8) if words.strip() else []
        return [Entry(hit.title, self._opener(hit), hit.snippet, is_match=True) for hit in hits]

    def _opener(self, hit: Hit) -> Callable[[], None]:
        return lambda: self.app.navigator.go("chat", {"chat": hit.chat, "message": hit.message})

    def closing(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.app.bus.status_changed.disconnect(
            self._on_status
        )  # the history will be closed before the engine has ended
        self._mode.close()
        self.drawers.flush()
        self.chats.stop_all()
        self.prompter.close()

    # What is shown.

    def _open_last(self) -> None:
        """The chat that was open when the app ended, however it ended."""
        last = str(self.app.settings.recall("chat", "") or "")
        if not (last.isdigit() and self.chats.open(int(last))):
            self._on_opened()

    @Slot()
    def _on_opened(self) -> None:
        self._remember_chat()
        self.asks.cancel_edit()
        self.length.forget()
        self.list.show_current(self.chats.chat)
        self._refresh()

    @Slot()
    def _refresh(self, *_: object) -> None:
        self.composer.set_running(self.chats.reply is not None)
        self.composer.set_may_send(self.app.session.info is not None)
        self.commands_changed.emit()

    @Slot(object)
    def _on_status(self, status: Status) -> None:
        choice = self.app.session.choice or BUILT_IN
        self.start.show_status(status, choice.title)
        self.drawers.show_model(self.app.session.info)
        self.composer.set_may_send(self.app.session.info is not None)
        if self._had_model != (self.app.session.info is not None):
            self._had_model = self.app.session.info is not None
            self._on_parameters()
            self.conversation.show_path()
            self._refresh()
            self.length.look()

    _had_model = False

    @Slot()
    def _on_load(self) -> None:
        if self.app.session.choice is None:
            self.app.session.load(BUILT_IN)
        else:
            self.app.session.reload()

    @Slot()
    def _on_models(self) -> None:
        self.app.navigator.go("models")

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        match key:
            case "chat/return_sends":
                self.composer.set_return_sends(self.app.settings.flag(key))
            case "general/detail":
                self.conversation.show_path()
            case _ if key in chat_defaults.KEYS:
                self._on_parameters()
            case _:
                pass

    def _say_problem(self) -> None:
        sentences = {
            Problem.DAMAGED: self.tr("The chats could not be read. They were put aside, and a new list was begun."),
            Problem.NEWER: self.tr(
                "The chats were written by a newer version. Update Slipstream; until then nothing is kept."
            ),
            Problem.UNWRITABLE: self.tr("Chats cannot be saved in their folder. Check its rights and free space."),
        }
        if (problem := self.app.history.problem) is not None:
            self.app.banners.show(Banner("history", Kind.WARNING, sentences[problem]))

    # Answers.

    @Slot()
    def submit(self) -> None:
        self.drawers.flush()
        text, attachments = self.composer.text, self.composer.attachments
        if self.asks.editing is not None:
            is_sent = self.chats.edit(self.asks.editing, text)
        else:
            is_sent = self.chats.send(text, attachments)
        if is_sent:
            self.asks.editing = None
            self.composer.set_editing(False)
            self.composer.clear()
            self.transcript.follow()

    def _remember_chat(self) -> None:
        """Now and not at the end, which may come without a word."""
        self.app.settings.remember("chat", self.chats.chat or "")

    @Slot(int)
    def _on_reply_began(self, message: int) -> None:
        self._remember_chat()
        self.list.show_current(self.chats.chat)
        self._refresh()

    @Slot(object)
    def _on_refused(self, error: SlipstreamError) -> None:
        self.composer.say(error.message)

    @Slot(int, object)
    def _on_verified(self, message: int, outcome: object) -> None:
        if isinstance(outcome, SlipstreamError):
            self.composer.say(outcome.message)

    # Chats.

    def _titled(self, text: str) -> str:
        """What a new chat is called, as the settings have it."""
        if self.app.settings.text("chat/titles") == "date":
            return QLocale().toString(QDateTime.currentDateTime(), QLocale.FormatType.ShortFormat)
        return title_of(text)

    @Slot()
    def new_chat(self) -> None:
        self.chats.new()
        self.composer.input.setFocus()

    @Slot(int, object)
    def open_chat(self, chat: int, message: object = None) -> None:
        if chat != self.chats.chat and not self.chats.open(chat):
            return
        if isinstance(message, int):
            self.chats.show_message(message)
            self.transcript.show_message(message)

    @Slot()
    def _on_list(self) -> None:
        self.list_model.refresh()
        self.list.show_current(self.chats.chat)

    @Slot()
    def _on_parameters(self) -> None:
        self.drawers.show_parameters(self.chats.parameters, self.chats.values.defaults, self.defaults.slower())

    @Slot()
    def _on_drawers(self) -> None:
        self.composer.parameters.setChecked(self.drawers.has_parameters)
        self._fit_list()

    @Slot()
    def _on_all_telemetry(self) -> None:
        self.app.navigator.go("telemetry")

    @Slot(int, str)
    def _on_deleted(self, chat: int, title: str) -> None:
        self.undo_bar.words.say(self.tr("Deleted “{0}”").format(title))
        self.undo_bar.show()

    def delete_current(self) -> None:
        if self.chats.chat is not None:
            self.chats.delete(self.chats.chat)

    def export_current(self) -> None:
        if self.chats.chat is not None:
            self.exchange.export(self.chats.chat)

    @Slot(int)
    def _on_imported(self, chat: int) -> None:
        self._on_list()
        self.chats.open(chat)

    # Keys and sizes.

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            if not self.find_bar.isHidden():
                self.find_bar.hide()
            elif self.asks.editing is not None:
                self.asks.cancel_edit()
            else:
                self.chats.stop()
            return
        super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_list()

    @Slot()
    def _widen_list(self) -> None:
        """It grows with the text, from its own width or from the one that it was given."""
        theme = self.app.theme
        wide = self.splitter.sizes()[0] * theme.zoom // self._zoom if self.splitter.isVisible() else 0
        self._zoom = theme.zoom
        self.splitter.setSizes([wide or theme.px(LIST_WIDTH), max(1, self.splitter.width() - wide) if wide else 2000])

    def _fit_list(self) -> None:
        is_narrow = self.width() < self.app.theme.px(NARROW + LIST_WIDTH)
        self.list.setVisible(not (is_narrow and not self.drawers.isHidden()))
