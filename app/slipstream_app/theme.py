"""Colours by name, light and dark, and the measures of the window. Widgets re-read them when `changed`."""

from __future__ import annotations

import sys
from string import Template
from typing import Literal

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from slipstream_app.resources import icon_file

Scheme = Literal["system", "light", "dark"]

# Spacing and corners, in device-independent pixels at 100 %.
XS, S, M, L, XL = 4, 8, 12, 16, 24
RADIUS = 8
MIN_ZOOM, MAX_ZOOM = 80, 200

# text, muted and the marks are at least 4.5:1 on bg, surface and raised (tests/app/test_theme.py).
LIGHT = {
    "bg": "#f5f5f7",
    "surface": "#ffffff",
    "raised": "#ececf0",
    "border": "#d5d5dc",
    "text": "#1c1c21",
    "muted": "#5a5a66",
    "accent": "#0058c8",
    "ok": "#156b38",
    "warn": "#854800",
    "bad": "#b3202c",
    "draft": "#0b62a8",
    "ngram": "#7c3a98",
    "model": "#3f4652",
    "plain": "#5c5c66",
}
DARK = {
    "bg": "#1b1b1f",
    "surface": "#232328",
    "raised": "#2e2e35",
    "border": "#43434d",
    "text": "#ececf1",
    "muted": "#a9a9b6",
    "accent": "#6cb0ff",
    "ok": "#5cc98a",
    "warn": "#eda94b",
    "bad": "#ff8585",
    "draft": "#62b2f5",
    "ngram": "#cf93ea",
    "model": "#bcc3d0",
    "plain": "#a9a9b6",
}
NAMES = tuple(LIGHT)

# What the accent setting offers; "system" takes the palette's own where its contrast allows.
ACCENTS = {
    "blue": ("#0058c8", "#6cb0ff"),
    "purple": ("#8a2fa8", "#d79bef"),
    "pink": ("#b81d6a", "#ff93bf"),
    "red": ("#b3202c", "#ff8585"),
    "orange": ("#934500", "#f5a356"),
    "green": ("#156b38", "#5cc98a"),
    "graphite": ("#55555f", "#b4b4be"),
}


def contrast(one: QColor, two: QColor) -> float:
    """WCAG 2's ratio, from 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: QColor) -> float:
    def linear(part: float) -> float:
        return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) + 0.0722 * linear(colour.blueF())


# Set by `widget.setProperty("role", "card")`. `$name` is a colour.
_ROLES = """
QFrame[role="card"] { background: $surface; border: 1px solid $border; border-radius: $radius; }
QFrame[role="bar"] { background: $bg; border: 0; border-bottom: 1px solid $border; }
QFrame[role="footer"] { background: $bg; border: 0; border-top: 1px solid $border; }
QFrame[role="side"] { background: $bg; border: 0; border-right: 1px solid $border; }
QFrame[role="line"] { background: $border; border: 0; max-height: 1px; }
QLabel[role="muted"] { color: $muted; }
QLabel[role="bad"] { color: $bad; }
QLabel[role="ok"] { color: $ok; }
QLabel[role="warn"] { color: $warn; }
QPushButton[role="primary"] { background: $accent; color: $on_accent; border: 1px solid $accent;
    border-radius: 6px; padding: $pad; font-weight: 600; }
QPushButton[role="primary"]:disabled { background: $raised; color: $muted; border-color: $border; }
QPushButton[role="danger"] { background: $surface; color: $bad; border: 1px solid $bad; border-radius: 6px;
    padding: $pad; }
QPushButton[role="danger"]:focus, QPushButton[role="primary"]:focus { border: 2px solid $text; padding: $pad_in; }
QToolButton[role="flat"], QPushButton[role="flat"] { background: transparent; border: 1px solid transparent;
    border-radius: 6px; padding: $small; color: $text; }
