"""The main window: a question, the answer as it comes, and how fast."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QCloseEvent, QTextCursor
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMainWindow,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from slipstream.errors import SlipstreamError
from slipstream.events import Delta, Done, Failed, Faulted, Loading, Prefill, Ready, Timings, Working
from slipstream.jobs import Job
from slipstream.types import Chat, Mode, Options, Request
from slipstream_app.bridge.session import Session

MAX_TOKENS = 512


class MainWindow(QMainWindow):
    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._job: Job | None = None
        self._is_ready = False
        self.setWindowTitle("Slipstream")
        self.resize(880, 560)

        self.answer = QPlainTextEdit(readOnly=True)
        self.answer.setAccessibleName(self.tr("Answer"))
        self.prompt = QLineEdit(placeholderText=self.tr("Ask something"))
        self.prompt.setAccessibleName(self.tr("Question"))
        self.mode = QComboBox()
        self.mode.setAccessibleName(self.tr("Who drafts"))
        self.send = QPushButton(self.tr("Send"))
        self.stop = QPushButton(self.tr("Stop"))
        self.state = QLabel(self.tr("Loading…"))
        self.state.setTextFormat(Qt.TextFormat.PlainText)

        row = QHBoxLayout()
        for widget in (self.prompt, self.mode, self.send, self.stop):
            row.addWidget(widget)
        column = QVBoxLayout()
        column.addWidget(self.answer)
        column.addLayout(row)
        centre = QWidget()
        centre.setLayout(column)
        self.setCentralWidget(centre)
        self.statusBar().addWidget(self.state)

        self.prompt.returnPressed.connect(self.submit)
        self.send.clicked.connect(self.submit)
        self.stop.clicked.connect(self.cancel)
        session.bus.status_changed.connect(self._on_status)
        session.bus.said.connect(self._on_event)
        self._refresh()

    @Slot()
    def submit(self) -> None:
        question = self.prompt.text().strip()
        if not question or self._job is not None or not self._is_ready:
            return
        options = Options(mode=Mode(self.mode.currentData()), max_tokens=MAX_TOKENS)
        self.answer.clear()
        try:
            self._job = self._session.submit(Request(Chat(({"role": "user", "content": question},)), options))
        except SlipstreamError as error:
            self.state.setText(error.message)
        self._refresh()

    @Slot()
    def cancel(self) -> None:
        if self._job is not None:
            self._job.cancel()

    @Slot(object)
    def _on_status(self, status: object) -> None:
        match status:
            case Loading(name):
                self.state.setText(self.tr("Loading {0}…").format(name))
            case Ready(info):
                if not self._is_ready:
                    self.mode.clear()
                    for mode in (*info.drafters, Mode.LOOKUP, Mode.BASELINE):
                        self.mode.addItem(_mode_name(self, mode), mode.value)
                    self.state.setText(self.tr("Ready: {0}").format(info.name))
                self._is_ready = True
            case Faulted(error):
                self._is_ready = False
                self.state.setText(error.message)
            case Working():
                pass
            case _:
                pass
        self._refresh()

    @Slot(int, object)
    def _on_event(self, number: int, event: object) -> None:
        if self._job is None or number != self._job.number:
            return
        match event:
            case Prefill(done, total, _):
                self.state.setText(self.tr("Reading {0} of {1} tokens").format(done, total))
            case Delta(text=text):
                self.answer.moveCursor(QTextCursor.MoveOperation.End)
                self.answer.insertPlainText(text)
            case Done(timings=timings):
                self.state.setText(self._speed(timings))
                self._job = None
            case Failed(error):
                self.state.setText(error.message)
                self._job = None
            case _:
                pass
        self._refresh()

    def _speed(self, timings: Timings) -> str:
        return self.tr("{0} tokens, {1} tok/s, {2} tokens per round").format(
            timings.output_tokens, f"{timings.decode_tps:.1f}", f"{timings.tokens_per_round:.2f}"
        )

    def _refresh(self) -> None:
        self.send.setEnabled(self._is_ready and self._job is None)
        self.stop.setEnabled(self._job is not None)
        self.mode.setEnabled(self._is_ready)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._session.stop()
        event.accept()


def _mode_name(window: MainWindow, mode: Mode) -> str:
    names = {
        Mode.AUTO: window.tr("Auto"),
        Mode.DSPARK: "DSpark",
        Mode.DFLASH: "DFlash",
        Mode.LOOKUP: window.tr("Lookup"),
        Mode.BASELINE: window.tr("Plain"),
    }
    return names[mode]
