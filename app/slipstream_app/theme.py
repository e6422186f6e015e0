"""Colours by name, light and dark, and the measures of the window. Widgets re-read them when `changed`."""

from __future__ import annotations

import sys
from typing import Literal

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from slipstream_app.restyling import Restyling
from slipstream_app.style_sheet import ROLES, style_sheet

Scheme = Literal["system", "light", "dark"]

# Spacing and corners, in device-independent pixels at 100 %.
XS, S, M, L, XL = 4, 8, 12, 16, 24
RADIUS = 8  # as in the style sheet's cards
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
    "second": "#00666b",
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
    "second": "#4fc3bf",
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


class Theme(QObject):
    """The one source of colours and fonts. Lives on the main thread, made after the QApplication."""

    changed = Signal()  # scheme, accent, zoom or a font
    resizing = Signal()  # before `resized`: each widget there is costs a new style sheet time
    resized = Signal()  # zoom or a font, before `changed`

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._scheme: Scheme = "system"
        self._accent = "system"
        self._zoom = 100
        self._code_family = ""
        self.restyling = Restyling(self)
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
            self.resized.emit()
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
        palette, font = self._palette(), self.font()
        sheet = style_sheet(self.px, is_native=sys.platform == "darwin")
        has_other_colours = palette != app.palette()
        has_other_sheet = sheet != app.styleSheet()
        has_other_sizes = font != app.font() or has_other_sheet
        # Each of these visits widgets, so none is done without need.
        if has_other_sizes:
            self.resizing.emit()
        if has_other_colours:
            app.setPalette(palette)
        if font != app.font():
            app.setFont(font)
        if has_other_sheet:
            self.restyling.change_sheet(app, sheet, is_recoloured=has_other_colours)
        if has_other_sizes:
            self.resized.emit()
        if has_other_colours and not has_other_sheet:
            self.restyling.start()
        self.changed.emit()

    def _palette(self) -> QPalette:
        palette = QPalette()
        own = {"on_accent": self.on("accent"), "fill": self._fill()}
        for name, where in ROLES.items():
            palette.setColor(where, own.get(name) or self.color(name))
        role = QPalette.ColorRole
        for where, name in (
            (role.AlternateBase, "bg"),
            (role.ToolTipBase, "raised"),
            (role.WindowText, "text"),
            (role.ButtonText, "text"),
            (role.ToolTipText, "text"),
            (role.Link, "accent"),
            (role.Dark, "border"),
            (role.Light, "raised"),
            (role.Midlight, "raised"),
        ):
            palette.setColor(where, self.color(name))
        faint = self.color("muted")
        for where in (role.WindowText, role.Text, role.ButtonText):
            palette.setColor(QPalette.ColorGroup.Disabled, where, faint)
        return palette

    def _fill(self) -> QColor:
        """The accent, as dark as a white mark on it needs."""
        fill = self.color("accent")
        while contrast(fill, QColor("white")) < 3:
            fill = fill.darker(105)
        return fill


def _system_accent() -> QColor:
    return QApplication.style().standardPalette().color(QPalette.ColorRole.Accent)
