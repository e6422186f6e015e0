"""What stands where no message is yet: no model, a model that is loading, or four prompts to begin with."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from slipstream.events import Empty, Faulted, Loading, Status
from slipstream_app.theme import XL, L, M, S, Theme
from slipstream_app.widgets.panel import Words, button, wrapped


class ChatStart(QWidget):
    prompt_chosen = Signal(str)
    load_asked = Signal()
    models_asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.title = Words(theme, scale=1.5, bold=True)
        self.title.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.text = wrapped(theme, role="muted")
        self.text.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.load = button("", "primary")
        self.load.clicked.connect(self.load_asked)
        self.manage = button(self.tr("Other models…"))
        self.manage.clicked.connect(self.models_asked)
        self.prompts = QWidget()
        grid = QGridLayout(self.prompts)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(M)
        self.chips: list[QPushButton] = []
        for at, (kind, prompt) in enumerate(self.offers()):
            chip = _Chip(theme, kind, prompt)
            chip.clicked.connect(lambda _=False, prompt=prompt: self.prompt_chosen.emit(prompt))
            grid.addWidget(chip, at // 2, at % 2)
            self.chips.append(chip)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.load)
        buttons.addWidget(self.manage)
        buttons.addStretch(1)
        inner = QVBoxLayout()
        inner.setSpacing(M)
        inner.addStretch(2)
        inner.addWidget(self.title)
        inner.addWidget(self.text)
        inner.addSpacing(S)
        inner.addWidget(self.prompts)
        inner.addLayout(buttons)
        inner.addStretch(3)
        row = QHBoxLayout(self)
        row.setContentsMargins(XL, L, XL, L)
        row.addStretch(1)
        row.addLayout(inner, 8)
        row.addStretch(1)

    def offers(self) -> tuple[tuple[str, str], ...]:
        """Kind and prompt; how well each can be drafted differs, and that is the point."""
        return (
            (self.tr("Code"), self.tr("Write a Python class for a least-recently-used cache, with a short example.")),
            (
                self.tr("Rewrite"),
                self.tr("Rewrite this so that it sounds friendly: Your ticket was closed. Read the manual."),
            ),
            (
                self.tr("Maths"),
                self.tr("A train leaves at 9:40 and arrives at 13:05. How long is the journey? Show the steps."),
            ),
            (self.tr("Prose"), self.tr("Write the opening paragraph of a story that is set in a lighthouse.")),
        )

    def show_status(self, status: Status, suggestion: str) -> None:
        is_ready = False
        match status:
            case Empty():
                title, text = (
                    self.tr("No model is loaded"),
                    self.tr("Suggested for this machine: {0}").format(suggestion),
                )
                self.load.setText(self.tr("Load"))
            case Loading(name):
                title, text = self.tr("Loading {0}…").format(name), self.tr("You can write already.")
            case Faulted(error):
                title, text = self.tr("The model stopped"), error.message
                self.load.setText(self.tr("Load again"))
            case _:
                is_ready = True
                title, text = self.tr("What shall it be?"), self.tr("Everything stays on this machine.")
        self.title.say(title)
        self.text.say(text)
        self.prompts.setVisible(is_ready)
        for one in (self.load, self.manage):
            one.setVisible(isinstance(status, Empty | Faulted))


class _Chip(QPushButton):
    """A prompt to begin with: its kind above, the beginning of its words below."""

    def __init__(self, theme: Theme, kind: str, prompt: str) -> None:
        super().__init__()
        self._theme = theme
        self.setAccessibleName(f"{kind}: {prompt}")
        self.setToolTip(prompt)
        self.kind = Words(theme, kind, bold=True)
        self.words = wrapped(theme, prompt, "muted")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(M, M, M, M)
        self._column.addWidget(self.kind)
        self._column.addWidget(self.words)
        self._column.addStretch(1)
        for label in (self.kind, self.words):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)  # as high as its neighbour
        theme.resized.connect(self._fit)

    @Slot()
    def _fit(self) -> None:
        """All its words, whatever a button thinks that it needs."""
        needed = self._column.totalHeightForWidth(self.width())
        self.setMinimumHeight(max(self._theme.px(92), needed))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
