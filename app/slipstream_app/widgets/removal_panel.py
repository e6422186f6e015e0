"""Asks whether files may go to the Bin, and shows each of them."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from slipstream_app.models.pairs import RemovalPlan
from slipstream_app.numbers import size_text
from slipstream_app.theme import Theme
from slipstream_app.widgets.panel import button, wrapped


class RemovalPanel(QWidget):
    agreed = Signal(object)  # RemovalPlan
    kept = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plan: RemovalPlan | None = None
        self.words = wrapped(theme)
        self.files = QPlainTextEdit()
        self.files.setReadOnly(True)
        self.files.setTabChangesFocus(True)
        self.files.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.files.setAccessibleName(self.tr("The files that go"))
        self.files.setFixedHeight(theme.px(110))
        self.remove = button(self.tr("Move to the Bin"), "danger")
        self.keep = button(self.tr("Keep"))
        self.remove.clicked.connect(self._on_remove)
        self.keep.clicked.connect(self.kept)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.keep)
        buttons.addWidget(self.remove)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.words)
        column.addWidget(self.files)
        column.addLayout(buttons)

    @property
    def plan(self) -> RemovalPlan | None:
        return self._plan

    def show_plan(self, plan: RemovalPlan | None) -> None:
        """None: nothing is asked."""
        self._plan = plan
        self.setVisible(plan is not None)
        if plan is None:
            return
        words = self.tr("%n file(s), {0}, would go.", "", len(plan.files)).format(size_text(plan.bytes))
        if plan.shared_with:
            words += " " + self.tr("The folder is shared with {0}.").format(plan.shared_with)
        self.words.say(words, "warn" if plan.shared_with else "")
        lines = [f"{path}  {size_text(size)}" for path, size in plan.files]
        lines += [self.tr("stays: {0} ({1})").format(path, why) for path, why in plan.kept]
        self.files.setPlainText("\n".join(lines))

    def _on_remove(self) -> None:
        if (plan := self._plan) is not None:
            self.show_plan(None)
            self.agreed.emit(plan)