QToolButton[role="flat"]:hover, QPushButton[role="flat"]:hover { background: $raised; }
QToolButton[role="flat"]:checked { background: $raised; border-color: $border; }
QToolButton[role="flat"]:focus, QPushButton[role="flat"]:focus { border: 2px solid $accent; padding: $small_in; }
QToolButton[role="flat"]::menu-indicator { image: none; }
QListView[role="list"] { background: transparent; outline: 0; padding: 2px; }
QListView[role="list"]::item { min-height: $row; padding: 0 8px; border-radius: 6px; color: $text; }
QListView[role="list"]::item:hover { background: $raised; }
QListView[role="list"]::item:selected { background: $accent; color: $on_accent; }
QToolTip { background: $raised; color: $text; border: 1px solid $border; padding: 4px; }
"""

# Fusion's own look beside these would be of another decade.
_PLAIN_CONTROLS = """
QPushButton { background: $surface; color: $text; border: 1px solid $border; border-radius: 6px; padding: $pad; }
QPushButton:hover { background: $raised; }
QPushButton:pressed { background: $border; }
QPushButton:disabled { color: $muted; background: $bg; }
QPushButton:focus { border: 2px solid $accent; padding: $pad_in; }
QLineEdit { background: $surface; border: 1px solid $border; border-radius: 6px; padding: $small 7px; }
QLineEdit:focus { border: 2px solid $accent; padding: $small_in 6px; }
QMenu { background: $surface; color: $text; border: 1px solid $border; padding: 4px; }
QMenu::item { padding: 4px 24px 4px 12px; border-radius: 4px; }
QMenu::item:selected { background: $accent; color: $on_accent; }
QMenu::item:disabled { color: $muted; background: transparent; }
QMenu::separator { height: 1px; background: $border; margin: 4px 8px; }
QMenuBar { background: $bg; }
QMenuBar::item { padding: 4px 8px; background: transparent; }
QMenuBar::item:selected { background: $raised; }
QComboBox { background: $surface; border: 1px solid $border; border-radius: 6px; padding: $small 8px; }
QComboBox:focus { border: 2px solid $accent; padding: $small_in 7px; }
QAbstractSpinBox { background: $surface; border: 1px solid $border; border-radius: 6px; padding: $small 6px; }
QAbstractSpinBox:focus { border: 2px solid $accent; padding: $small_in 5px; }
QAbstractSpinBox:disabled { background: $bg; color: $muted; }
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { border: 0; width: 18px; background: transparent; }
QAbstractSpinBox::up-button { subcontrol-position: top right; }
QAbstractSpinBox::down-button { subcontrol-position: bottom right; }
QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover { background: $raised; border-radius: 4px; }
QAbstractSpinBox::up-arrow { image: url("$up"); width: 9px; height: 9px; }
QAbstractSpinBox::down-arrow { image: url("$chevron"); width: 9px; height: 9px; }
QComboBox::drop-down { border: 0; width: 20px; }
QComboBox::down-arrow { image: url("$chevron"); width: 12px; height: 12px; }
QHeaderView { background: $bg; }
QHeaderView::section { background: $bg; color: $muted; border: 0; border-bottom: 1px solid $border; padding: 4px 6px; }
QTableView { outline: 0; selection-background-color: $accent; selection-color: $on_accent; }
QTableView::item { padding: 0 6px; }
QTableView::item:selected { background: $accent; color: $on_accent; }
QProgressBar { background: $raised; border: 0; border-radius: 4px; }
QProgressBar::chunk { background: $accent; border-radius: 4px; }
QSlider::groove:horizontal { background: $border; height: 4px; border-radius: 2px; }
QSlider::sub-page:horizontal { background: $accent; height: 4px; border-radius: 2px; }
QSlider::handle:horizontal { background: $surface; border: 1px solid $muted; width: 14px; margin: -6px 0;
    border-radius: 8px; }
QSlider::handle:horizontal:focus { border: 2px solid $accent; width: 12px; }
QCheckBox, QRadioButton { spacing: 8px; }
QCheckBox::indicator, QRadioButton::indicator { width: $box; height: $box; border: 1px solid $muted;
    background: $surface; }
QCheckBox::indicator { border-radius: 4px; }
QRadioButton::indicator { border-radius: $half_box; }
QCheckBox::indicator:checked { background: $accent; border-color: $accent; image: url("$check"); }
QRadioButton::indicator:checked { background: $surface; border: $dot solid $accent; width: $dot_box;
    height: $dot_box; }
