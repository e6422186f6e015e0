"""One sentence of cause: why answers are as fast as they are."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from slipstream.curves import Curves
from slipstream_app.models.telemetry import Figures
from slipstream_app.numbers import number_text, share_text
from slipstream_app.theme import Theme
from slipstream_app.widgets.panel import Panel, wrapped

FEW_KEPT = 0.3
BOUND = 0.6  # of the bandwidth, from which on it is what decoding waits for


class SpeedVerdict(Panel):
    """Nothing is guessed: what was not measured is not said."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, self.tr("Verdict"), parent)
        self.words = wrapped(theme)
        self.words.setAccessibleName(self.tr("Verdict"))
        self.body.addWidget(self.words)

    def judge(self, figures: Figures, plain_tps: float | None, curves: Curves | None = None) -> None:
        """`plain_tps`: plain decoding's, where it was measured on this machine. `curves`: what calibration found."""
        told = (self._sentence(figures, plain_tps), self._bound(curves))
        self.words.say(" ".join(words for words in told if words))

    def _bound(self, curves: Curves | None) -> str:
        """What holds plain decoding back, which drafting gets around."""
        share = None if curves is None else curves.bandwidth_share()
        if share is None:
            return ""
        words = (
            self.tr("Bandwidth-bound: plain decoding uses {0} of this machine's measured memory bandwidth.")
            if share >= BOUND
            else self.tr("Not bandwidth-bound: plain decoding uses {0} of this machine's measured memory bandwidth.")
        )
        return words.format(share_text(share))

    def _sentence(self, figures: Figures, plain: float | None) -> str:
        last = figures.last
        if not figures.rounds:
            return self.tr("Nothing to judge yet.")
        if not figures.drafted:
            return self.tr("Plain decoding: one token for each pass over the model.")
        share, per_round = figures.accepted_share or 0.0, figures.tokens_per_round or 0.0
        if share < FEW_KEPT:
            return self.tr(
                "Few drafts are kept ({0}): this text surprises the drafter. Code and rewriting suit it better."
            ).format(share_text(share))
        if plain and last is not None and last.tokens_per_round > 1:
            return self.tr(
                "{0} times as fast as plain decoding on this machine ({1} tok/s): {2} tokens a pass."
            ).format(number_text(last.decode_tps / plain, 2), number_text(plain), number_text(per_round, 2))
        words = self.tr("{0} tokens for each pass over the model, where plain decoding gets one.")
        if not plain:
            words += " " + self.tr("How fast plain decoding is here was not measured yet: run a Race.")
        return words.format(number_text(per_round, 2))
