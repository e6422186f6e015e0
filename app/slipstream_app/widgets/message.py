"""One message of the transcript: its blocks, its figures and what can be done with it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from PySide6.QtCore import QPoint, QSize, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QProgressBar, QToolButton, QVBoxLayout, QWidget

from slipstream.types import Mode
from slipstream_app.history import Message, State
from slipstream_app.icons import icon
from slipstream_app.markdown import Block, Code, split
from slipstream_app.models.chat_reply import Phase, Reply
from slipstream_app.theme import RADIUS, XS, M, S, Theme
from slipstream_app.widgets.attachments import Chips
from slipstream_app.widgets.block import Part
from slipstream_app.widgets.code_card import CodeCard
from slipstream_app.widgets.panel import Words, button, wrapped
from slipstream_app.widgets.prose import Prose
from slipstream_app.widgets.stats import StatsStrip
from slipstream_app.widgets.thinking_card import ThinkingCard
from slipstream_app.widgets.tool_card import ToolCard


class Ask(StrEnum):
    """What the user wants done with a message."""

    EDIT = "edit"
    REGENERATE = "regenerate"  # argument: Again
    BRANCH = "branch"
    WHY = "why"
    VERIFY = "verify"
    CANCEL_VERIFY = "cancel_verify"
    WALK = "walk"  # argument: -1 or 1
    RESUME = "resume"
    STOP = "stop"
    RESULT = "result"  # argument: call id and text
    THOUGHTS = "thoughts"  # argument: whether they are open


@dataclass(frozen=True, slots=True)
class Again:
    mode: Mode | None = None
    same_seed: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as the transcript shows it."""

    message: Message
    place: tuple[int, int] = (1, 1)  # among its siblings
    results: Mapping[str, str] = field(default_factory=dict[str, str])  # of tool calls, by call id
    can_resume: bool = False
    can_verify: bool = False
    open_thoughts: bool = False
    is_dropped: bool = False  # no longer sent to the model