QCheckBox:focus, QRadioButton:focus { color: $accent; }
QCheckBox::indicator:focus { border: 2px solid $accent; }
QCheckBox::indicator:disabled { border-color: $border; }
QScrollBar:vertical { background: transparent; width: 10px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
QScrollBar::handle { background: $border; border-radius: 4px; margin: 1px; min-height: 28px; min-width: 28px; }
QScrollBar::handle:hover { background: $muted; }
QScrollBar::add-line, QScrollBar::sub-line, QScrollBar::add-page, QScrollBar::sub-page { background: none; border: 0;
    width: 0; height: 0; }
"""


class Theme(QObject):
    """The one source of colours and fonts. Lives on the main thread, made after the QApplication."""

    changing = Signal()  # before `changed`: each widget there is costs a style sheet time
    changed = Signal()  # scheme, accent or zoom

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._scheme: Scheme = "system"
        self._accent = "system"
        self._zoom = 100
        self._code_family = ""
        self.reduces_motion = False  # nothing may move by itself
        self._system_accent = _system_accent()
        self._points = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).pointSizeF()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_change)
        self._apply()

    # What is chosen.

    @property
    def is_dark(self) -> bool:
        if self._scheme == "system":
            return QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
        return self._scheme == "dark"

    @property
    def zoom(self) -> int:
        """In percent."""
        return self._zoom

    def set_scheme(self, scheme: Scheme) -> None:
        if scheme == self._scheme:
            return
        self._scheme = scheme
        wanted = {"system": Qt.ColorScheme.Unknown, "light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}
        QGuiApplication.styleHints().setColorScheme(wanted[scheme])
        self._apply()

    def set_accent(self, name: str) -> None:
        """ "system" or a key of ACCENTS."""
        if name != self._accent:
            self._accent = name
            self._apply()

    def set_zoom(self, percent: int) -> None:
        percent = max(MIN_ZOOM, min(MAX_ZOOM, percent))
        if percent != self._zoom:
            self._zoom = percent
            self._apply()

    def set_code_family(self, family: str) -> None:
        """Empty: the system's."""
        if family != self._code_family:
            self._code_family = family
            self.changed.emit()

    # What follows from it.

    def color(self, name: str) -> QColor:
        if name == "accent":
            return self._accent_color()
        return QColor((DARK if self.is_dark else LIGHT)[name])

    def css(self, name: str) -> str:
        """A colour as a style sheet or HTML wants it."""
        return self.color(name).name()

    def px(self, value: float) -> int:
        """A measure at the chosen zoom."""
        return round(value * self._zoom / 100)

    def font(self, scale: float = 1.0, *, bold: bool = False) -> QFont:
        """The system's font, with digits of one width."""
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
        font.setPointSizeF(self._points * scale * self._zoom / 100)
        font.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
        font.setFeature(QFont.Tag("tnum"), 1)
        return font

    def code_font(self, scale: float = 0.95) -> QFont:
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        if self._code_family:
            font.setFamily(self._code_family)
        font.setPointSizeF(self._points * scale * self._zoom / 100)
        return font

    def on(self, name: str) -> QColor:
        """Black or white: what reads best on a filled colour."""
        ground = self.color(name)
        return max((QColor("white"), QColor("#111114")), key=lambda ink: contrast(ink, ground))

    def _accent_color(self) -> QColor:
        dark = self.is_dark
        if self._accent in ACCENTS:
            return QColor(ACCENTS[self._accent][dark])
        own = self._system_accent
        grounds = [QColor((DARK if dark else LIGHT)[name]) for name in ("bg", "surface", "raised")]
        if all(contrast(own, ground) >= 4.5 for ground in grounds):
            return own
        return QColor((DARK if dark else LIGHT)["accent"])

    @Slot()
    def _on_system_change(self) -> None:
        self._system_accent = _system_accent()
        if self._scheme == "system":
            self._apply()

    def _apply(self) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        # Each of these visits every widget, so none is done without need.
        palette, font, sheet = self._palette(), self.font(), self._style_sheet()
        if sheet != app.styleSheet():
            self.changing.emit()
        if palette != app.palette():
            app.setPalette(palette)
        if font != app.font():
            app.setFont(font)
        if sheet != app.styleSheet():
            app.setStyleSheet(sheet)
        self.changed.emit()

    def _style_sheet(self) -> str:
        """Few rules, by the dynamic property `role`; on a Mac plain controls stay native."""
        values = {name: self.css(name) for name in NAMES}
        values |= {
            "on_accent": self.on("accent").name(),
            "on_bad": self.on("bad").name(),
            "radius": f"{RADIUS}px",
            "chevron": icon_file("chevron-down-grey").as_posix(),
            "up": icon_file("chevron-up-grey").as_posix(),
            "check": icon_file("check-black" if self.on("accent").lightness() < 128 else "check-white").as_posix(),
            "box": f"{self.px(14)}px",
            "half_box": f"{self.px(14) // 2 + 1}px",
            "dot": f"{self.px(4)}px",
            "dot_box": f"{self.px(14) + 2 - 2 * self.px(4)}px",
            "row": f"{self.px(26)}px",
            "small": f"{self.px(3)}px",
            "pad": f"{self.px(5)}px {self.px(12)}px",
            # Under a focus ring, which is a pixel wider: nothing moves when it comes.
            "small_in": f"{self.px(3) - 1}px",
            "pad_in": f"{self.px(5) - 1}px {self.px(12) - 1}px",
        }
        rules = _ROLES if sys.platform == "darwin" else _ROLES + _PLAIN_CONTROLS
        return Template(rules).substitute(values)

    def _palette(self) -> QPalette:
        palette = QPalette()
        role = QPalette.ColorRole
        for where, name in (
            (role.Window, "bg"),
            (role.Base, "surface"),
            (role.AlternateBase, "bg"),
            (role.Button, "raised"),
            (role.ToolTipBase, "raised"),
            (role.WindowText, "text"),
            (role.Text, "text"),
            (role.ButtonText, "text"),
            (role.ToolTipText, "text"),
            (role.PlaceholderText, "muted"),
            (role.Link, "accent"),
            (role.LinkVisited, "accent"),
            (role.Accent, "accent"),
            (role.Highlight, "accent"),
            (role.Mid, "border"),
            (role.Dark, "border"),
            (role.Light, "raised"),
            (role.Midlight, "raised"),
        ):
            palette.setColor(where, self.color(name))
        palette.setColor(role.HighlightedText, self.on("accent"))
        faint = self.color("muted")
        for where in (role.WindowText, role.Text, role.ButtonText):
            palette.setColor(QPalette.ColorGroup.Disabled, where, faint)
        return palette


def _system_accent() -> QColor:
    return QApplication.style().standardPalette().color(QPalette.ColorRole.Accent)
