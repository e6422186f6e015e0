"""Updates: asked for once a day and not against the user's will; what is new is shown, and the licences."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

import slipstream
from slipstream.errors import Unreachable
from slipstream.store.releases import Channel, Release
from slipstream_app.models.updates import EVERY_S, UpdateCheck
from slipstream_app.screens.base import AppContext
from slipstream_app.windows.settings_pages import HOSTS, AboutPage, UpdatesPage
from slipstream_app.windows.settings_window import SettingsWindow

NEWER = Release("99.1.0", "https://example.org/99.1.0", "- Faster ![x](http://127.0.0.1:1/x.png)")


class Hub:
    def __init__(self) -> None:
        self.answer: Release | None = None
        self.error: Unreachable | None = None
        self.asked = 0
        self.channel: Channel | None = None

    def __call__(self, channel: Channel) -> Release | None:
        self.asked += 1
        self.channel = channel
        if self.error is not None:
            raise self.error
        return self.answer


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hub() -> Hub:
    return Hub()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def updates(context: AppContext, hub: Hub, clock: Clock) -> UpdateCheck:
    context.settings.set("updates/check", True)
    return UpdateCheck(context.settings, context.session, ask=hub, clock=clock)


@pytest.fixture
def window(qtbot: QtBot, context: AppContext, updates: UpdateCheck) -> SettingsWindow:
    made = SettingsWindow(context.theme, context.settings, context.session, updates, context.calibrating)
    qtbot.addWidget(made)
    made.open_at("updates")
    return made


def page(window: SettingsWindow) -> UpdatesPage:
    (found,) = window.findChildren(UpdatesPage)
    return found


def wait(qtbot: QtBot, updates: UpdateCheck) -> None:
    qtbot.waitUntil(lambda: not updates.is_asking, timeout=5000)


def test_it_asks_once_a_day(qtbot: QtBot, updates: UpdateCheck, hub: Hub, clock: Clock) -> None:
    for _ in range(3):
        updates.tend()
        wait(qtbot, updates)
    assert hub.asked == 1
    clock.now += EVERY_S - 1
    updates.tend()
    assert hub.asked == 1
    clock.now += 2
    updates.tend()
    wait(qtbot, updates)
    assert hub.asked == 2


def test_switched_off_it_asks_nobody_but_when_told_to(
    qtbot: QtBot, context: AppContext, updates: UpdateCheck, hub: Hub
) -> None:
    context.settings.set("updates/check", False)
    updates.tend()
    assert not updates.is_asking
    updates.look()
    wait(qtbot, updates)
    assert hub.asked == 1


def test_nobody_is_asked_before_the_user_asks(context: AppContext, hub: Hub) -> None:
    context.settings.reset("updates/check")
    made = UpdateCheck(context.settings, context.session, ask=hub)
    made.tend()
    assert not made.is_asking
    assert hub.asked == 0


def test_the_channel_is_what_is_asked_and_another_one_forgets_what_was_found(
    qtbot: QtBot, context: AppContext, window: SettingsWindow, updates: UpdateCheck, hub: Hub
) -> None:
    shown = page(window)
    hub.answer = NEWER
    shown.look.click()
    wait(qtbot, updates)
    assert hub.channel is Channel.STABLE
    assert "pre-release" not in shown.words.text()
    context.settings.set("updates/channel", "early")
    assert updates.newer is None
    assert not shown.open.isVisible()
    assert hub.asked == 1, "a choice asks nobody"
    hub.answer = replace(NEWER, is_early=True)
    shown.look.click()
    wait(qtbot, updates)
    assert hub.channel is Channel.EARLY
    assert "It is a pre-release." in shown.words.text()


def test_a_clock_that_was_set_back_does_not_keep_it_from_asking(
    qtbot: QtBot, updates: UpdateCheck, hub: Hub, clock: Clock
) -> None:
    updates.tend()
    wait(qtbot, updates)
    clock.now -= 10 * EVERY_S
    updates.tend()
    wait(qtbot, updates)
    assert hub.asked == 2


def test_the_page_says_what_is_out_and_what_is_new(
    qtbot: QtBot, window: SettingsWindow, updates: UpdateCheck, hub: Hub
) -> None:
    shown = page(window)
    assert f"This is Slipstream {slipstream.__version__}." in shown.words.text()
    assert not shown.open.isVisible()
    assert "What a user notices" in shown.notes.toPlainText()  # our own CHANGELOG
    assert shown.notes.verticalScrollBar().maximum() > 0
    assert shown.notes.verticalScrollBar().value() == 0  # from its beginning
    hub.answer = NEWER
    shown.look.click()
    qtbot.waitUntil(shown.open.isVisible, timeout=5000)
    assert "Slipstream 99.1.0 is out." in shown.words.text()
    assert "Faster" in shown.notes.toPlainText()
    assert "￼" not in shown.notes.toPlainText()  # no picture, so nothing is fetched


def test_no_newer_one_and_no_network_are_said(
    qtbot: QtBot, window: SettingsWindow, updates: UpdateCheck, hub: Hub
) -> None:
    shown = page(window)
    hub.error = Unreachable("the list of releases cannot be reached; check the connection")
    shown.look.click()
    wait(qtbot, updates)
    assert "The list of releases cannot be reached" in shown.words.text()
    hub.error, hub.answer = None, Release(slipstream.__version__, "https://example.org", "")
    shown.look.click()
    wait(qtbot, updates)
    assert "There was nothing newer on" in shown.words.text()
    assert not shown.open.isVisible()


def test_the_licences_of_what_is_inside_are_shown(window: SettingsWindow) -> None:
    (about,) = window.findChildren(AboutPage)
    text = about.licences.toPlainText()
    for name in ("PySide6", "mlx", "Lucide icons", "starlette"):
        assert name in text


def test_privacy_names_every_host_of_the_code() -> None:
    assert set(HOSTS) == {"huggingface.co", "api.github.com"}
