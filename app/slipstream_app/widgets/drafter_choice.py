"""Who drafts, and how much of each one's drafts was kept on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QRadioButton, QVBoxLayout, QWidget

from slipstream.types import Mode
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.models.acceptance import Accepted
from slipstream_app.models.drafter_options import DrafterOption, Value
from slipstream_app.numbers import number_text, share_text
from slipstream_app.theme import XS, Theme
from slipstream_app.widgets.panel import Words
from slipstream_app.widgets.race_arm import arm_name


class DrafterChoice(QWidget):
    chosen = Signal(object)  # Value

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._options: tuple[DrafterOption, ...] = ()
        self._group = QButtonGroup(self)
        self._group.idClicked.connect(self._on_clicked)
        self.heading = Words(theme, "", "muted")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(XS)
        self._column.addWidget(self.heading)

    @property
    def buttons(self) -> list[QRadioButton]:
        return [button for button in self._group.buttons() if isinstance(button, QRadioButton)]

    @property
    def value(self) -> Value | None:
        at = self._group.checkedId()
        return self._options[at].value if 0 <= at < len(self._options) else None

    def show_options(self, options: Sequence[DrafterOption], current: Value | None) -> None:
        """One alone is no choice, and is not shown."""
        self.setVisible(len(options) > 1)
        is_live = any(isinstance(option.value, Mode) for option in options)
        self.heading.say(self.tr("Drafter of the next answers") if is_live else self.tr("Drafter to load it with"))
        if [option.value for option in options] != [option.value for option in self._options]:
            self._fill(len(options))
        self._options = tuple(options)
        self._group.setExclusive(False)  # else the one before stays chosen where `current` is none of these
        for at, option in enumerate(options):
            self._group.button(at).setText(self._text(option))
            self._group.button(at).setChecked(option.value == current)
        self._group.setExclusive(True)

    def _fill(self, count: int) -> None:
        for button in self.buttons:
            self._group.removeButton(button)
            self._column.removeWidget(button)
            button.hide()
            button.deleteLater()
        for at in range(count):
            button = QRadioButton()
            self._group.addButton(button, at)
            self._column.addWidget(button)

    def _text(self, option: DrafterOption) -> str:
        if option.value is Mode.AUTO:
            return self.tr("Auto: whatever is fastest, measured as it goes")
        if not option.measured:
            return self.tr("None: plain decoding") if isinstance(option.value, Mode) else self.tr("None")
        named = option.value.drafters if isinstance(option.value, PairChoice) else None
        name = f" ({named[0].rpartition('/')[2]})" if named else ""
        return "; ".join(f"{arm_name(mode)}{name}: {self._kept(kept)}" for mode, kept in option.measured)

    def _kept(self, kept: Accepted | None) -> str:
        if kept is None:
            return self.tr("not measured here")
        return self.tr("{0} of %Ln draft(s) accepted here, {1} tokens per round", "", kept.drafted).format(
            share_text(kept.share), number_text(kept.per_round, 2)
        )

    @Slot(int)
    def _on_clicked(self, at: int) -> None:
        self.chosen.emit(self._options[at].value)
