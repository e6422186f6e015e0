"""A download: how far it is, what it waits for, and what would help it on."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QProgressBar, QWidget

from slipstream_app.models.pairs import DownloadState, Fetch
from slipstream_app.numbers import size_text, span_text
from slipstream_app.theme import S, Theme
from slipstream_app.widgets.panel import Panel, Words, button, wrapped


class DownloadCard(Panel):
    """One download. It goes on where it ended, also after a restart."""

    pause_asked = Signal(str)  # repository
    resume_asked = Signal(str)
    page_asked = Signal(str)  # address
    discard_asked = Signal(str)  # repository
    token_given = Signal(str, str)  # repository, token

    def __init__(self, theme: Theme, state: DownloadState, parent: QWidget | None = None) -> None:
        super().__init__(theme, state.repo, parent)
        self._state = state
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(8)
        self.bar.setRange(0, 1000)
        self.bar.setAccessibleName(self.tr("Download of {0}").format(state.repo))
        self.words = wrapped(theme)
        self.files = Words(theme, "", "muted", scale=0.9)
        self.switch = button("")
        self.page = button(self.tr("Open page"))
        self.discard = button(self.tr("Delete"), name=self.tr("Delete what is here of {0}").format(state.repo))
        self.discard.clicked.connect(self._on_discard)
        self.switch.clicked.connect(self._on_switch)
        self.page.clicked.connect(self._on_page)
        self.token = QLineEdit()
        self.token.setEchoMode(QLineEdit.EchoMode.Password)
        self.token.setPlaceholderText(self.tr("Paste your Hugging Face token"))
        self.token.setAccessibleName(self.tr("Hugging Face token"))
        self.token.textChanged.connect(self._tend_token)
        self.token.returnPressed.connect(self._on_token)
        self.use_token = button(self.tr("Use token"), "primary")
        self.use_token.clicked.connect(self._on_token)
        self.token_row = QWidget()
        tokens = QHBoxLayout(self.token_row)
        tokens.setContentsMargins(0, 0, 0, 0)
        tokens.setSpacing(S)
        tokens.addWidget(self.token, 1)
        tokens.addWidget(self.use_token)
        self._tend_token()
        self.head.addWidget(self.page)
        self.head.addWidget(self.discard)
        self.head.addWidget(self.switch)
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(self.bar, 1)
        self.body.addLayout(row)
        self.body.addWidget(self.words)
        self.body.addWidget(self.files)
        self.body.addWidget(self.token_row)
        self.show_state(state)

    @property
    def state(self) -> DownloadState:
        return self._state

    @property
    def is_moving(self) -> bool:
        return self._state.fetch in (Fetch.WAITING, Fetch.LOOKING, Fetch.RUNNING, Fetch.RETRYING)

    def show_state(self, state: DownloadState) -> None:
        self._state = state
        self.bar.setValue(round(1000 * state.done / state.total) if state.total else 0)
        self.words.say(self._sentence(state), "bad" if state.fetch is Fetch.FAILED else "")
        now = [name for name, done, size in state.files if 0 < done < size]
        self.files.say(", ".join(now[:3]))
        self.files.setVisible(bool(now))
        self.switch.setVisible(not state.is_over)
        self.switch.setText(self.tr("Pause") if self.is_moving else self.tr("Resume"))
        verb = self.tr("Pause {0}") if self.is_moving else self.tr("Resume {0}")
        self.switch.setAccessibleName(verb.format(state.repo))
        self.discard.setVisible(not self.is_moving and not state.is_over and state.done > 0)
        self.discard.setText(self.tr("Delete"))
        self.page.setVisible(bool(state.page))
        self.token_row.setVisible(state.wants_token)

    def _sentence(self, state: DownloadState) -> str:
        have = self.tr("{0} of {1}").format(size_text(state.done), size_text(state.total)) if state.total else ""
        speed = self.tr("{0} a second").format(size_text(round(state.bytes_per_s)))
        left = "" if state.remaining_s is None else self.tr("about {0} left").format(span_text(state.remaining_s))
        kept = (
            self.tr("Incomplete, {0}. What is here is not fetched again.").format(have) if have else self.tr("Paused")
        )
        return {
            Fetch.WAITING: self.tr("Waiting behind another download"),
            Fetch.LOOKING: self.tr("Asking the hub what is there"),
            Fetch.RUNNING: ", ".join(words for words in (have, speed, left) if words),
            Fetch.RETRYING: ". ".join(words for words in (have, state.words) if words),
            Fetch.PAUSED: kept if have else self.tr("Paused"),
            Fetch.DONE: self.tr("Downloaded and checked"),
            Fetch.FAILED: state.words,
        }[state.fetch]

    def _on_switch(self) -> None:
        (self.pause_asked if self.is_moving else self.resume_asked).emit(self._state.repo)

    @Slot()
    def _on_discard(self) -> None:
        """The second press does it."""
        sure = self.tr("Really delete")
        if self.discard.text() == sure:
            self.discard_asked.emit(self._state.repo)
        else:
            self.discard.setText(sure)

    @Slot()
    def _tend_token(self) -> None:
        self.use_token.setEnabled(bool(self.token.text().strip()))

    @Slot()
    def _on_token(self) -> None:
        """It leaves the field at once: nobody needs to see how long it is."""
        if token := self.token.text().strip():
            self.token.clear()
            self.token_given.emit(self._state.repo, token)

    def _on_page(self) -> None:
        self.page_asked.emit(self._state.page)
