"""The window's one style sheet. Its colours are roles of the palette, so that another scheme is another palette.

A sheet with colours in it would be another sheet each time, for which Qt polishes a widget once for each of its
ancestors: 2 s with every screen open.
"""

from __future__ import annotations

from collections.abc import Callable
from string import Template

from PySide6.QtGui import QPalette

from slipstream_app.resources import icon_file

# Which role of the palette carries a colour of the theme. Nothing is drawn here with the last three as Qt means them.
ROLES = {
    "bg": QPalette.ColorRole.Window,
    "surface": QPalette.ColorRole.Base,
    "raised": QPalette.ColorRole.Button,
    "border": QPalette.ColorRole.Mid,
    "text": QPalette.ColorRole.Text,
    "muted": QPalette.ColorRole.PlaceholderText,
    "accent": QPalette.ColorRole.Highlight,
    "on_accent": QPalette.ColorRole.HighlightedText,
    "fill": QPalette.ColorRole.Accent,
    "bad": QPalette.ColorRole.BrightText,
    "ok": QPalette.ColorRole.LinkVisited,
    "warn": QPalette.ColorRole.Shadow,
}

# Set by `widget.setProperty("role", "card")`. `$name` is a colour.
_ROLES = """
QFrame[role="card"] { background: $surface; border: 1px solid $border; border-radius: 8px; }
QFrame[role="bar"] { background: $bg; border: 0; border-bottom: 1px solid $border; }
QFrame[role="footer"] { background: $bg; border: 0; border-top: 1px solid $border; }
QFrame[role="side"] { background: $bg; border: 0; border-right: 1px solid $border; }
QFrame[role="drawer"] { background: $bg; border: 0; border-left: 1px solid $border; }
QFrame[role="chip"] { background: $raised; border: 1px solid $border; border-radius: 6px; }
QFrame[role="line"] { background: $border; border: 0; max-height: 1px; }
QAbstractScrollArea[role="bare"] { background: transparent; border: 0; }
QLabel[role="accent"] { color: $accent; }
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
QProgressBar[role="thin"] { background: $raised; border: 0; border-radius: 3px; }
QProgressBar[role="thin"]::chunk { background: $accent; border-radius: 3px; }
QToolTip { background: $raised; color: $text; border: 1px solid $border; padding: 4px; }
"""

