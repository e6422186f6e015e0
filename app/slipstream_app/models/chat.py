"""The chat that is open, and every answer being written: what the Chat screen shows and asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.types import Mode
from slipstream_app.bridge.session import Session
from slipstream_app.history import History
from slipstream_app.messages import Attachment, Message, State, title_of
from slipstream_app.models import chat_prompt
from slipstream_app.models.chat_count import TokenCount
from slipstream_app.models.chat_parameters import Parameters
from slipstream_app.models.chat_prompt import Prompter, Shortened
from slipstream_app.models.chat_replies import Replies
from slipstream_app.models.chat_reply import Reply
from slipstream_app.models.chat_sent import SentTurns
from slipstream_app.models.chat_trash import ChatTrash
from slipstream_app.models.chat_tree import Tree
from slipstream_app.models.chat_values import ChatValues
from slipstream_app.models.chat_verifications import Verifications


class Chats(QObject):
    """One chat is open; answers of others may go on meanwhile. A new chat is stored with its first message."""

    opened = Signal()  # another chat is shown
    path_changed = Signal()  # messages were added, or another branch is shown
    message_changed = Signal(int)  # its state or facts
    reply_began = Signal(int)  # message, of any chat
    reply_changed = Signal(int)
    reply_ended = Signal(int)
    list_changed = Signal()
    parameters_changed = Signal()
    counted = Signal(object)  # Count; None when it is not known
    shortened = Signal(object)  # Shortened
    refused = Signal(object)  # SlipstreamError: what was asked for cannot be done
    verifying = Signal(int, int, int)  # message, tokens done, tokens in all
    verified = Signal(int, object)  # message, Comparison or SlipstreamError or None
    deleted = Signal(int, str)  # chat, title: `undo_delete` is possible for a while
    delete_settled = Signal()

    def __init__(
        self,
        session: Session,
        history: History,
        prompter: Prompter,
        parent: QObject | None = None,
        *,
        base: Callable[[], Parameters] = Parameters,
        titled: Callable[[str], str] = title_of,
    ) -> None:
        """`base`: what new chats have where neither the model's own defaults nor the chat say otherwise.

        `titled`: what a chat that begins with a question is called; empty: as its first attachment.
        """
        super().__init__(parent)
        self._session = session
        self._history = history
        self._prompter = prompter
        self._titled = titled
        self.chat: int | None = None
        self.title = ""
        self.tree = Tree()
        self.values = ChatValues(session, history, base)
        self._sent = SentTurns(lambda: self.tree, self.values)
        self._replies = Replies(session, history, prompter, self)
        self._replies.changed.connect(self.reply_changed)
        self._replies.ended.connect(self._on_reply_ended)
        self._verifications = Verifications(session, history, prompter, self)
        self._verifications.progressed.connect(self.verifying)
        self._verifications.judged.connect(self._on_judged)
        self._verifications.ended.connect(self.verified)
        self._trash = ChatTrash(history, self.is_running, self)
        self._trash.list_changed.connect(self.list_changed)
        self._trash.settled.connect(self.delete_settled)
        self._draft: Message | None = None
        self._counting = TokenCount(session, prompter, self._would_send, self)
        self._counting.counted.connect(self.counted)
        self._counting.shortened.connect(self.shortened)
        self._counting.refused.connect(self.refused)

    # Which chat is open.

    def new(self) -> None:
        self.chat, self.title, self.tree = None, "", Tree()
        self.values.open(None, {})
        self._was_opened()

    def open(self, chat: int) -> bool:
        """False when it is gone."""
        row = self._history.chat(chat)
        if row is None:
            return False
        self.chat, self.title = chat, row.title
        self.values.open(chat, row.parameters)
        self.tree = Tree(self._history.messages(chat), row.leaf)
        self._was_opened()
        return True

    def show_message(self, message: int) -> None:
        """Show the branch that a message is on."""
        if message in self.tree and message not in [shown.id for shown in self.tree.path()]:
            self.tree.walk(message, 0)
            self._keep_leaf()

    def _was_opened(self) -> None:
        self._draft = None
        self.opened.emit()
        self.parameters_changed.emit()
        self.count(None)

    @property
    def path(self) -> list[Message]:
        return self.tree.path()

    @property
    def reply(self) -> Reply | None:
        """The answer being written in the open chat."""
        return None if self.chat is None else self._replies.of_chat(self.chat)

    def reply_to(self, message: int) -> Reply | None:
        return self._replies.to(message)

    def is_running(self, chat: int) -> bool:
        return self._replies.of_chat(chat) is not None

    # Parameters.

    @property
    def parameters(self) -> Parameters:
        return self.values.parameters

    def set_parameters(self, parameters: Parameters) -> None:
        self.values.set_parameters(parameters)
        self.parameters_changed.emit()
        self.count(self._draft)

    def save_defaults(self) -> None:
        """What this chat has becomes what new chats with the loaded model have."""
        if self.values.save_defaults():
            self.parameters_changed.emit()

    # Asking.

    def send(self, text: str, attachments: Sequence[Attachment] = ()) -> bool:
        """False when nothing is loaded or an answer is being written here."""
        if self._session.info is None or self.reply is not None or not (text.strip() or attachments):
            return False
        if self.chat is None:
            title = self._titled(text) or attachments[0].name
            self.chat, self.title = self._history.create_chat(title, self.values.stored), title
            self.values.chat = self.chat
        asked = self._history.add(self.chat, self.tree.leaf, "user", text, attachments=attachments)
        self.tree.add(asked)
        self._answer(asked.id)
        return True

    def edit(self, message: int, text: str) -> bool:
        """A sibling of a question with other words, and an answer to it."""
        if self._session.info is None or self.reply is not None or not text.strip():
            return False
        old = self.tree[message]
        assert self.chat is not None
        asked = self._history.add(self.chat, old.parent, "user", text, attachments=old.attachments)
        self.tree.add(asked)
        self._answer(asked.id)
        return True

    def branch(self, message: int) -> None:
        """A new chat that begins with the branch up to `message`."""
        path = self.tree.path(message)
        parent_ids = {one.id: one.parent for one in path}
        parameters = {key: value for key, value in self.values.stored.items() if key != "from"}
        chat = self._history.insert_chat(
            self.tr("{0} (branch)").format(self.title), parameters, path, max(parent_ids, default=None)
        )
        self.list_changed.emit()
        self.open(chat)

    def regenerate(self, message: int, *, mode: Mode | None = None, same_seed: bool = False) -> bool:
        """A sibling of an answer. Without `same_seed`, another seed is drawn even where the chat fixes one."""
        if self._session.info is None or self.reply is not None:
            return False
        old = self.tree[message]
        if old.parent is None:
            return False
        parameters = self.parameters
        if same_seed:
            parameters = replace(parameters, seed=old.seed)
        elif parameters.seed is not None:
            parameters = replace(parameters, seed=None)
        if mode is not None:
            parameters = replace(parameters, mode=mode)
        self._answer(old.parent, parameters)
        return True

    def add_result(self, message: int, call_id: str, text: str) -> bool:
        """The user says what a tool gave; the model goes on once every call has its result."""
        if self._session.info is None or self.reply is not None:
            return False
        assert self.chat is not None
        self.tree.add(self._history.add(self.chat, self.tree.leaf, "tool", text, facts={"call_id": call_id}))
        called = {call.id for call in self.tree[message].calls}
        have = {one.facts.get("call_id") for one in self.path}
        if called <= have and self.tree.leaf is not None:
            self._answer(self.tree.leaf)
        else:
            self.path_changed.emit()
        return True

    def _answer(self, parent: int, parameters: Parameters | None = None) -> None:
        """Begin an answer to the branch that ends in `parent`."""
        info = self._session.info
        assert info is not None
        assert self.chat is not None
        asked = parameters or self.parameters
        facts = {"parameters": asked.changed(Parameters()), "from": self._sent.begin(parent)}
        message = self._history.add(self.chat, parent, "assistant", state=State.RUNNING, facts=facts)
        self.tree.add(message)
        path = self._sent.up_to(parent)
        self._replies.begin(
            message, facts, info, lambda tokeniser: chat_prompt.prepare(tokeniser, path, asked, info.context)
        )
        self._began(message.id)

    def can_resume(self, message: Message) -> bool:
        """Whether a stopped answer may go on. One that keeps to a schema may not: the grammar would begin anew."""
        has_more = message.state is not State.DONE or message.facts.get("reason") == "length"
        is_held = bool(message.facts.get("parameters", {}).get("schema"))
        has_begun = bool(message.text or self._history.trace(message.id))
        return message.role == "assistant" and has_more and has_begun and not is_held and not message.calls

    def resume(self, message: int) -> bool:
        """Go on with an answer that was stopped."""
        info = self._session.info
        old = self.tree[message]
        if info is None or self.reply is not None or not self.can_resume(old):
            return False
        asked = replace(Parameters().with_json(old.facts.get("parameters", {})), seed=old.seed)
        trace = self._history.trace(message)
        path = [*self._sent.before(old), old]
        kept = ("parameters", "from", "thought_s", "thought_tokens")
        facts = {key: old.facts[key] for key in kept if key in old.facts}
        self._history.save(message, state=State.RUNNING)
        self.tree.add(replace(old, state=State.RUNNING))
        self._replies.begin(
            replace(old, state=State.RUNNING),
            facts,
            info,
            lambda tokeniser: chat_prompt.resume(tokeniser, path, asked, info.context, trace),
            trace,
        )
        self._began(message)
        return True

    def _began(self, message: int) -> None:
        self.path_changed.emit()
        self.list_changed.emit()
        self.reply_began.emit(message)

    def stop(self) -> None:
        if (reply := self.reply) is not None:
            reply.stop()

    def stop_all(self) -> None:
        """The app ends: every answer is kept as it is."""
        self._replies.abandon_all()
        self._verifications.cancel_all()
        self._counting.rest()
        self._trash.rest()

    @Slot(object)
    def _on_reply_ended(self, message: Message) -> None:
        if message.id in self.tree:
            self.tree.add(message)
        self.reply_ended.emit(message.id)
        self.list_changed.emit()
        self.count(self._draft)

    # Branches.

    def walk(self, message: int, step: int) -> None:
        if self.tree.walk(message, step):
            self._keep_leaf()

    def _keep_leaf(self) -> None:
        if self.chat is not None:
            self._history.set_leaf(self.chat, self.tree.leaf)
        self.path_changed.emit()
        self.count(self._draft)

    # What is sent, and how long it is.

    @property
    def first_sent(self) -> int | None:
        """The first message that is sent, where earlier ones were dropped."""
        return self._sent.begin()

    def count(self, draft: Message | None) -> None:
        """Count the tokens of what would be sent, soon; `counted` comes."""
        self._draft = draft
        self._counting.soon()

    def draft(self, text: str, attachments: Sequence[Attachment]) -> Message | None:
        if not text.strip() and not attachments:
            return None
        return Message(0, self.chat or 0, self.tree.leaf, "user", text, attachments=tuple(attachments))

    def _would_send(self) -> tuple[list[Message], Parameters] | None:
        if self.reply is not None:
            return None
        path = [message for message in self._sent.up_to() if message.state is not State.RUNNING]
        return [*path, *([self._draft] if self._draft else [])], self.parameters

    def preview_drop(self) -> None:
        """Find out which oldest turns to drop so that a quarter of the context is free; `shortened` comes."""
        self._counting.preview_drop()

    def drop(self, shortened: Shortened) -> None:
        """Send them no longer. They stay in the chat."""
        self.values.keep("from", self._sent.begin_without(shortened.dropped))
        self.path_changed.emit()
        self.count(self._draft)

    def send_all(self) -> None:
        """Send dropped turns again."""
        self.values.keep("from", None)
        self.path_changed.emit()
        self.count(self._draft)

    # Verify.

    def verify(self, message: int) -> bool:
        """Replay an answer plainly; `verified` comes. False when it cannot be, as nothing is loaded or known of it."""
        info = self._session.info
        trace = self._history.trace(message)
        if info is None or trace is None or message in self._verifications:
            return False
        old = self.tree[message]
        asked = Parameters().with_json(old.facts.get("parameters", {}))
        self._verifications.start(info, old, self._sent.before(old), asked, trace)
        return True

    def is_verifying(self, message: int) -> bool:
        return message in self._verifications

    def cancel_verify(self, message: int) -> None:
        self._verifications.cancel(message)

    @Slot(int)
    def _on_judged(self, message: int) -> None:
        if message in self.tree:
            self.tree.add(self._history.message(message))

    # The list.

    def expire(self, days: int) -> None:
        """Delete chats in which nothing was said for so long; 0 deletes none. Not the one that is open."""
        self._trash.expire(days, self.chat)

    def rename(self, chat: int, title: str) -> None:
        title = title.strip()
        if title:
            self._history.rename(chat, title)
            if chat == self.chat:
                self.title = title
            self.list_changed.emit()

    def delete(self, chat: int) -> None:
        """Gone from sight at once, for good after a while. An answer under way in it is stopped."""
        row = self._history.chat(chat)
        if row is None:
            return
        if (reply := self._replies.of_chat(chat)) is not None:
            reply.stop()
        self._trash.delete(chat)
        if chat == self.chat:
            self.new()
        self.deleted.emit(chat, row.title)

    def undo_delete(self) -> None:
        if (chat := self._trash.undo()) is not None:
            self.open(chat)
            self.delete_settled.emit()
