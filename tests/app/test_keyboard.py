"""Every control of every screen is reached by Tab and has a name for VoiceOver. Made from the widgets there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QButtonGroup,
    QComboBox,
    QLineEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.conftest import FAKE
from fakes import FakeEngine, FakeTokeniser, Script
from slipstream_app.models import chat_prompt
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.registry import PLACES
from slipstream_app.setting import Detail
from slipstream_app.windows.settings_window import PAGES
from slipstream_app.windows.shell import Shell

SCREENS = [place.name for place in PLACES] + ["onboarding"]


@pytest.fixture
def whole(
    qtbot: QtBot, context: AppContext, engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shell]:
    """The window with its real screens, a loaded model, and a chat with an answer: as much to reach as there can be."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(chat_prompt, "_open", lambda _: FakeTokeniser())
    engine.script = Script(pieces=("Look:\n\n```python\nx = 1\n```\n\n", "more ", "words"))
    context.settings.set("general/detail", Detail.EXPERT.value)
    made = Shell(context, tmp_path / "log")
    made.window.resize(1280, 800)
    made.window.show()
    context.session.load(FAKE)
    qtbot.waitUntil(lambda: context.session.info is not None, timeout=5000)
    yield made
    made.quit()
    made.window.deleteLater()


def chat_with_an_answer(qtbot: QtBot, shell: Shell) -> None:
    shell.window.go("chat")
    screen: Any = shell.window.screen_now  # Any: its parts are looked into
    screen.composer.set_text("Hello")
    qtbot.waitUntil(screen.composer.send.isEnabled, timeout=5000)
    screen.submit()
    qtbot.waitUntil(lambda: screen.chats.reply is None and screen.transcript.is_settled, timeout=10_000)


ROUND = 300  # presses of Tab that go round any of the windows


def is_reachable(widget: QWidget) -> bool:
    """By Tab. Of buttons of which one is chosen, the chosen one is, and the arrows go to the others."""
    if (
        isinstance(widget, QAbstractButton)
        and (group := cast(QButtonGroup | None, widget.group())) is not None
        and group.exclusive()
    ):
        return widget.isChecked() and widget.isVisible()
    return (
        bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
        and widget.isVisible()
        and widget.isEnabled()
        and widget.focusProxy() is None
        and not widget.objectName().startswith("qt_")
    )


def expected(root: QWidget) -> set[QWidget]:
    return {widget for widget in root.findChildren(QWidget) if is_reachable(widget)}


def reached(qtbot: QtBot, root: QWidget) -> set[QWidget]:
    """By pressing Tab until it has been round."""
    window = root.window()
    if window.windowType() is not Qt.WindowType.Popup:  # which has the keys without being the active window
        window.activateWindow()
        qtbot.waitUntil(lambda: QApplication.activeWindow() is window, timeout=5000)
    first = min(expected(root), key=lambda widget: widget.mapToGlobal(widget.rect().topLeft()).y())
    first.setFocus()
    found: set[QWidget] = set()
    at = QApplication.focusWidget()
    for _ in range(ROUND):
        if at is None:
            break
        found.add(at)
        qtbot.keyClick(at, Qt.Key.Key_Tab)
        before, at = at, QApplication.focusWidget()
        if at is first and before is not first:
            break  # a text with links keeps the focus for as many presses as it has links
    return found


def said(widget: QWidget) -> str:
    """What VoiceOver would say: the accessible interface's own answer, and what a buddy or a group says."""
    interface = cast(QAccessibleInterface | None, QAccessible.queryAccessibleInterface(widget))
    name = interface.text(QAccessible.Text.Name) if interface is not None else ""
    return name or widget.accessibleName()


def where(widget: QWidget) -> str:
    return f"{type(widget).__name__} in {type(widget.parent()).__name__}"


def nameless(root: QWidget) -> list[str]:
    seen = {
        widget
        for widget in root.findChildren(QWidget)
        if widget.isVisible()
        and (is_reachable(widget) or isinstance(widget, QAbstractButton | QAbstractSpinBox | QComboBox | QLineEdit))
        # Parts of Qt's own controls say their own names.
        and not isinstance(widget.parent(), QAbstractSpinBox | QComboBox | QLineEdit)
        and not widget.objectName().startswith("qt_")
    }
    return sorted(where(widget) for widget in seen if not said(widget).strip())


def visit(name: str) -> Callable[[QtBot, Shell], QWidget]:
    def go(qtbot: QtBot, shell: Shell) -> QWidget:
        if name == "chat":
            chat_with_an_answer(qtbot, shell)
        else:
            shell.window.go(name)
        QApplication.processEvents()
        return shell.window

    return go


def drawer(action: str) -> Callable[[QtBot, Shell], QWidget]:
    def go(qtbot: QtBot, shell: Shell) -> QWidget:
        chat_with_an_answer(qtbot, shell)
        shell.window.run(action)
        QApplication.processEvents()
        return shell.window

    return go


def settings(page: str) -> Callable[[QtBot, Shell], QWidget]:
    def go(qtbot: QtBot, shell: Shell) -> QWidget:
        shell.open_settings(page)
        assert shell._settings_window is not None
        QApplication.processEvents()
        return shell._settings_window

    return go


def popover(qtbot: QtBot, shell: Shell) -> QWidget:
    shell.window.open_popover()
    return shell.window.popover


def palette(qtbot: QtBot, shell: Shell) -> QWidget:
    shell.palette.open_over(shell.window)
    return shell.palette


VIEWS: dict[str, Callable[[QtBot, Shell], QWidget]] = {
    **{name: visit(name) for name in SCREENS},
    "chat, parameters": drawer("chat.parameters"),
    "chat, telemetry": drawer("chat.telemetry"),  # in its place
    **{f"settings, {page.value}": settings(page.value) for page in PAGES},
    "popover": popover,
    "palette": palette,
}


def test_every_control_is_reached_by_tab_and_has_a_name(qtbot: QtBot, whole: Shell) -> None:
    faults: dict[str, list[str]] = {}
    for view, show in VIEWS.items():
        root = show(qtbot, whole)
        wanted = expected(root)
        assert wanted, view
        missed = [f"not reached: {where(widget)}" for widget in wanted - reached(qtbot, root)]
        found = sorted(missed) + [f"no name: {one}" for one in nameless(root)]
        if found:
            faults[view] = found
        if root.windowType() is Qt.WindowType.Popup:
            root.hide()
    assert faults == {}