# Fusion's own look beside these would be of another decade.
_PLAIN_CONTROLS = """
QPushButton { background: $surface; color: $text; border: 1px solid $border; border-radius: 6px; padding: $pad; }
QPushButton:hover { background: $raised; }
QPushButton:pressed { background: $border; }
QPushButton:disabled { color: $muted; background: $bg; }
QPushButton:focus { border: 2px solid $accent; padding: $pad_in; }
QLineEdit { background: $surface; border: 1px solid $border; border-radius: 6px; padding: $field 7px; }
QLineEdit:focus { border: 2px solid $accent; padding: $field_in 6px; }
QMenu { background: $surface; color: $text; border: 1px solid $border; padding: 4px; }
QMenu::item { padding: 4px 24px 4px 12px; border-radius: 4px; }
QMenu::item:selected { background: $accent; color: $on_accent; }
QMenu::item:disabled { color: $muted; background: transparent; }
QMenu::separator { height: 1px; background: $border; margin: 4px 8px; }
QMenuBar { background: $bg; }
QMenuBar::item { padding: 4px 8px; background: transparent; }
QMenuBar::item:selected { background: $raised; }
QComboBox { background: $surface; border: 1px solid $border; border-radius: 6px; padding: $field 8px; }
QComboBox:focus { border: 2px solid $accent; padding: $field_in 7px; }
QAbstractSpinBox { background: $surface; border: 1px solid $border; border-radius: 6px; padding: $spin 6px; }
QAbstractSpinBox:focus { border: 2px solid $accent; padding: $spin_in 5px; }
QAbstractSpinBox:disabled { background: $bg; color: $muted; }
QPlainTextEdit[role="field"] { background: $surface; border: 1px solid $border; border-radius: 6px; padding: 2px 3px; }
QPlainTextEdit[role="field"]:focus { border: 2px solid $accent; padding: 1px 2px; }
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { border: 0; width: 18px; background: transparent; }
QAbstractSpinBox::up-button { subcontrol-position: top right; }
QAbstractSpinBox::down-button { subcontrol-position: bottom right; }
QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover { background: $raised; border-radius: 4px; }
QAbstractSpinBox::up-arrow { image: url("$up"); width: 9px; height: 9px; }
QAbstractSpinBox::down-arrow { image: url("$chevron"); width: 9px; height: 9px; }
QComboBox::drop-down { border: 0; width: 20px; }
QComboBox::down-arrow { image: url("$chevron"); width: 12px; height: 12px; }
QHeaderView { background: $bg; }
QHeaderView::section { background: $bg; color: $muted; border: 0; border-bottom: 1px solid $border; padding: 4px 9px; }
QTableView { outline: 0; selection-background-color: $accent; selection-color: $on_accent; }
QTableView::item { padding: 0 6px; }
QTableView::item:selected { background: $accent; color: $on_accent; }
QTreeView { background: $surface; border: 1px solid $border; border-radius: 6px; outline: 0; }
QTreeView::item:selected { background: $accent; color: $on_accent; }
QProgressBar { background: $raised; border: 0; border-radius: 4px; }
QProgressBar::chunk { background: $accent; border-radius: 4px; }
QSlider::groove:horizontal { background: $border; height: 4px; border-radius: 2px; }
QSlider::sub-page:horizontal { background: $accent; height: 4px; border-radius: 2px; }
QSlider::handle:horizontal { background: $surface; border: 1px solid $muted; width: 14px; margin: -6px 0;
    border-radius: 8px; }
QSlider::handle:horizontal:focus { border: 2px solid $accent; width: 12px; }
QCheckBox, QRadioButton { spacing: 8px; }
QCheckBox::indicator, QRadioButton::indicator, QTreeView::indicator { width: $box; height: $box;
    border: 1px solid $muted; background: $surface; }
QCheckBox::indicator, QTreeView::indicator { border-radius: 4px; }
QRadioButton::indicator { border-radius: $half_box; }
QCheckBox::indicator:checked, QTreeView::indicator:checked { background: $fill; border-color: $fill;
    image: url("$check"); }
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


def style_sheet(px: Callable[[float], int], *, is_native: bool) -> str:
    """`px`: a measure at the zoom. `is_native`: plain controls stay as the system draws them."""
    values = {name: f"palette({_words(role.name)})" for name, role in ROLES.items()}
    values |= {
        "chevron": icon_file("chevron-down-grey").as_posix(),
        "up": icon_file("chevron-up-grey").as_posix(),
        "check": icon_file("check-white").as_posix(),
        "box": f"{px(14)}px",
        "half_box": f"{px(14) // 2 + 1}px",
        "dot": f"{px(4)}px",
        "dot_box": f"{px(14) + 2 - 2 * px(4)}px",
        "row": f"{px(26)}px",
        "small": f"{px(3)}px",
        # Fields are as high as buttons; the frame of a spin box is wider than its border.
        "field": f"{px(5) - 1}px",
        "field_in": f"{px(5) - 2}px",
        "spin": f"{px(5) - 2}px",
        "spin_in": f"{px(5) - 3}px",
        "pad": f"{px(5)}px {px(12)}px",
        # Under a focus ring, which is a pixel wider: nothing moves when it comes.
        "small_in": f"{px(3) - 1}px",
        "pad_in": f"{px(5) - 1}px {px(12) - 1}px",
    }
    return Template(_ROLES if is_native else _ROLES + _PLAIN_CONTROLS).substitute(values)


def _words(name: str) -> str:
    """PlaceholderText as a style sheet writes it: placeholder-text."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")
