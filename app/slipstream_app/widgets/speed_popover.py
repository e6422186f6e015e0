"""Why this speed: who proposed each token of an answer, and the cause that matters most in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QFont, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QTextEdit, QVBoxLayout, QWidget

from slipstream_app.models.chat_speed import Cause, Source, Speed
from slipstream_app.numbers import count_text, number_text, share_text
from slipstream_app.theme import L, M, Theme
from slipstream_app.widgets.panel import Figure, Words, button, wrapped

_COLOURS = {Source.DRAFTER: "draft", Source.NGRAM: "ngram", Source.GRAMMAR: "ok", Source.MODEL: "model"}
MAX_TOKENS = 4000  # shown; a longer answer's beginning says as much


class SpeedPopover(QDialog):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._speed: Speed | None = None
        self._pieces: Sequence[str] = ()
        self.setWindowTitle(self.tr("Why this speed"))
        self.resize(theme.px(640), theme.px(460))
        self.cause = wrapped(theme)
        self.rounds = Figure(theme, self.tr("rounds"), "88888")
        self.per_round = Figure(theme, self.tr("tokens per round"), "88.88")
        self.share = Figure(theme, self.tr("of drafts accepted"), share_text(1))
        figures = QHBoxLayout()
        figures.setSpacing(L)
        for figure in (self.rounds, self.per_round, self.share):
            figures.addWidget(figure)
        figures.addStretch(1)
        self.legend = QHBoxLayout()
        self.legend.setSpacing(M)
        self.text = QTextEdit()
        self.text.setReadOnly(True)
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setAccessibleName(self.tr("The answer, each token with the letter of its source"))
        close = button(self.tr("Close"))
        close.clicked.connect(self.accept)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(L, L, L, M)
        column.setSpacing(M)
        column.addLayout(figures)
        column.addWidget(self.cause)
        column.addLayout(self.legend)
        column.addWidget(self.text, 1)
        column.addLayout(foot)
        self._legend: dict[Source, Words] = {}
        for source in Source:
            label = Words(theme, scale=0.95)
            self._legend[source] = label
            self.legend.addWidget(label)
        self.legend.addStretch(1)
        theme.changed.connect(self.refresh_theme)

    def show_speed(self, speed: Speed, pieces: Sequence[str]) -> None:
        """`pieces`: the text of each token."""
        self._speed, self._pieces = speed, pieces
        self.rounds.set(count_text(speed.rounds))
        self.per_round.set(number_text(speed.tokens_per_round, 2))
        self.share.set(share_text(speed.acceptance) if speed.drafted else "–")
        self.cause.say(self.sentence(speed))
        self.refresh_theme()

    def sentence(self, speed: Speed) -> str:
        share = share_text(speed.acceptance)
        repeated = share_text(speed.counts[Source.NGRAM] / max(1, len(speed.sources)))
        sentences = {
            Cause.SHORT: self.tr("Too short to say: a few tokens are a matter of luck."),
            Cause.CHOSEN_PLAIN: self.tr("Plain decoding was asked for, so every token took one pass of the model."),
            Cause.NO_DRAFTER: self.tr(
                "No drafter is loaded for this model: almost every token took a pass of its own."
            ),
            Cause.PARKED: self.tr("Drafting stopped at {0} tokens of context: plain decoding is faster there."),
            Cause.REPEATS: self.tr("{1} of the text repeats what came before, so it was looked up instead of drafted."),
            Cause.FORCED: self.tr("The schema left one way to go on for much of the text, which costs nothing."),
            Cause.HARD: self.tr("Only {2} of the drafts were right: this text is hard to foresee for the drafter."),
            Cause.EASY: self.tr("{2} of the drafts were right, so each pass of the model made several tokens."),
        }
        return sentences[speed.cause].format(count_text(speed.position), repeated, share)

    @Slot()
    def refresh_theme(self) -> None:
        if self._speed is None:
            return
        names = {
            Source.DRAFTER: self.tr("D drafter"),
            Source.NGRAM: self.tr("N lookup"),
            Source.GRAMMAR: self.tr("G schema"),
            Source.MODEL: self.tr("M model"),
        }
        for source, label in self._legend.items():
            count = self._speed.counts[source]
            label.say(f"{names[source]}  {count_text(count)}")
            label.setStyleSheet(f"color: {self._theme.css(_COLOURS[source])};")
            label.setVisible(count > 0)
        self._write(self._speed)

    def _write(self, speed: Speed) -> None:
        theme = self._theme
        self.text.setFont(theme.font())
        self.text.clear()
        cursor = QTextCursor(self.text.document())
        cursor.beginEditBlock()
        formats: dict[Source, tuple[QTextCharFormat, QTextCharFormat]] = {}
        for source in Source:
            word, letter = QTextCharFormat(), QTextCharFormat()
            word.setForeground(theme.color(_COLOURS[source]))
            word.setBackground(theme.color("raised"))
            letter.setForeground(theme.color(_COLOURS[source]))
            letter.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignSuperScript)
            letter.setFontWeight(QFont.Weight.Bold)
            formats[source] = (word, letter)
        last: Source | None = None
        for source, piece in list(zip(speed.sources, self._pieces, strict=False))[:MAX_TOKENS]:
            word, letter = formats[source]
            if source is not last:  # a run of one source has its letter once
                cursor.insertText(source.value, letter)
            cursor.insertText(piece, word)
            last = source
        cursor.endEditBlock()
        self.text.moveCursor(QTextCursor.MoveOperation.Start)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
