"""The Settings window: one page for each group of rows in the table, applied at once."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping

from PySide6.QtCore import QSize, Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QFontDatabase
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QFileDialog,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

import slipstream
from slipstream.store.paths import data_dir
from slipstream_app.mac import IS_MAC
from slipstream_app.settings import BY_KEY, CONTEXT, SETTINGS, Page, Setting, Settings, Value
from slipstream_app.strings import mark, shown
from slipstream_app.theme import XL, L, M, S, Theme

PAGES = {
    Page.GENERAL: mark("Settings", "General"),
    Page.APPEARANCE: mark("Settings", "Appearance"),
    Page.CHAT: mark("Settings", "Chat"),
    Page.MODELS: mark("Settings", "Models"),
    Page.PERFORMANCE: mark("Settings", "Performance"),
    Page.SERVER: mark("Settings", "Server"),
    Page.PRIVACY: mark("Settings", "Privacy"),
    Page.ABOUT: mark("Settings", "About"),
}

# Everybody this program talks to, and why.
HOSTS = {
    "huggingface.co": mark("Settings", "models and drafters, when you download them"),
}

LIBRARIES = {
    "PySide6-Essentials": "LGPL-3.0",
    "mlx": "MIT",
    "mlx-lm": "MIT",
    "transformers": "Apache-2.0",
    "huggingface-hub": "Apache-2.0",
    "llguidance": "MIT",
    "starlette": "BSD-3-Clause",
    "uvicorn": "BSD-3-Clause",
    "pyqtgraph": "MIT",
    "numpy": "BSD-3-Clause",
}


class SettingsWindow(QDialog):
    """Has no OK: a change counts when it is made."""

    def __init__(self, theme: Theme, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._settings = settings
        self.setWindowTitle(self.tr("Settings"))
        self.editors: dict[str, Editor] = {}
        self.list = QListWidget()
        self.list.setAccessibleName(self.tr("Pages"))
        self.list.setProperty("role", "list")
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.stack = QStackedWidget()
        for page, title in PAGES.items():
            self.list.addItem(shown(CONTEXT, title))
            area = QScrollArea(widgetResizable=True)
            area.setFrameShape(QFrame.Shape.NoFrame)
            area.setAccessibleName(shown(CONTEXT, title))
            area.setWidget(self._page(page))
            self.stack.addWidget(area)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.list)
        row.addWidget(self.stack, 1)
        self.list.currentRowChanged.connect(self.stack.setCurrentIndex)
        self.list.setCurrentRow(0)
        self.list.scheduleDelayedItemsLayout()  # the rows were measured before the style knew the list
        settings.changed.connect(self._on_changed)
        theme.changed.connect(self._on_theme)
        self._on_theme()
        self.resize(self.sizeHint())

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(760), self._theme.px(520))

    def open_at(self, place: str) -> None:
        """A page's name or a setting's key; anything else opens where it was."""
        key = place if place in BY_KEY else ""
        page = BY_KEY[key].page if key else next((page for page in PAGES if page.value == place), None)
        if page is not None:
            self.list.setCurrentRow(list(PAGES).index(page))
        self.show()
        self.raise_()
        self.activateWindow()
        if key in self.editors:
            self.editors[key].setFocus()

    def _page(self, page: Page) -> QWidget:
        match page:
            case Page.PRIVACY:
                return self._privacy()
            case Page.ABOUT:
                return self._about()
            case _:
                return self._form(page)

    def _form(self, page: Page) -> QWidget:
        widget = QWidget()
        form = QFormLayout(widget)
        form.setContentsMargins(XL, XL, XL, XL)
        form.setHorizontalSpacing(L)
        form.setVerticalSpacing(M)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.FieldsStayAtSizeHint)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
        for row in SETTINGS:
            if row.page is not page or (row.is_mac_only and not IS_MAC):
                continue
            editor = self.editors[row.key] = make_editor(row, self._settings.get(row.key), self._theme)
            editor.edited.connect(self._on_edited)
            column = QVBoxLayout()
            column.setSpacing(2)
            column.addWidget(editor)
            if row.help:
                help_ = QLabel(shown(CONTEXT, row.help), wordWrap=True)
                help_.setProperty("role", "muted")
                help_.setMinimumWidth(self._theme.px(300))
                column.addWidget(help_)
            label = QLabel("" if isinstance(row.default, bool) else shown(CONTEXT, row.label))
            label.setBuddy(editor.control)
            form.addRow(label, column)
        return widget

    def _privacy(self) -> QWidget:
        widget, column = _column()
        column.addWidget(
            QLabel(
                self.tr("Chats, settings and measurements stay on this machine. Nothing about you is sent."),
                wordWrap=True,
            )
        )
        column.addWidget(QLabel(self.tr("Slipstream talks to:")))
        for host, why in HOSTS.items():
            column.addWidget(QLabel(f"{host}: {shown(CONTEXT, why)}", wordWrap=True))
        folder = data_dir()
        column.addWidget(QLabel(self.tr("Your data: {0}").format(folder), wordWrap=True))
        reveal = QPushButton(self.tr("Show the folder"))
        reveal.clicked.connect(self._on_reveal)
        column.addWidget(reveal, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)
        return widget

    def _about(self) -> QWidget:
        widget, column = _column()
        name = QLabel(f"Slipstream {slipstream.__version__}")
        name.setFont(self._theme.font(1.4, bold=True))
        column.addWidget(name)
        column.addWidget(QLabel(self.tr("Free software under the MIT licence. Made with:")))
        lines = [
            f"{library} {version}   {licence}"
            for library, licence in LIBRARIES.items()
            if (version := _version_of(library))
        ]
        lines.append("Lucide icons   ISC")
        text = QLabel("\n".join(lines))
        text.setProperty("role", "muted")
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column.addWidget(text)
        column.addStretch(1)
        return widget

    @Slot(str, object)
    def _on_edited(self, key: str, value: Value) -> None:
        self._settings.set(key, value)

    @Slot(str)
    def _on_changed(self, key: str) -> None:
        if key in self.editors:
            self.editors[key].show_value(self._settings.get(key))

    @Slot()
    def _on_reveal(self) -> None:
        data_dir().mkdir(parents=True, exist_ok=True)
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(data_dir())))

    @Slot()
    def _on_theme(self) -> None:
        self.list.setFixedWidth(self._theme.px(170))


def _column() -> tuple[QWidget, QVBoxLayout]:
    widget = QWidget()
    column = QVBoxLayout(widget)
    column.setContentsMargins(XL, XL, XL, XL)
    column.setSpacing(M)
    return widget, column


def _version_of(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return ""


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
    box.setSuffix(f" {shown(CONTEXT, row.unit)}" if row.unit else "")
    box.setKeyboardTracking(False)
    box.setGroupSeparatorShown(row.high > 100_000)
    editor = Editor(row.key, box, lambda value: box.setValue(int(value)))
    box.valueChanged.connect(lambda value: editor.edited.emit(row.key, value))
    return editor


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
