"""What comes of a race: its report, what is remembered of it, and its winner in use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from slipstream.measure import report
from slipstream.types import Mode
from slipstream_app.models.race import RaceResult
from slipstream_app.screens.base import AppContext
from slipstream_app.widgets.banner import Banner, Kind
from slipstream_app.widgets.race_arm import arm_name
from slipstream_app.widgets.saving import save_text


class RaceOutcome(QWidget):
    """Never seen; the dialog is its own."""

    def __init__(self, app: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        self._app = app
        self.result: RaceResult | None = None
        self.hide()

    def take(self, result: RaceResult) -> None:
        """For the list of pairs, and for whether new chats draft: what each arm gained here, or lost."""
        self.result = result
        choice = self._app.session.choice
        if choice is not None and result.claims_speed:
            arms = [arm for arm in result.race.arms if arm.speedup is not None]
            self._app.speedups.record(choice.title, {arm.mode.value: arm.speedup.median for arm in arms if arm.speedup})

    # The report.

    def text(self, *, as_json: bool) -> str:
        assert self.result is not None
        plan, write = self.result.plan, report.as_json_text if as_json else report.as_markdown
        return write(self.result.race, self.result.info, plan.options, [one.english for one in plan.marks])

    @Slot()
    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text(as_json=False))
        self._app.banners.show(Banner("race.report", Kind.INFO, self.tr("The report was copied, as Markdown.")))

    @Slot()
    def save(self) -> None:
        kinds = self.tr("Markdown (*.md);;JSON (*.json)")
        name, kind = QFileDialog.getSaveFileName(self, self.tr("Save the report"), "race.md", kinds)
        if name:
            file = Path(name)
            wants_json = "json" in kind.lower() and file.suffix == ".md"  # the name that was proposed
            self.save_to(file.with_suffix(".json") if wants_json else file)

    def save_to(self, file: Path) -> None:
        save_text(self._app.banners, file, self.text(as_json=file.suffix == ".json"))

    # The winner.

    @Slot()
    def use_winner(self) -> None:
        """New chats draft with it. A drafter that Auto would not take first is loaded alone."""
        winner = self.result.winner if self.result is not None else None
        info, choice = self._app.session.info, self._app.session.choice
        if winner is None or info is None or choice is None:
            return
        settings = self._app.settings
        settings.set("performance/mode", winner.value if winner in (Mode.LOOKUP, Mode.BASELINE) else "auto")
        is_second = winner in info.drafters and info.drafters[0] is not winner
        if is_second and choice.target is None:
            from slipstream.store import demo  # it imports MLX, which is loaded by now, on the engine's thread

            folder = str(demo.drafters()[winner])
            title = f"{choice.title.partition(' + ')[0]} + {arm_name(winner)}"
            self._app.session.load(replace(choice, title=title, drafters=(folder,)))
        words = self.tr("New chats use {0}.").format(arm_name(winner))
        if is_second and choice.target is not None:
            words = self.tr("Choose {0} as this pair's drafter.").format(arm_name(winner))
            self._app.navigator.go("models")
        self._app.banners.show(Banner("race.winner", Kind.INFO, words))
