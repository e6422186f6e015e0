"""New colours reach every widget, those in sight at once, and leave nothing of the old ones; sizes and fonts stay."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFrame,
    QLabel,
    QLineEdit,
    QMainWindow,
    QMenu,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QSlider,
    QSpinBox,
    QStackedWidget,
    QTableWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from slipstream_app.theme import Theme
from slipstream_app.widgets.code_card import CodeCard
from slipstream_app.widgets.panel import Words, wrapped
from slipstream_app.widgets.prose import Prose
from slipstream_app.widgets.scrolling import Scrolling

MARKDOWN = "Words with `code` and a [link](https://example.com).\n\n> A quote.\n\n| a | b |\n| - | - |\n| 1 | 2 |\n"


def gallery(theme: Theme) -> QWidget:
    """One of every kind that the style sheet names, and text with colours of its own."""
    window = QWidget()
    column = QVBoxLayout(window)
    for role in ("card", "bar", "footer", "side", "drawer", "chip", "line"):
        frame = QFrame()
        frame.setProperty("role", role)
        QVBoxLayout(frame).addWidget(QLabel(role))
        column.addWidget(frame)
    for role in ("", "muted", "accent", "ok", "warn", "bad"):
        column.addWidget(Words(theme, role or "words", role, scale=1.2, bold=True))
    for role in ("", "primary", "danger", "flat"):
        push, tool = QPushButton(role), QToolButton()
        push.setProperty("role", role)
        tool.setProperty("role", role)
        tool.setText(role)
        column.addWidget(push)
        column.addWidget(tool)
    check, radio, bar, thin = QCheckBox("check"), QRadioButton("radio"), QProgressBar(), QProgressBar()
    check.setChecked(True)
    radio.setChecked(True)
    thin.setProperty("role", "thin")
    for each in (bar, thin):
        each.setValue(40)
    table = QTableWidget(1, 1)
    table.setFixedHeight(60)
    for made in (
        check,
        radio,
        bar,
        thin,
        QLineEdit("line"),
        QComboBox(),
        QSpinBox(),
        QSlider(),
        QPlainTextEdit("text"),
    ):
        column.addWidget(made)
    column.addWidget(table)
    prose, card = Prose(theme, MARKDOWN), CodeCard(theme, "python")
    card.set_text("def f(x):\n    return 'x'  # y\n", is_whole=True)
    for part in (prose, card):
        part.setFixedSize(300, part.fit(300))
        column.addWidget(part)
    window.resize(320, column.sizeHint().height())
    return window


@pytest.fixture
def calm(qtbot: QtBot, theme: Theme) -> Iterator[Theme]:
    theme.set_scheme("light")
    yield theme
    settle(qtbot, theme)


def settle(qtbot: QtBot, theme: Theme) -> None:
    qtbot.waitUntil(lambda: not theme.restyling.is_running, timeout=30_000)


def picture(qtbot: QtBot, window: QWidget) -> QImage:
    card = window.findChild(CodeCard)
    assert card is not None and card._highlighter is not None
    qtbot.waitUntil(lambda: not card._highlighter.is_reading, timeout=10_000)  # type: ignore[union-attr]
    return window.grab().toImage()


def test_a_window_that_changes_looks_like_one_that_was_made_so(qtbot: QtBot, calm: Theme) -> None:
    window = gallery(calm)
    qtbot.addWidget(window)
    window.show()
    light = picture(qtbot, window)
    calm.set_scheme("dark")
    dark = picture(qtbot, window)
    fresh = gallery(calm)
    qtbot.addWidget(fresh)
    fresh.show()
    assert picture(qtbot, fresh) == dark
    window.activateWindow()  # the ring of the focus is in the pictures too
    qtbot.waitUntil(window.isActiveWindow)
    calm.set_accent("pink")
    assert picture(qtbot, window) != dark
    calm.set_accent("system")
    calm.set_scheme("light")
    settle(qtbot, calm)
    assert picture(qtbot, window) == light


def buttons(theme: Theme) -> tuple[QWidget, QStackedWidget, QPushButton, QPushButton]:
    """A window with two pages that were both shown; the first is in sight."""
    window, pages = QWidget(), QStackedWidget()
    QVBoxLayout(window).addWidget(pages)
    seen, hidden = QPushButton("seen"), QPushButton("hidden")
    for push in (seen, hidden):
        push.setProperty("role", "primary")
        pages.addWidget(push)
    window.show()
    pages.setCurrentWidget(hidden)
    pages.setCurrentWidget(seen)
    return window, pages, seen, hidden


class Styled(QObject):
    """Counts how often a widget was told that its style is another."""

    def __init__(self, watched: QWidget) -> None:
        super().__init__(watched)
        self.count = 0
        watched.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        self.count += event.type() is QEvent.Type.StyleChange
        return False


def test_a_zoom_is_for_what_is_in_sight_and_for_the_rest_a_little_later(qtbot: QtBot, calm: Theme) -> None:
    window, _, seen, hidden = buttons(calm)
    qtbot.addWidget(window)
    told = Styled(hidden)
    low, low_hidden = seen.sizeHint().height(), hidden.sizeHint().height()
    calm.set_zoom(200)
    assert seen.sizeHint().height() > 1.5 * low
    assert told.count == 0
    assert hidden.testAttribute(Qt.WidgetAttribute.WA_WState_Polished)
    assert not hidden.testAttribute(Qt.WidgetAttribute.WA_SetStyle)
    settle(qtbot, calm)
    assert told.count == 1
    assert hidden.sizeHint().height() > 1.5 * low_hidden
    fresh, _, new, _ = buttons(calm)
    qtbot.addWidget(fresh)
    assert new.sizeHint() == seen.sizeHint()
    assert hidden.sizeHint().height() == seen.sizeHint().height()


def test_a_bar_is_no_higher_than_before_once_it_is_back(qtbot: QtBot, calm: Theme) -> None:
    """A status bar is as high as the highest widget in it, also of those that hide."""
    window, hidden = QMainWindow(), QPushButton("hidden")
    qtbot.addWidget(window)
    window.statusBar().addWidget(Words(calm, "words"))
    window.statusBar().addPermanentWidget(hidden)
    window.show()
    hidden.hide()
    window.resize(400, 300)
    before = window.statusBar().height()
    for zoom in (200, 100):
        calm.set_zoom(zoom)
        settle(qtbot, calm)
    qtbot.waitUntil(lambda: window.statusBar().height() == before, timeout=2000)


def test_a_page_that_is_shown_meanwhile_has_its_new_size_first(qtbot: QtBot, calm: Theme) -> None:
    window, pages, seen, hidden = buttons(calm)
    qtbot.addWidget(window)
    calm.set_zoom(200)
    assert calm.restyling.is_running
    pages.setCurrentWidget(hidden)
    assert calm.restyling.is_running
    assert hidden.sizeHint().height() == seen.sizeHint().height()


def test_drawers_in_drawers_have_their_new_sizes_when_they_are_shown_meanwhile(qtbot: QtBot, calm: Theme) -> None:
    """Only what is shown hurries: what hides in it waits, until it is shown itself."""
    window, drawer, inner = QWidget(), QFrame(), QFrame()
    seen, first, second = (QPushButton("words") for _ in range(3))
    for parent, children in ((window, (seen, drawer)), (drawer, (first, inner)), (inner, (second,))):
        column = QVBoxLayout(parent)
        for child in children:
            column.addWidget(child)
    qtbot.addWidget(window)
    window.show()  # all were shown once
    inner.hide()
    drawer.hide()
    before = seen.sizeHint()
    calm.set_zoom(200)
    assert first.sizeHint() == second.sizeHint() == before
    told = Styled(second)
    drawer.show()
    assert calm.restyling.is_running
    assert first.sizeHint() == seen.sizeHint() != before
    assert told.count == 0
    assert second.sizeHint() == before
    inner.show()
    assert calm.restyling.is_running
    assert second.sizeHint() == seen.sizeHint()
    settle(qtbot, calm)
    assert told.count == 1, "once is enough"


def test_a_menu_and_a_window_that_open_meanwhile_are_as_large_as_later(qtbot: QtBot, calm: Theme) -> None:
    window, other, menu = QWidget(), QWidget(), QMenu()
    push = QPushButton("in another window")
    QVBoxLayout(other).addWidget(push)
    menu.addAction("What can be done")
    for widget in (window, other, menu):
        qtbot.addWidget(widget)
        widget.show()
    other.hide()
    menu.hide()
    small = menu.size()
    calm.set_zoom(200)
    other.show()
    menu.popup(QPoint(0, 0))
    assert calm.restyling.is_running
    sizes = menu.size(), push.sizeHint()
    settle(qtbot, calm)
    menu.hide()
    menu.popup(QPoint(0, 0))
    assert sizes == (menu.size(), push.sizeHint())
    assert menu.height() > small.height()


def test_a_window_zoomed_looks_like_one_that_was_made_so(qtbot: QtBot, calm: Theme) -> None:
    window = gallery(calm)
    qtbot.addWidget(window)
    window.show()
    calm.set_zoom(150)
    settle(qtbot, calm)
    calm.set_zoom(100)
    settle(qtbot, calm)
    fresh = gallery(calm)
    qtbot.addWidget(fresh)
    fresh.show()
    window.resize(fresh.size())  # it had grown
    qtbot.waitUntil(lambda: window.size() == fresh.size())
    assert picture(qtbot, window) == picture(qtbot, fresh)


def test_what_is_in_sight_changes_first(qtbot: QtBot, calm: Theme) -> None:
    window, pages = QWidget(), QStackedWidget()
    QVBoxLayout(window).addWidget(pages)
    seen, hidden = Words(calm, "seen", "muted"), Words(calm, "hidden", "muted")
    pages.addWidget(seen)
    pages.addWidget(hidden)
    qtbot.addWidget(window)
    window.show()
    pages.setCurrentWidget(hidden)  # both were shown once
    pages.setCurrentWidget(seen)
    before = hidden.palette().windowText().color()
    calm.set_scheme("dark")
    assert seen.palette().windowText().color() == calm.color("muted")
    assert hidden.palette().windowText().color() == before
    settle(qtbot, calm)
    assert hidden.palette().windowText().color() == calm.color("muted")


def test_a_widget_that_goes_meanwhile_does_no_harm(qtbot: QtBot, calm: Theme) -> None:
    window = QWidget()
    gone = Words(calm, "hidden", "muted")
    gone.setParent(window)
    qtbot.addWidget(window)
    calm.set_scheme("dark")
    gone.setParent(None)
    del gone
    settle(qtbot, calm)


def test_words_keep_their_size_when_their_role_changes(qtbot: QtBot, calm: Theme) -> None:
    """Qt puts back the font of the first polish with the style."""
    words = Words(calm, "words", "muted", scale=1.5)
    qtbot.addWidget(words)
    words.show()
    calm.set_zoom(150)
    before = words.font().pointSizeF()
    assert before == pytest.approx(calm.font(1.5).pointSizeF())
    words.say("words", "bad")
    assert words.font().pointSizeF() == before
    calm.set_scheme("dark")
    assert words.font().pointSizeF() == before
    assert words.palette().windowText().color() == calm.color("bad")


def test_a_selection_outlasts_new_colours(qtbot: QtBot, calm: Theme) -> None:
    prose = Prose(calm, MARKDOWN)
    qtbot.addWidget(prose)
    prose.show()
    prose.selectAll()
    calm.set_scheme("dark")
    assert prose.textCursor().selectedText().startswith("Words with code")
    settle(qtbot, calm)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("3.02 tokens per round, 44.26–44.36 tok/s", ["44.26–44.36 tok/s"]),
        ("about 13.5 GB to download", ["13.5 GB"]),
        ("61 % done in 5 s", ["61 %", "5 s"]),
        ("44,3–44,4 Tok/s, etwa 3 min, 20 Wh", ["44,3–44,4 Tok/s", "3 min", "20 Wh"]),
        ("a/b or and/or 4 cases", []),
    ],
)
def test_figures_stay_whole(calm: Theme, text: str, pieces: list[str]) -> None:
    label = wrapped(calm, text)
    assert label.text() == text, "the joiners are not part of what was said"
    shown = QLabel.text(label)
    for piece in pieces:
        assert piece not in shown or not re.search(r"[ /–]", piece)
    assert shown.replace("\u2060", "").replace("\u00a0", " ") == text
    assert (shown == text) is (not pieces)


def test_a_scroll_bar_stands_in_the_margin(qtbot: QtBot, calm: Theme) -> None:
    inside = QWidget()
    column = QVBoxLayout(inside)
    column.setContentsMargins(16, 0, 16, 0)
    card = QFrame()
    column.addWidget(card)
    page = Scrolling(inside, "page", margin=16)
    qtbot.addWidget(page)
    page.resize(300, 200)
    page.show()
    before = card.width()
    assert not page.verticalScrollBar().isVisible()
    card.setMinimumHeight(900)
    qtbot.waitUntil(page.verticalScrollBar().isVisible)
    qtbot.waitUntil(lambda: card.width() == before)
