"""The figures under an answer, each with its meaning; a click copies them with what they were measured on."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QGuiApplication, QMouseEvent
from PySide6.QtWidgets import QToolTip, QWidget

from slipstream.types import Mode
from slipstream_app.messages import Json
from slipstream_app.numbers import close_text, count_text, number_text
from slipstream_app.precision import precision_text
from slipstream_app.setting import Detail
from slipstream_app.theme import Theme
from slipstream_app.widgets.flow import FlowLayout
from slipstream_app.widgets.panel import Words
from slipstream_app.widgets.race_arm import arm_name

_MODES = {mode.value: mode for mode in Mode}  # as facts have them


class StatsStrip(QWidget):
    copied = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._facts: Json = {}
        self._detail = Detail.STANDARD
        self._row = FlowLayout(0)
        self.setLayout(self._row)
        self._fit()
        theme.resized.connect(self._fit)
        self._labels: list[Words] = []
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(self.tr("Figures of this answer"))

    @Slot()
    def _fit(self) -> None:
        """As a word's space, on both sides of a dot."""
        self._row.setSpacing(QFontMetrics(self._theme.font(0.92)).horizontalAdvance(" "))

    def set_facts(self, facts: Json, detail: Detail = Detail.STANDARD) -> None:
        self._facts, self._detail = facts, detail
        pairs = self.figures()
        while len(self._labels) < len(pairs):
            label = Words(self._theme, role="muted", scale=0.92)
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents, False)
            self._row.addWidget(label)
            self._labels.append(label)
        for at, label in enumerate(self._labels):
            label.setVisible(at < len(pairs))
            if at < len(pairs):
                text, meaning = pairs[at]
                label.say(text if at == 0 else f"· {text}")
                label.setToolTip(meaning)
        self.setAccessibleDescription(self.line())

    def figures(self) -> list[tuple[str, str]]:
        """Each figure and what it means."""
        timings: Json = self._facts.get("timings") or {}
        if not timings:
            return []
        first = self.tr("first token {0} s, cached") if timings["reused_tokens"] else self.tr("first token {0} s")
        out = [
            (
                self.tr("{0} tok/s").format(number_text(timings["decode_tps"])),
                self.tr("Decode speed: tokens after the first, by the time from the first to the last"),
            ),
            (
                first.format(number_text(timings["ttft_s"], 2)),
                self.tr("From sending to the first token; {0} of {1} prompt tokens came from the cache").format(
                    count_text(timings["reused_tokens"]), count_text(timings["prompt_tokens"])
                ),
            ),
        ]
        if not timings["decode_tps"]:  # a single step has no speed
            out.pop(0)
        if self._detail is Detail.SIMPLE:
            return out[:1]
        if self._detail is Detail.EXPERT:
            out.append(
                (
                    self.tr("prompt {0} tok/s").format(number_text(timings["prefill_tps"], 0)),
                    self.tr("Prompt tokens that were computed, not cached, by the time until the first token"),
                )
            )
        if timings["rounds"]:
            out.append(
                (
                    self.tr("{0} per round").format(number_text(timings["tokens_per_round"])),
                    self.tr(
                        "Tokens that each of %Ln pass(es) of the model made; 1.0 is plain decoding",
                        "",
                        timings["rounds"],
                    ),
                )
            )
        if self._detail is Detail.EXPERT and timings.get("drafted"):
            out.append(
                (
                    self.tr("{0} of {1} drafts kept").format(
                        count_text(timings["accepted"]), count_text(timings["drafted"])
                    ),
                    self.tr("Drafted tokens that became part of the answer, of all that were drafted"),
                )
            )
        out.append(
            (
                self.tr("%Ln token(s)", None, timings["output_tokens"]),
                self.tr("Length of the answer, its end token included"),
            )
        )
        out.append((self.drafter(), self.tr("Who drafted. The text is the same under each")))
        return out

    def drafter(self) -> str:
        mode = str(self._facts.get("mode", "auto"))
        drafters: list[str] = list(self._facts.get("drafters", ()))
        if mode == "auto":
            mode = drafters[0] if drafters else Mode.LOOKUP.value
        return arm_name(_MODES[mode]) if mode in _MODES else mode

    def line(self) -> str:
        """As it is copied: the figures, and what they were measured on."""
        facts = self._facts
        options: Json = facts.get("options") or {}
        packed = str(facts.get("quantisation", ""))
        made_by = [str(facts.get("model", "")), precision_text(packed), str(facts.get("dtype", ""))]
        tail = [
            chip(),
            *(word for word in made_by if word and word != "none"),
            self.tr("context {0}").format(count_text(facts.get("timings", {}).get("prompt_tokens", 0))),
            self.tr("temperature {0}").format(close_text(options.get("temperature", 0))),
            self.tr("seed {0}").format(options.get("seed", 0)),
        ]
        return " | ".join([*(text for text, _ in self.figures()), *tail])

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            QGuiApplication.clipboard().setText(self.line())
            QToolTip.showText(self.mapToGlobal(QPoint(0, self.height())), self.tr("Copied"), self)
            self.copied.emit(self.line())


def chip() -> str:
    """What this machine calls its processor."""
    import platform

    return platform.processor() or platform.machine()
