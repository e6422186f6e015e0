"""One coding agent: its state, the exact change to its files, and the buttons for it."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication, QHideEvent, QShowEvent, QSyntaxHighlighter, QTextCharFormat, QTextDocument
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QSizePolicy, QWidget

from slipstream.agents.plan import Plan
from slipstream_app.models.agents import AgentState, Doing
from slipstream_app.numbers import number_text
from slipstream_app.theme import S, Theme
from slipstream_app.widgets.panel import Panel, Words, button, set_role, wrapped

_DIFF_LINES = 18  # shown at once; more scroll
_MINUTE, _HOUR = 60, 3600  # seconds


class AgentCard(Panel):
    preview_asked = Signal()
    undo_asked = Signal()
    write_asked = Signal()
    dismissed = Signal()
    test_asked = Signal()

    def __init__(self, theme: Theme, state: AgentState, parent: QWidget | None = None) -> None:
        super().__init__(theme, state.title, parent)
        self._state = state
        self._seen_s: float | None = None
        self._ageing = QTimer(self, singleShot=True)
        self._ageing.timeout.connect(self._tell)
        title = state.title
        self.status = Words(theme, "", "muted")
        self.set_up = button(self.tr("Set up…"), name=self.tr("Set up {0}").format(title))
        self.test = button(self.tr("Test"), name=self.tr("Test {0}").format(title))
        self.undo = button(self.tr("Undo…"), name=self.tr("Undo the set-up of {0}").format(title))
        self.head.insertWidget(1, self.status)
        for made, signal in (
            (self.set_up, self.preview_asked),
            (self.test, self.test_asked),
            (self.undo, self.undo_asked),
        ):
            made.clicked.connect(signal)
            self.head.addWidget(made)
        self.words = wrapped(theme)
        self.diff = QPlainTextEdit()
        self.diff.setReadOnly(True)
        self.diff.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.diff.setTabChangesFocus(True)
        self.diff.setAccessibleName(self.tr("The exact change to {0}").format(title))
        self._colours = _DiffColours(self.diff.document(), theme)
        self.write = button(self.tr("Write this"), "primary")
        self.copy = button(self.tr("Copy instead"))
        self.cancel = button(self.tr("Cancel"))
        self.write.clicked.connect(self.write_asked)
        self.copy.clicked.connect(self._on_copy)
        self.cancel.clicked.connect(self.dismissed)
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addStretch(1)
        for made in (self.copy, self.cancel, self.write):
            row.addWidget(made)
        self.body.addWidget(self.words)
        self.body.addWidget(self.diff)
        self.body.addLayout(row)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        theme.changed.connect(self._on_theme)
        self._on_theme()
        self.refresh(None)

    def refresh(self, seen_s: float | None) -> None:
        """Show the state. `seen_s`: when it last asked something, in seconds since 1970; None: it has not."""
        state = self._state
        self._seen_s = seen_s
        self._tell()
        self.words.say(*self._words())
        self.words.setVisible(bool(self.words.text()))
        plan = state.plan
        has_change = plan is not None and not plan.is_empty
        self.diff.setVisible(has_change)
        if plan is not None and has_change and self.diff.toPlainText() != plan.diff:
            self.diff.setPlainText(plan.diff)
        if has_change:
            self._fit_diff()
        for made in (self.write, self.copy, self.cancel):
            made.setVisible(has_change)
        if plan is not None:
            self.write.setText(self.tr("Undo this") if plan.is_undo else self.tr("Write this"))
        is_free = state.doing is Doing.NOTHING
        self.set_up.setText(self.tr("Preview change…") if state.is_set_up else self.tr("Set up…"))
        self.set_up.setEnabled(is_free and plan is None)
        set_role(self.set_up, "" if state.is_set_up or state.installed is None else "primary")
        self.test.setVisible(state.installed is not None)
        self.test.setEnabled(is_free)
        self.undo.setVisible(state.is_set_up)
        self.undo.setEnabled(is_free and plan is None)
        self.write.setEnabled(is_free)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._tell()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._ageing.stop()

    @property
    def is_awake(self) -> bool:
        return self._ageing.isActive()

    @Slot()
    def _tell(self) -> None:
        """How it is now, and again when that may read differently; never while it cannot be seen."""
        age = None if self._seen_s is None else max(0, int(time.time() - self._seen_s))
        self.status.say(*self._status("" if age is None else self._ago(age)))
        if age is not None and self.isVisible():
            self._ageing.start(1000 * (1 if age < _MINUTE else _MINUTE // 2))

    def _ago(self, seconds: int) -> str:
        if seconds < _MINUTE:
            return self.tr("{0} s ago").format(seconds)
        if seconds < _HOUR:
            return self.tr("{0} min ago").format(seconds // _MINUTE)
        return self.tr("{0} h ago").format(seconds // _HOUR)

    def _status(self, last_seen: str) -> tuple[str, str]:
        state = self._state
        doing = {
            Doing.LOOKING: self.tr("looking for it…"),
            Doing.PLANNING: self.tr("working out the change…"),
            Doing.WRITING: self.tr("writing…"),
            Doing.TESTING: self.tr("it is reading a file with a tool… this may take minutes"),
        }
        if state.doing in doing:
            return doing[state.doing], "muted"
        if last_seen:
            return self.tr("last request {0}").format(last_seen), "ok"
        if state.is_set_up:
            return self.tr("set up"), "ok"
        if state.installed is None:
            return (self.tr("not installed"), "muted") if state.is_looked_for else ("", "muted")
        return self.tr("{0} found, not set up").format(state.installed.version or self.tr("It was")), "muted"

    def _words(self) -> tuple[str, str]:
        state = self._state
        if state.error:
            return state.error, "bad"
        if state.plan is not None:
            return self._plan_words(state.plan)
        if state.report is not None:
            passed = self.tr("The test passed in {0} s: it {1}.")
            words = passed if state.report.passed else self.tr("The test failed: {1}")
            role = "ok" if state.report.passed else "bad"
            return words.format(number_text(state.report.seconds), state.report.reason), role
        if state.applied is not None:
            wrote = ", ".join(_short(path) for path in state.applied.files)
            kept = ", ".join(_short(path) for path in state.applied.backups)
            words = self.tr("Changed {0}.").format(wrote)
            return f"{words} {self.tr('Backup: {0}').format(kept)}" if kept else words, ""
        is_missing = state.installed is None and state.is_looked_for
        return self.tr("Install it with: {0}").format(state.install) if is_missing else "", "muted"

    def _plan_words(self, plan: Plan) -> tuple[str, str]:
        notes = "\n".join(note.text for note in self._state.notes)
        if not plan.is_empty:
            return notes, "warn"
        nothing = self.tr("Nothing of what Slipstream wrote is left.")
        done = self.tr("It is set up already; nothing would change.")
        return f"{nothing if plan.is_undo else done}\n{notes}".strip(), ""

    def _fit_diff(self) -> None:
        lines = min(self.diff.blockCount(), _DIFF_LINES)
        self.diff.setFixedHeight((lines + 1) * self.diff.fontMetrics().lineSpacing() + 2 * S)

    @Slot()
    def _on_copy(self) -> None:
        if self._state.plan is not None:
            QGuiApplication.clipboard().setText(self._state.plan.diff)

    @Slot()
    def _on_theme(self) -> None:
        self.diff.setFont(self.theme.code_font(0.9))
        self._colours.rehighlight()
        if self.diff.isVisible():
            self._fit_diff()


class _DiffColours(QSyntaxHighlighter):
    """The signs at the lines' beginnings say the same."""

    def __init__(self, document: QTextDocument, theme: Theme) -> None:
        super().__init__(document)
        self._theme = theme

    def highlightBlock(self, text: str) -> None:
        name = {"+": "ok", "-": "bad", "@": "muted"}.get(text[:1])
        if name is not None:
            form = QTextCharFormat()
            form.setForeground(self._theme.color("muted" if text.startswith(("+++", "---")) else name))
            self.setFormat(0, len(text), form)


def _short(path: Path) -> str:
    try:
        return f"~/{path.relative_to(Path.home())}"
    except ValueError:
        return str(path)
