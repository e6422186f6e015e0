"""One message of the transcript: its blocks, its figures and what can be done with it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from math import inf

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QMenu, QWidget
from shiboken6 import delete

from slipstream_app.markdown import Block, Code, split
from slipstream_app.markdown import Prose as ProseBlock
from slipstream_app.messages import Message, State
from slipstream_app.models.chat_reply import Phase, Reply
from slipstream_app.theme import RADIUS, XS, M, S, Theme
from slipstream_app.widgets.answer_actions import AnswerActions
from slipstream_app.widgets.attachments import Chips
from slipstream_app.widgets.block import Away, Part
from slipstream_app.widgets.code_card import CodeCard
from slipstream_app.widgets.message_head import MessageHead
from slipstream_app.widgets.message_parts import add_copying, is_in_use
from slipstream_app.widgets.prose import Prose
from slipstream_app.widgets.shown import Ask, Shown
from slipstream_app.widgets.state_line import StateLine
from slipstream_app.widgets.thinking_card import ThinkingCard
from slipstream_app.widgets.tool_card import ToolCard

MANY = 24  # parts, from which on those out of sight may be let go


class MessageWidget(QWidget):
    """Built in slices (`build`), so that a long answer stalls nothing; a running one is fed by `show_reply`."""

    asked = Signal(str, int, object)  # Ask, message, argument
    resized = Signal()
    selected = Signal()

    def __init__(self, theme: Theme, shown: Shown, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.shown = shown
        message = shown.message
        is_user = message.role == "user"
        self.head = MessageHead(theme, is_user, self)
        self.head.asked.connect(self._ask)
        self.head.copy.clicked.connect(self.copy_markdown)
        self.chips: Chips | None = None
        self.thinking: ThinkingCard | None = None
        self.parts: list[Prose | CodeCard | Away] = []
        self.tools: list[ToolCard] = []
        self._aside: list[Prose | CodeCard] = []  # no longer in `parts`, and not yet deleted
        self._waiting: list[Block] = []
        self._tail: Prose | CodeCard | None = None  # the last of `parts` while it may still change
        self._frozen = 0  # finished blocks of a running answer that are shown
        self._is_dressed = False  # `build` does it last
        self._laid = 0  # of `parts`, the first ones that stand where they belong and change no more
        self._laid_y = 0  # where the next one begins
        self._laid_for = (0, 0)  # the width and the first one's place for which that holds
        self.set_shown(shown)
        if message.state is not State.RUNNING:
            self._waiting = split(message.text)

    # What it shows.

    def set_shown(self, shown: Shown) -> None:
        """New facts; the text is what it was."""
        self.shown = shown
        message = shown.message
        is_user = message.role == "user"
        is_running = message.state is State.RUNNING
        self.setAccessibleName(self.tr("Your message") if is_user else self.tr("Answer"))
        self.head.walk.set_place(*(shown.place if is_user else (1, 1)))
        self.head.note.say(self.tr("not sent any more") if shown.is_dropped else "")
        if message.attachments and self.chips is None:
            self.chips = Chips(self._theme, self)
            self.chips.set_attachments(message.attachments)
            self.chips.show()
        if not is_running:
            if message.thinking:
                self._show_thoughts(
                    message.thinking, message.facts.get("thought_s", 0.0), message.facts.get("thought_tokens", 0)
                )
            self._show_calls(message, is_running=False)
        if self._is_dressed:
            self._dress()

    def _dress(self) -> None:
        """What stands under the text."""
        shown = self.shown
        message = shown.message
        is_user = message.role == "user"
        is_running = message.state is State.RUNNING
        is_whole = message.state is State.DONE and message.facts.get("reason") != "length"
        if not (is_user or is_running or is_whole):
            self.state_line.setVisible(self.state_line.show_state(shown))
        elif self._has("state_line"):
            self.state_line.hide()
        if not (is_user or is_running):
            self.actions_row.show_answer(shown)
        elif self._has("actions_row"):
            self.actions_row.hide()

    # Made when they are first needed: with all of it a message takes several times as long to build.

    @cached_property
    def state_line(self) -> StateLine:
        made = StateLine(self._theme, self)
        made.asked.connect(self._ask)
        return made

    @cached_property
    def actions_row(self) -> AnswerActions:
        made = AnswerActions(self._theme, self)
        made.asked.connect(self._ask)
        made.copy.clicked.connect(self.copy_markdown)
        return made

    def _has(self, name: str) -> bool:
        return name in self.__dict__

    def build(self, until_s: float, top: int = 0, bottom: int = 0) -> bool:
        """Make parts until `until_s` (monotonic): of those let go what is wanted. True: all are there."""
        middle = (top + bottom) // 2
        for number in sorted(self._wanted(top, bottom), key=lambda number: abs(self.parts[number].y() - middle)):
            self._bring_back(number)
            if time.monotonic() > until_s:
                return False
        while self._waiting:
            self._add(self._waiting.pop(0), is_whole=True)
            if time.monotonic() > until_s:
                return False
        if not self._is_dressed:
            self._is_dressed = True
            self._dress()
        return True

    def wants(self, top: int, bottom: int) -> bool:
        """Whether parts that were let go are needed between these places, or have to be measured anew."""
        return bool(self._wanted(top, bottom))

    def _wanted(self, top: int, bottom: int) -> list[int]:
        return [
            number
            for number, part in enumerate(self.parts)
            if isinstance(part, Away) and (part.is_stale or part.is_within(top, bottom))
        ]

    def let_go(self, top: int, bottom: int, until_s: float = inf) -> bool:
        """`put_aside`, and `forget`. False: there is more to forget."""
        is_whole = self.put_aside(top, bottom, until_s)
        return self.forget(until_s) and is_whole

    def forget(self, until_s: float) -> bool:
        """Delete widgets that were put aside. False: there are more."""
        while self._aside and time.monotonic() < until_s:
            delete(self._aside.pop())
        return not self._aside

    def put_aside(self, top: int, bottom: int, until_s: float = inf) -> bool:
        """Keep only the places of parts beyond `top` and `bottom`, whose widgets hear of the theme no more; in a short
        message, keep all. `until_s`: monotonic. False: there is more to put aside.
        """
        if len(self.parts) < MANY:
            return True
        for number, part in enumerate(self.parts):
            if part is self._tail or isinstance(part, Away) or is_in_use(part):
                continue
            if part.y() + part.height() >= top and part.y() <= bottom:
                continue
            if time.monotonic() > until_s:
                return False
            block = Code(part.language, part.text) if isinstance(part, CodeCard) else ProseBlock(part.text)
            self.parts[number] = Away(block, self._laid_for[0], part.height(), part.y())
            self._theme.resized.disconnect(part.refresh_theme)
            part.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)  # `Restyling` leaves it alone
            self._aside.append(part)
        return True

    def hide_aside(self, top: int, bottom: int) -> None:
        """Of what was put aside and not forgotten yet, hide what would be seen between these places."""
        for part in self._aside:
            if part.y() + part.height() >= top and part.y() <= bottom:
                part.hide()

    def _bring_back(self, number: int) -> None:
        away = self.parts[number]
        assert isinstance(away, Away)
        part = self.parts[number] = self._make(away.block, is_whole=True)
        width = self._laid_for[0] or away.wide
        high = part.fit(width)
        part.setGeometry(0, away.y(), width, high)
        if high != away.height():
            self.forget_layout()

    def _bring_all_back(self) -> list[Prose | CodeCard]:
        for number, part in enumerate(self.parts):
            if isinstance(part, Away):
                self._bring_back(number)
        if self._laid_for == (0, 0):
            self.resized.emit()
        return [part for part in self.parts if not isinstance(part, Away)]

    def show_reply(self, reply: Reply, until_s: float) -> bool:
        """Show what has come of a running answer, until `until_s` (monotonic). False: there is more to show."""
        if reply.thinking:
            tokens = None if reply.is_thinking else reply.thought_tokens
            self._show_thoughts(reply.thinking, reply.thinking_s, tokens)
        while self._frozen < len(reply.blocks):
            self._put_tail(reply.blocks[self._frozen], is_whole=True)
            self._tail = None
            self._frozen += 1
            if time.monotonic() > until_s:
                return False
        if (tail := reply.tail) is not None:
            self._put_tail(tail, is_whole=False)
        elif self._tail is not None:
            self._drop_tail()
        if reply.calls:
            self._show_calls(self.shown.message, is_running=True, calls=reply)
        if reply.phase is not Phase.WRITING or self._has("state_line"):
            self.state_line.setVisible(self.state_line.show_progress(reply))
        return True

    def finish_reply(self, shown: Shown, reply_blocks: Sequence[Block]) -> bool:
        """The answer has ended: its last block is whole now. False: `build` has more to make."""
        left = list(reply_blocks[self._frozen :])
        self._frozen = len(reply_blocks)
        if left and self._tail is not None:
            self._put_tail(left.pop(0), is_whole=True)
            self._tail = None
        elif self._tail is not None:
            self._drop_tail()
        self._waiting += left
        self.set_shown(shown)
        return not self._waiting

    def _put_tail(self, block: Block, *, is_whole: bool) -> None:
        """Show a block in the place of the open one, if it is of its kind."""
        tail = self._tail
        if isinstance(block, Code) and isinstance(tail, CodeCard):
            tail.set_text(block.text, is_whole=is_whole)
        elif not isinstance(block, Code) and isinstance(tail, Prose):
            tail.set_text(block.text)
        else:
            if tail is not None:
                self._drop_tail()
            self._tail = self._add(block, is_whole=is_whole)

    def _drop_tail(self) -> None:
        gone = self.parts.pop()
        assert not isinstance(gone, Away), "the open block is never let go"
        gone.hide()
        gone.deleteLater()
        self._tail = None

    def _add(self, block: Block, *, is_whole: bool) -> Prose | CodeCard:
        part = self._make(block, is_whole=is_whole)
        self.parts.append(part)
        return part

    def _make(self, block: Block, *, is_whole: bool) -> Prose | CodeCard:
        if isinstance(block, Code):
            part = CodeCard(self._theme, block.language, self)
            part.set_text(block.text, is_whole=is_whole)
            part.resized.connect(self._on_part_resized)
        else:
            is_markdown = self.shown.message.role != "user"
            part = Prose(self._theme, block.text, is_markdown=is_markdown, parent=self)
            part.setAccessibleName(self.tr("Text"))
            part.selected.connect(self.selected)
        part.menu_asked.connect(self._on_menu)
        part.show()
        return part

    def _show_thoughts(self, text: str, seconds: float, tokens: int | None) -> None:
        if self.thinking is None:
            self.thinking = ThinkingCard(self._theme, self)
            self.thinking.set_open(self.shown.open_thoughts)
            self.thinking.resized.connect(self.resized)
            self.thinking.toggled.connect(self._on_thoughts)
            self.thinking.show()
        self.thinking.set_thoughts(text, seconds, tokens)

    def _show_calls(self, message: Message, *, is_running: bool, calls: Reply | None = None) -> None:
        for at, call in enumerate(message.calls if calls is None else calls.calls):
            if at == len(self.tools):
                card = ToolCard(self._theme, self)
                card.resized.connect(self.resized)
                card.answered.connect(self._on_result)
                card.show()
                self.tools.append(card)
            self.tools[at].set_call(call, self.shown.results.get(call.id), is_running=is_running)

    # Where its parts are.

    def forget_layout(self) -> None:
        """The parts have other sizes now."""
        self._laid_for = (0, 0)

    def measure_anew(self) -> None:
        """The parts look different now: also those that were let go."""
        self.forget_layout()
        for part in self.parts:
            if isinstance(part, Away):
                part.is_stale = True

    @Slot()
    def _on_part_resized(self) -> None:
        self.forget_layout()
        self.resized.emit()

    def fit(self, width: int) -> int:
        inset = M if self.shown.message.role == "user" else 0
        y = S + inset // 2
        width -= 2 * inset
        stack: list[tuple[Part | Chips | Prose, int]] = [(self.head, XS)]
        if self.chips is not None:
            stack.append((self.chips, S))
        if self.thinking is not None:
            stack.append((self.thinking, S))
        for part, gap in stack:
            y = self._put(part, inset, y, width, gap)
        y = self._put_parts(inset, y, width)
        stack = [(part, M - 2) for part in self.tools]
        below = [getattr(self, name) for name in ("state_line", "actions_row") if self._has(name)]
        stack += [(part, 0) for part in below if not part.isHidden()]
        for part, gap in stack:
            y = self._put(part, inset, y, width, gap)
        return y + M

    @staticmethod
    def _put(part: Part | Chips | Prose | Away, x: int, y: int, width: int, gap: int) -> int:
        """Where the next one begins."""
        height = part.fit(width)
        part.setGeometry(x, y, width, height)
        return y + height + gap

    def _put_parts(self, x: int, y: int, width: int) -> int:
        """Those that change no more are put once: a long answer has hundreds of them, and is laid out at each frame."""
        if self._laid_for != (width, y):
            self._laid, self._laid_y, self._laid_for = 0, y, (width, y)
        for part in self.parts[self._laid :]:
            y = self._put(part, x, self._laid_y, width, M - 2)
            if part is self._tail:
                return y
            self._laid, self._laid_y = self._laid + 1, y
        return self._laid_y

    def paintEvent(self, event: QPaintEvent) -> None:
        """A question stands on a ground of its own."""
        if self.shown.message.role == "user":
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("raised"))
            painter.drawRoundedRect(self.rect().adjusted(0, 0, 0, -S), RADIUS, RADIUS)

    # What is done with it.

    @Slot(str, object)
    def _ask(self, what: str, argument: object) -> None:
        self.asked.emit(what, self.shown.message.id, argument)

    @Slot(bool)
    def _on_thoughts(self, is_open: bool) -> None:
        self._ask(Ask.THOUGHTS, is_open)

    @Slot(str, str)
    def _on_result(self, call_id: str, text: str) -> None:
        self._ask(Ask.RESULT, (call_id, text))

    @Slot()
    def copy_markdown(self) -> None:
        QGuiApplication.clipboard().setText(self.shown.message.text)

    @Slot()
    def copy_plain(self) -> None:
        """Without Markdown's marks."""
        parts = self._bring_all_back()
        texts = [part.toPlainText() if isinstance(part, Prose) else part.text for part in parts]
        QGuiApplication.clipboard().setText("\n\n".join(texts))

    @Slot(object)
    def _on_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        add_copying(menu, self.sender(), at)
        menu.addSeparator()
        menu.addAction(self.tr("Copy message"), self.copy_plain)
        menu.addAction(self.tr("Copy as Markdown"), self.copy_markdown)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(at)

    def find_text(self, words: str) -> bool:
        """Select the first place of `words`."""
        for part in self._bring_all_back():
            body = part.body if isinstance(part, CodeCard) else part
            body.moveCursor(body.textCursor().MoveOperation.Start)
            if body.find(words):
                return True
        return False
