"""What is asked of a message: edit, regenerate, branch, verify, go on, and the same of the last one by key."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication

from slipstream_app.messages import Message
from slipstream_app.models.chat import Chats
from slipstream_app.screens.chat_why import WhySpeed
from slipstream_app.widgets.composer import Composer
from slipstream_app.widgets.shown import Again, Ask
from slipstream_app.widgets.transcript import Transcript


class MessageAsks(QObject):
    def __init__(
        self, chats: Chats, transcript: Transcript, composer: Composer, why: WhySpeed, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._chats = chats
        self._transcript = transcript
        self._composer = composer
        self._why = why
        self.editing: int | None = None  # a message, whose text stands in the composer

    @Slot(str, int, object)
    def do(self, what: str, message: int, argument: object) -> None:
        chats = self._chats
        plain: dict[str, Callable[[int], object]] = {
            Ask.EDIT: self._edit,
            Ask.BRANCH: chats.branch,
            Ask.WHY: lambda message: self._why.show(chats.tree[message]),
            Ask.VERIFY: self._verify,
            Ask.CANCEL_VERIFY: chats.cancel_verify,
            Ask.RESUME: self._resume,
            Ask.STOP: lambda _: chats.stop(),
        }
        match what, argument:
            case _ if what in plain:
                plain[what](message)
            case Ask.REGENERATE, Again(mode, same_seed):
                chats.regenerate(message, mode=mode, same_seed=same_seed)
                self._transcript.follow()
            case Ask.WALK, int(step):
                chats.walk(message, step)
            case Ask.RESULT, (str(call_id), str(text)):
                chats.add_result(message, call_id, text)
            case Ask.THOUGHTS, bool(is_open):
                chats.values.set_open_thoughts(is_open)
            case _:
                raise AssertionError(what)

    def _verify(self, message: int) -> None:
        if not self._chats.verify(message):
            self._composer.say(self.tr("This answer's tokens were not kept, so it cannot be checked."))

    def _resume(self, message: int) -> None:
        self._chats.resume(message)
        self._transcript.follow()

    def _edit(self, message: int) -> None:
        self.editing = message
        self._composer.set_editing(True)
        self._composer.set_text(self._chats.tree[message].text)

    @Slot()
    def cancel_edit(self) -> None:
        if self.editing is not None:
            self.editing = None
            self._composer.set_editing(False)
            self._composer.clear()

    @Slot()
    def edit_last(self) -> None:
        questions = [message for message in self._chats.path if message.role == "user"]
        if questions and self._chats.reply is None:
            self._edit(questions[-1].id)

    def last_answer(self) -> Message | None:
        return next((message for message in reversed(self._chats.path) if message.role == "assistant"), None)

    def regenerate_last(self) -> None:
        if (answer := self.last_answer()) is not None:
            self._chats.regenerate(answer.id)
            self._transcript.follow()

    def copy_last(self) -> None:
        if (answer := self.last_answer()) is not None:
            QGuiApplication.clipboard().setText(answer.text)

    def walk_last(self, step: int) -> None:
        """At the last message that has siblings."""
        for message in reversed(self._chats.path):
            if self._chats.tree.place(message.id)[1] > 1:
                self._chats.walk(message.id, step)
                return
