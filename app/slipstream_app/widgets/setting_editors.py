"""The control of one setting, made from its row of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import Signal
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QCheckBox, QComboBox, QFileDialog, QHBoxLayout, QLineEdit, QPushButton, QSpinBox, QWidget

from slipstream_app.numbers import GAP, percent_text
from slipstream_app.setting import CONTEXT, Setting, Value
from slipstream_app.strings import mark, shown
from slipstream_app.theme import S, Theme


class Editor(QWidget):
    """One setting's control. Says `edited` with the key and the value; shows what it is told."""

    edited = Signal(str, object)

    def __init__(self, key: str, control: QWidget, show: Callable[[Value], None], *more: QWidget) -> None:
        super().__init__()
        self.key = key
        self.control = control
        self._show = show
        self.setFocusProxy(control)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(S)
        row.addWidget(control)
        for widget in more:
            row.addWidget(widget)
        row.addStretch(1)

    def show_value(self, value: Value) -> None:
        self.control.blockSignals(True)
        self._show(value)
        self.control.blockSignals(False)


def make_editor(row: Setting, value: Value, theme: Theme) -> Editor:
    """The control that fits a row's kind."""
    name = shown(CONTEXT, row.label)
    if isinstance(row.default, bool):
        editor = _check_box(row, name)
    elif row.choices or row.is_font:
        editor = _combo_box(row, row.choices if row.choices else _code_fonts())
    elif isinstance(row.default, int):
        editor = _spin_box(row)
    elif row.is_folder:
        editor = _folder(row, theme)
    else:
        editor = _line(row, theme)
    editor.control.setAccessibleName(name)
    editor.show_value(value)
    return editor


def _check_box(row: Setting, name: str) -> Editor:
    box = QCheckBox(name)
    editor = Editor(row.key, box, lambda value: box.setChecked(bool(value)))
    box.toggled.connect(lambda is_on: editor.edited.emit(row.key, is_on))
    return editor


def _combo_box(row: Setting, choices: Mapping[str, str]) -> Editor:
    box = QComboBox()
    for value, words in choices.items():
        box.addItem(shown(CONTEXT, words), value)
    editor = Editor(row.key, box, lambda value: box.setCurrentIndex(max(0, box.findData(value))))
    box.currentIndexChanged.connect(lambda _: editor.edited.emit(row.key, box.currentData()))
    return editor


def _spin_box(row: Setting) -> Editor:
    box = QSpinBox()
    box.setRange(row.low, row.high)
    box.setSingleStep(row.step)
    box.setSuffix(_suffix(row.unit))
    box.setSpecialValueText(shown(CONTEXT, row.lowest) if row.lowest else "")
    box.setKeyboardTracking(False)
    box.setGroupSeparatorShown(row.high > 100_000)
    editor = Editor(row.key, box, lambda value: box.setValue(int(value)))
    box.valueChanged.connect(lambda value: editor.edited.emit(row.key, value))
    return editor


def _suffix(unit: str) -> str:
    if unit == "%":
        return percent_text("")
    return GAP + shown(CONTEXT, unit) if unit else ""


def _line(row: Setting, theme: Theme) -> Editor:
    line = QLineEdit()
    line.setMinimumWidth(theme.px(260))
    if row.is_secret:
        line.setEchoMode(QLineEdit.EchoMode.PasswordEchoOnEdit)
    editor = Editor(row.key, line, lambda value: line.setText(str(value)))
    line.editingFinished.connect(lambda: editor.edited.emit(row.key, line.text().strip()))
    return editor


def _folder(row: Setting, theme: Theme) -> Editor:
    line = QLineEdit()
    line.setMinimumWidth(theme.px(260))
    browse = QPushButton(shown(CONTEXT, mark("Settings", "Choose…")))
    editor = Editor(row.key, line, lambda value: line.setText(str(value)), browse)

    def choose() -> None:
        folder = QFileDialog.getExistingDirectory(editor, "", line.text())
        if folder:
            line.setText(folder)
            editor.edited.emit(row.key, folder)

    browse.clicked.connect(choose)
    line.editingFinished.connect(lambda: editor.edited.emit(row.key, line.text().strip()))
    return editor


def _code_fonts() -> dict[str, str]:
    """Fonts of one width, and the system's own first."""
    families = [family for family in QFontDatabase.families() if QFontDatabase.isFixedPitch(family)]
    own = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
    return {"": mark("Settings", "As the system")} | {family: family for family in families if family != own}
