"""One pair: whether it fits, what it is made of, and what can be done with it."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from slipstream.store.local import Place
from slipstream.store.memory import Kind
from slipstream.types import Mode
from slipstream_app.models.pairs import CONTEXTS, FitWord, PairFit, PairRow, Shelf
from slipstream_app.models.suggest import Sure, download_of
from slipstream_app.numbers import count_text, number_text, size_text
from slipstream_app.strings import mark, shown
from slipstream_app.theme import S, Theme
from slipstream_app.widgets.drafter_choice import DrafterChoice
from slipstream_app.widgets.file_list import FileList
from slipstream_app.widgets.flow import FlowLayout
from slipstream_app.widgets.keep_choice import KeepChoice
from slipstream_app.widgets.pair_table import parts_of
from slipstream_app.widgets.panel import Panel, Words, button, set_role, wrapped
from slipstream_app.widgets.peak_bar import StackBar
from slipstream_app.widgets.race_arm import arm_name
from slipstream_app.widgets.removal_panel import RemovalPanel

LIMITS: Mapping[Kind, str] = {  # what a pair may take at most, and why
    "GPU working set": mark("Limits", "GPU working set"),
    "GPU memory": mark("Limits", "GPU memory"),
    "free memory": mark("Limits", "free memory"),
    "memory of this container": mark("Limits", "memory of this container"),
    "memory of this machine": mark("Limits", "memory of this machine"),
}


class PairDetails(QScrollArea):
    """Its buttons are for whoever made it to connect."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = Words(theme, "", bold=True, scale=1.1)
        self.fit_words = wrapped(theme)
        self.bar = StackBar(theme, self.tr("Memory of this pair"))
        self.drafters = DrafterChoice(theme)
        self.files = FileList(theme)
        self.facts = wrapped(theme, "", "muted")
        self.facts.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.problem = wrapped(theme, "", "bad")
        self.load = button(self.tr("Load"), "primary")
        self.get = button(self.tr("Get"), "primary")
        self.check = button(self.tr("Check whether it fits"))
        self.race = button(self.tr("Race…"), name=self.tr("Race this pair"))
        self.calibrate = button(self.tr("Calibrate"), name=self.tr("Measure this pair on this machine"))
        self.make = button(self.tr("Make a drafter…"))
        self.reveal = button(self.tr("Reveal"), name=self.tr("Show the folder"))
        self.delete = button(self.tr("Delete…"))
        self.keep = KeepChoice(theme)
        row = FlowLayout(S)
        for widget in (self.load, self.get, self.check, self.race, self.calibrate, self.make, self.reveal, self.delete):
            row.addWidget(widget)
        row.addWidget(self.keep)
        self.removal = RemovalPanel(theme)
        self.panel = Panel(theme)
        for widget in (self.name, self.problem, self.fit_words, self.bar):
            self.panel.body.addWidget(widget)
        self.panel.body.addLayout(row)
        for widget in (self.removal, self.drafters, self.facts, self.files):
            self.panel.body.addWidget(widget)
        self.panel.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._inside = QWidget()
        column = QVBoxLayout(self._inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.panel)
        column.addStretch(1)
        self.setWidget(self._inside)
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(self.tr("Details"))

    def whole_height(self, width: int) -> int:
        """With nothing to scroll."""
        return self._inside.heightForWidth(width) + 2 * self.frameWidth()

    def show_row(
        self,
        row: PairRow,
        fit: PairFit | None,
        context: int,
        measured: Mapping[str, float],
        *,
        is_loaded: bool,
        can_get: bool,
    ) -> None:
        """`context`: tokens that `fit` was worked out for. `measured`: of plain decoding's speed, by who drafts.
        `can_get`: what is missing is not being fetched already."""
        self.name.say(row.title)
        self.problem.say(row.problem)
        self.problem.setVisible(bool(row.problem))
        self._show_fit(row, fit, min(context, row.context or context))
        known = {mode: measured[mode] for mode in Mode if mode in measured}
        speeds = ", ".join(f"{arm_name(mode)} {number_text(ratio, 2)}×" for mode, ratio in known.items())
        measured_here = [self.tr("Measured here: {0}").format(speeds)] if speeds else []
        facts = [*measured_here, *self._origin(row), *row.facts]
        self.facts.say("\n".join(facts))
        self.facts.setVisible(bool(facts))
        self.files.show_halves(row.halves)
        # A pair whose drafter is missing can be loaded without it.
        can_load = not row.problem and row.shelf is Shelf.ON_MAC
        self.load.setVisible(can_load)
        self.load.setText(self.tr("Unload") if is_loaded else self.tr("Load"))
        set_role(self.load, "" if is_loaded else "primary")
        self.get.setVisible(bool(row.missing) and not row.problem)
        self.get.setText(self._get_words(row))
        is_too_large = fit is not None and fit.word is FitWord.TOO_LARGE
        set_role(self.get, "primary" if row.shelf is Shelf.SUGGESTED and not is_too_large else "")
        self.get.setEnabled(can_get)
        is_unsure = fit is None or fit.word is FitWord.UNKNOWN or fit.is_estimate
        self.check.setVisible(row.shelf is Shelf.SUGGESTED and is_unsure)
        self.race.setVisible(is_loaded)
        self.calibrate.setVisible(is_loaded)
        self.keep.setVisible(can_load)
        self.make.setVisible(can_load and not row.is_made_here)
        self.reveal.setVisible(row.folder is not None)
        self.delete.setVisible(row.is_removable and not is_loaded)
        self.delete.setEnabled(self.removal.plan is None)

    def _origin(self, row: PairRow) -> list[str]:
        """Licences and folders."""
        not_said = self.tr("not stated in its files")
        if not row.halves:
            return [self.tr("Licence: {0}").format(row.licence)] if row.licence else []
        licences = list(dict.fromkeys(half.licence or not_said for half in row.halves))
        if len(licences) > 1:  # the drafter's is another one
            licences = [f"{half.name}: {half.licence or not_said}" for half in row.halves]
        folders = ", ".join(dict.fromkeys(str(half.folder) for half in row.halves))
        places = {
            Place.BUILT_IN: self.tr("part of Slipstream"),
            Place.HUB_CACHE: self.tr("Hugging Face's cache, which other programs share"),
            Place.LM_STUDIO: self.tr("shared with LM Studio"),
            Place.FOLDER: self.tr("a folder of your own"),
        }
        where = self.tr("Folder: {0}").format(folders)
        if row.place is not None:
            where = self.tr("{0} ({1})").format(where, places[row.place])
        return [self.tr("Licence: {0}").format("; ".join(licences)), where]

    def _get_words(self, row: PairRow) -> str:
        found = download_of(row)
        if found is None:
            return self.tr("Get")
        words = {
            Sure.EXACT: self.tr("Get {0}"),
            Sure.ABOUT: self.tr("Get about {0}"),
            Sure.AT_LEAST: self.tr("Get at least {0}"),
        }
        return words[found[1]].format(size_text(found[0]))

    def _show_fit(self, row: PairRow, fit: PairFit | None, context: int) -> None:
        is_known = fit is not None and fit.word is not FitWord.UNKNOWN
        self.bar.setVisible(is_known)
        if fit is None:
            self.fit_words.say(self.tr("Working out how much memory it takes…"), "muted")
            return
        if not is_known and row.shelf is Shelf.SUGGESTED and not row.problem:
            self.fit_words.say(
                self.tr("How much memory it takes is known once the hub was asked for its layout."), "muted"
            )
            return
        if not is_known:
            self.fit_words.say(self.tr("How much memory it takes is not known before it is loaded."), "muted")
            return
        names = (self.tr("model"), self.tr("drafter"), self.tr("context"), self.tr("working memory"))
        self.bar.show_parts(parts_of(fit, names), fit.limit, shown("Limits", LIMITS[fit.limit_name]))
        tokens, spare = count_text(context), fit.limit - fit.total
        match fit.word:
            case FitWord.FITS:
                words = self.tr("Fits at {0} tokens, with {1} to spare.").format(tokens, size_text(spare))
                self.fit_words.say(words, "ok")
            case FitWord.TIGHT:
                words = self.tr("Tight at {0} tokens: only {1} to spare.").format(tokens, size_text(spare))
                self.fit_words.say(words, "warn")
            case _:
                words = self.tr("Too large at {0} tokens: it needs {1} more than this machine gives.")
                words = words.format(tokens, size_text(-spare))
                if fit.longest_context >= CONTEXTS[0]:
                    words += " " + self.tr("It fits up to {0} tokens.").format(count_text(fit.longest_context))
                self.fit_words.say(words, "bad")
        if fit.is_estimate:
            words = self.tr("Worked out from what was published of it; checking asks the hub for its exact size.")
            self.fit_words.say(f"{self.fit_words.text()} {words}")
        if fit.lacks_drafter:
            words = self.tr("Its drafter is not counted: nobody published how large that is.")
            self.fit_words.say(f"{self.fit_words.text()} {words}")