class Actions(Part):
    """The row under an answer."""

    asked = Signal(str, object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.stats = StatsStrip(theme)
        self.verdict = Words(theme, scale=0.92)
        self.regenerate = _tool(theme, "refresh-cw", self.tr("Regenerate"), self.tr("Regenerate this answer"))
        self.regenerate.clicked.connect(lambda: self.asked.emit(Ask.REGENERATE, Again()))
        self.other = _tool(theme, "chevron-down", "", self.tr("Other ways to regenerate"))
        self.other.clicked.connect(self._on_other)
        self.copy = _tool(theme, "copy", "", self.tr("Copy this answer as Markdown"))
        self.branch = _tool(theme, "git-branch", "", self.tr("Branch: a new chat from here"))
        self.branch.clicked.connect(lambda: self.asked.emit(Ask.BRANCH, None))
        self.why = _tool(theme, "gauge", self.tr("Why this speed"), self.tr("Why this speed"))
        self.why.clicked.connect(lambda: self.asked.emit(Ask.WHY, None))
        self.verify = _tool(
            theme, "shield-check", self.tr("Verify"), self.tr("Run it again without drafts and compare every token")
        )
        self.verify.clicked.connect(self._on_verify)
        self.walk = Walker(theme)
        self.walk.stepped.connect(lambda step: self.asked.emit(Ask.WALK, step))
        self._is_verifying = False
        top = QHBoxLayout()
        top.setContentsMargins(0, 0, 0, 0)
        top.addWidget(self.stats)
        top.addStretch(1)
        bottom = QHBoxLayout()
        bottom.setContentsMargins(-6, 0, 0, 0)  # the icon stands under the text, not the button's edge
        bottom.setSpacing(0)
        for tool in (self.regenerate, self.other, self.copy, self.branch, self.why, self.verify):
            bottom.addWidget(tool)
        bottom.addWidget(self.verdict)
        bottom.addStretch(1)
        bottom.addWidget(self.walk)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, XS, 0, 0)
        column.setSpacing(XS)
        column.addLayout(top)
        column.addLayout(bottom)
        theme.changed.connect(self.refresh_theme)
        self.refresh_theme()

    @Slot()
    def _on_other(self) -> None:
        menu = QMenu(self)
        for words, again in (
            (self.tr("With another seed"), Again()),
            (self.tr("With the same seed"), Again(same_seed=True)),
            (self.tr("Without a drafter, same seed"), Again(Mode.BASELINE, same_seed=True)),
        ):
            menu.addAction(words).triggered.connect(lambda _=False, again=again: self.asked.emit(Ask.REGENERATE, again))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.other.mapToGlobal(QPoint(0, self.other.height())))

    @Slot()
    def _on_verify(self) -> None:
        self.asked.emit(Ask.CANCEL_VERIFY if self._is_verifying else Ask.VERIFY, None)

    def show_answer(self, shown: Shown) -> None:
        message = shown.message
        self.stats.set_facts(message.facts)
        self.stats.setVisible(bool(message.facts.get("timings", {}).get("output_tokens")))
        self.why.setVisible(shown.can_verify)
        self.verify.setVisible(shown.can_verify)
        self.walk.set_place(*shown.place)
        self.set_verifying(None)
        self._say_verdict(message)
        self.show()

    def set_verifying(self, progress: tuple[int, int] | None) -> None:
        self._is_verifying = progress is not None
        if progress is None:
            self.verify.setText(self.tr("Verify"))
        else:
            self.verify.setText(self.tr("Cancel"))
            self.verdict.say(self.tr("Verifying, {0} of {1} tokens").format(*progress), "muted")

    def _say_verdict(self, message: Message) -> None:
        verdict = message.facts.get("verdict")
        if not verdict:
            self.verdict.say("", "muted")
            return
        day = time.strftime("%x %H:%M", time.localtime(verdict["at_s"]))
        gaps = ""
        if verdict["margins"]:
            gaps = self.tr("{0} and {1}").format(*(f"{margin['gap']:.3g}" for margin in verdict["margins"]))
        match verdict["verdict"]:
            case "identical":
                self.verdict.say(self.tr("✓ Identical, %n token(s)", None, verdict["tokens"]), "ok")
                self.verdict.setToolTip(
                    self.tr("The model alone says the same with this prompt, options and seed. Checked {0}").format(day)
                )
            case "tie":
                text = self.tr("≈ Numeric tie at token {0}, margins {1}").format(verdict["position"] + 1, gaps)
                self.verdict.say(text, "warn")
                self.verdict.setToolTip(
                    self.tr("Two choices were closer than the rounding of the number format. Checked {0}").format(day)
                )
            case _:
                text = self.tr("✗ Different at token {0}").format(verdict["position"] + 1)
                self.verdict.say(text + (self.tr(", margins {0}").format(gaps) if gaps else ""), "bad")
                self.verdict.setToolTip(self.tr("This is a bug. Please report it. Checked {0}").format(day))

    @Slot()
    def refresh_theme(self) -> None:
        size = self.theme.px(15)
        self.other.setIconSize(QSize(size * 2 // 3, size * 2 // 3))
        for tool in (self.regenerate, self.copy, self.branch, self.why, self.verify):
            tool.setFont(self.theme.font(0.92))
            tool.setIconSize(QSize(size, size))


class Walker(QWidget):
    """ "< 2/3 >". Hidden where there is nothing beside."""

    stepped = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.back = _tool(theme, "chevron-left", "", self.tr("Previous branch"))
        self.back.clicked.connect(lambda: self.stepped.emit(-1))
        self.on = _tool(theme, "chevron-right", "", self.tr("Next branch"))
        self.on.clicked.connect(lambda: self.stepped.emit(1))
        self.label = Words(theme, role="muted", scale=0.92)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for widget in (self.back, self.label, self.on):
            row.addWidget(widget)

    def set_place(self, number: int, count: int) -> None:
        self.setVisible(count > 1)
        self.label.say(f"{number}/{count}")
        self.label.setAccessibleName(self.tr("Branch {0} of {1}").format(number, count))
        self.back.setEnabled(number > 1)
        self.on.setEnabled(number < count)


class Head(Part):
    """Who speaks; what can be done with a question."""

    asked = Signal(str, object)

    def __init__(self, theme: Theme, is_user: bool, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.who = Words(theme, self.tr("You") if is_user else self.tr("Assistant"), bold=True)
        self.note = Words(theme, role="muted", scale=0.92)
        self.walk = Walker(theme)
        self.walk.stepped.connect(lambda step: self.asked.emit(Ask.WALK, step))
        self.edit = _tool(theme, "pencil", "", self.tr("Edit and ask again"))
        self.edit.clicked.connect(lambda: self.asked.emit(Ask.EDIT, None))
        self.copy = _tool(theme, "copy", "", self.tr("Copy this message"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(S)
        row.addWidget(self.who)
        row.addWidget(self.note)
        row.addStretch(1)
        for tool in (self.walk, self.edit, self.copy):
            row.addWidget(tool)
            tool.setVisible(is_user)
        theme.changed.connect(self.refresh_theme)
        self.refresh_theme()

    @Slot()
    def refresh_theme(self) -> None:
        size = self.theme.px(15)
        for tool in (self.edit, self.copy):
            tool.setIconSize(QSize(size, size))


class StateLine(Part):
    """What became of an answer that did not end by itself, or how far the prompt is read."""

    asked = Signal(str, object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.words = wrapped(theme, role="muted")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Prompt read"))
        self.go_on = button(self.tr("Continue"))
        self.go_on.clicked.connect(lambda: self.asked.emit(Ask.RESUME, None))
        self.cancel = button(self.tr("Cancel"))
        self.cancel.clicked.connect(lambda: self.asked.emit(Ask.STOP, None))
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(self.words, 1)
        row.addWidget(self.go_on)
        row.addWidget(self.cancel)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, XS, 0, XS)
        column.setSpacing(XS)
        column.addLayout(row)
        column.addWidget(self.bar)
        theme.changed.connect(self.refresh_theme)
        self.refresh_theme()

    def show_state(self, shown: Shown) -> bool:
        """False when there is nothing to say."""
        message, role = shown.message, "muted"
        match message.state:
            case State.STOPPED:
                by_user = message.facts.get("stopped_by") != "engine"
                words = self.tr("Stopped by you") if by_user else self.tr("Stopped as the model was unloaded")
            case State.INTERRUPTED:
                words = self.tr("Interrupted: Slipstream ended while this was written")
            case State.FAILED:
                said = message.facts.get("error", {}).get("message", self.tr("The engine stopped"))
                words, role = _sentence(str(said)), "bad"
                if message.text:
                    words = self.tr("{0} The text until then is saved.").format(words)
            case State.DONE if message.facts.get("reason") == "length":
                words = self.tr("Cut at the length limit")
            case _:
                return False
        self.words.say(words, role)
        self.go_on.setVisible(shown.can_resume)
        self.cancel.hide()
        self.bar.hide()
        return True

    def show_progress(self, reply: Reply) -> bool:
        """False once there is text."""
        progress = reply.progress
        match reply.phase:
            case Phase.PREPARING:
                words = self.tr("Preparing…")
            case Phase.WAITING:
                words = self.tr("Waiting for its turn…")
            case Phase.READING:
                words = self.tr("Reading {0} of {1} tokens").format(f"{progress.done:,}", f"{progress.total:,}")
                left = progress.left_s(time.monotonic())
                if left is not None and left >= 1:
                    words = self.tr("{0}, about {1} s").format(words, f"{left:.0f}")
            case _:
                return False
        self.words.say(words, "muted")
        self.go_on.hide()
        self.cancel.setVisible(reply.phase is Phase.READING)
        self.bar.setVisible(reply.phase is Phase.READING)
        self.bar.setRange(0, max(1, progress.total))
        self.bar.setValue(progress.done)
        return True

    @Slot()
    def refresh_theme(self) -> None:
        theme = self.theme
        self.bar.setFixedHeight(theme.px(6))
        self.bar.setStyleSheet(
            f"QProgressBar {{ background: {theme.css('raised')}; border: 0; border-radius: 3px; }}"
            f"QProgressBar::chunk {{ background: {theme.css('accent')}; border-radius: 3px; }}"
        )


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
        self.head = Head(theme, is_user, self)
        self.head.asked.connect(self._ask)
        self.head.copy.clicked.connect(self.copy_markdown)
        self.chips: Chips | None = None
        self.thinking: ThinkingCard | None = None
        self.parts: list[Prose | CodeCard] = []
        self.tools: list[ToolCard] = []
        self._waiting: list[Block] = []
        self._tail: Prose | CodeCard | None = None  # the last of `parts` while it may still change
        self._frozen = 0  # finished blocks of a running answer that are shown
        self._is_dressed = False  # `build` does it last
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
    def actions_row(self) -> Actions:
        made = Actions(self._theme, self)
        made.asked.connect(self._ask)
        made.copy.clicked.connect(self.copy_markdown)
        return made

    def _has(self, name: str) -> bool:
        return name in self.__dict__

    def build(self, until_s: float) -> bool:
        """Make parts until `until_s` (monotonic). True when all are there."""
        while self._waiting:
            self._add(self._waiting.pop(0), is_whole=True)
            if time.monotonic() > until_s:
                return False
        if not self._is_dressed:
            self._is_dressed = True
            self._dress()
        return True

    def show_reply(self, reply: Reply) -> None:
        """Show what has come of a running answer."""
        if reply.thinking:
            tokens = None if reply.is_thinking else reply.thought_tokens
            self._show_thoughts(reply.thinking, reply.thinking_s, tokens)
        for block in reply.blocks[self._frozen :]:
            self._put_tail(block, is_whole=True)
            self._tail = None
        self._frozen = len(reply.blocks)
        if (tail := reply.tail) is not None:
            self._put_tail(tail, is_whole=False)
        elif self._tail is not None:
            self._drop_tail()
        if reply.calls:
            self._show_calls(self.shown.message, is_running=True, calls=reply)
        if reply.phase is not Phase.WRITING or self._has("state_line"):
            self.state_line.setVisible(self.state_line.show_progress(reply))

    def finish_reply(self, shown: Shown, reply_blocks: Sequence[Block]) -> None:
        """The answer has ended: its last block is whole now."""
        for block in reply_blocks[self._frozen :]:
            self._put_tail(block, is_whole=True)
            self._tail = None
        if self._tail is not None:
            self._drop_tail()
        self._frozen = len(reply_blocks)
        self.set_shown(shown)

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
        gone.hide()
        gone.deleteLater()
        self._tail = None

    def _add(self, block: Block, *, is_whole: bool) -> Prose | CodeCard:
        if isinstance(block, Code):
            part = CodeCard(self._theme, block.language, self)
            part.set_text(block.text, is_whole=is_whole)
            part.resized.connect(self.resized)
        else:
            is_markdown = self.shown.message.role != "user"
            part = Prose(self._theme, block.text, is_markdown=is_markdown, parent=self)
            part.selected.connect(self.selected)
        part.menu_asked.connect(self._on_menu)
        part.show()
        self.parts.append(part)
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

    def fit(self, width: int) -> int:
        inset = M if self.shown.message.role == "user" else 0
        y = S + inset // 2
        width -= 2 * inset
        stack: list[tuple[Part | Chips | Prose, int]] = [(self.head, XS)]
        if self.chips is not None:
            stack.append((self.chips, S))
        if self.thinking is not None:
            stack.append((self.thinking, S))
        stack += [(part, M - 2) for part in (*self.parts, *self.tools)]
        below = [getattr(self, name) for name in ("state_line", "actions_row") if self._has(name)]
        stack += [(part, 0) for part in below if not part.isHidden()]
        for part, gap in stack:
            height = part.fit(width)
            part.setGeometry(inset, y, width, height)
            y += height + gap
        return y + M

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
        texts = [part.text if isinstance(part, CodeCard) else part.toPlainText() for part in self.parts]
        QGuiApplication.clipboard().setText("\n\n".join(texts))

    @Slot(object)
    def _on_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        part = self.sender()
        body = part.body if isinstance(part, CodeCard) else part
        if isinstance(body, Prose):
            menu.addAction(self.tr("Copy"), body.copy).setEnabled(body.textCursor().hasSelection())
            if link := body.anchorAt(body.viewport().mapFromGlobal(at)):
                menu.addAction(self.tr("Copy link"), lambda: QGuiApplication.clipboard().setText(link))
        elif isinstance(part, CodeCard):
            menu.addAction(self.tr("Copy"), part.body.copy).setEnabled(part.body.textCursor().hasSelection())
        menu.addSeparator()
        menu.addAction(self.tr("Copy message"), self.copy_plain)
        menu.addAction(self.tr("Copy as Markdown"), self.copy_markdown)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(at)

    def find_text(self, words: str) -> bool:
        """Select the first place of `words`."""
        for part in self.parts:
            body = part.body if isinstance(part, CodeCard) else part
            body.moveCursor(body.textCursor().MoveOperation.Start)
            if body.find(words):
                return True
        return False


def _tool(theme: Theme, name: str, text: str, words: str) -> QToolButton:
    tool = QToolButton()
    tool.setProperty("role", "flat")
    tool.setIcon(icon(theme, name, "muted"))
    tool.setText(text)
    tool.setToolButtonStyle(
        Qt.ToolButtonStyle.ToolButtonTextBesideIcon if text else Qt.ToolButtonStyle.ToolButtonIconOnly
    )
    tool.setToolTip(words)
    tool.setAccessibleName(words)
    return tool


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
