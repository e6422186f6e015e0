"""What a calibration found, how far one is, and the button that starts it."""

from __future__ import annotations

from PySide6.QtCore import QDateTime, QLocale, Qt, Slot
from PySide6.QtWidgets import QProgressBar, QWidget

from slipstream.curves import Curves
from slipstream_app.models.calibrating import Calibrating, Phase
from slipstream_app.numbers import number_text, share_text
from slipstream_app.theme import Theme
from slipstream_app.widgets.panel import Panel, button, wrapped


class CalibrationPanel(Panel):
    def __init__(self, theme: Theme, calibrating: Calibrating, parent: QWidget | None = None) -> None:
        super().__init__(theme, self.tr("Measured on this machine"), parent)
        self._calibrating = calibrating
        self.words = wrapped(theme)
        self.words.setAccessibleName(self.tr("What was measured"))
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(8)
        self.bar.setAccessibleName(self.tr("Calibration"))
        self.stop = button(self.tr("Stop"), name=self.tr("Stop calibrating"))
        self.anyway = button(self.tr("Measure anyway"))
        self.measure = button(self.tr("Calibrate"))
        self.measure.setToolTip(self.tr("Takes some seconds. Auto then knows from the first round what pays."))
        self.measure.clicked.connect(self.start)
        self.anyway.clicked.connect(self._on_anyway)
        self.stop.clicked.connect(calibrating.stop)
        for widget in (self.stop, self.measure):
            self.head.addWidget(widget)
        self.body.addWidget(self.words)
        self.body.addWidget(self.anyway, 0, Qt.AlignmentFlag.AlignLeft)
        self.body.addWidget(self.bar)
        calibrating.changed.connect(self.refresh)
        calibrating.attend()
        self.refresh()

    @Slot()
    def start(self) -> None:
        self._calibrating.start()

    @Slot()
    def _on_anyway(self) -> None:
        self._calibrating.start(force=True)

    @Slot()
    def refresh(self) -> None:
        now = self._calibrating
        is_running = now.phase is Phase.RUNNING
        self.bar.setVisible(is_running)
        self.bar.setRange(0, now.total)
        self.bar.setValue(now.done)
        self.stop.setVisible(is_running)
        self.measure.setVisible(not is_running)
        self.measure.setEnabled(now.phase is not Phase.NO_MODEL)
        self.measure.setText(self.tr("Calibrate again") if now.kept is not None else self.tr("Calibrate"))
        self.anyway.setVisible(now.phase is Phase.REFUSED)
        is_bad = now.phase in (Phase.REFUSED, Phase.FAILED)
        self.words.say(self._sentence(), "warn" if is_bad else "muted" if now.phase is not Phase.MEASURED else "")

    def _sentence(self) -> str:
        now = self._calibrating
        if now.phase is Phase.MEASURED and now.kept is not None:
            when = QLocale().toString(QDateTime.fromSecsSinceEpoch(int(now.kept.at_s)), QLocale.FormatType.ShortFormat)
            return self._found(now.kept.curves) + " " + self.tr("Measured {0}.").format(when)
        if now.phase is Phase.RUNNING and now.total:
            return self.tr("Measuring, {0} of {1}").format(now.done, now.total)
        refused = self.tr("This machine is {0}, so what is measured now would mislead. Let it rest and try again.")
        return {
            Phase.NO_MODEL: self.tr("Load a model to measure what its passes cost here."),
            Phase.UNMEASURED: self.tr(
                "Not measured yet. It takes some seconds, and Auto then knows from its first round what pays."
            ),
            Phase.RUNNING: self.tr("Waiting for its turn"),
            Phase.REFUSED: refused.format(now.why),
        }.get(now.phase, now.why)

    def _found(self, curves: Curves) -> str:
        context = curves.contexts[0]
        plain_ms = curves.verify_ms(1, context)
        rows = max((rows for rows, _ in curves.points(context) if rows <= 8), default=1)
        said = [self.tr("A token takes {0} ms").format(number_text(plain_ms))]
        if rows > 1:
            checking = self.tr("checking %n draft(s) takes {0} ms", "", rows - 1)
            said.append(checking.format(number_text(curves.verify_ms(rows, context))))
        for mode, table in curves.drafters.items():
            drafts = max(table[min(table)])
            said.append(
                self.tr("{0} drafts {1} in {2} ms").format(
                    {"dspark": "DSpark", "dflash": "DFlash", "mtp": "MTP"}.get(mode, mode),
                    drafts,
                    number_text(curves.draft_ms(mode, drafts, context) or 0),
                )
            )
        out = ", ".join(said) + "."
        share = curves.bandwidth_share()
        if share is not None:
            out += " " + self.tr("Plain decoding uses {0} of the memory's speed.").format(share_text(share))
        return out
