"""Colours can be read, light and dark, whatever the accent; fonts and measures follow the zoom; icons exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QGuiApplication

import slipstream_app
from slipstream.store.paths import resources_dir
from slipstream_app.icons import icon
from slipstream_app.theme import ACCENTS, DARK, LIGHT, NAMES, Theme, contrast

GROUNDS = ("bg", "surface", "raised")
WORDS = ("text", "muted", "accent", "ok", "warn", "bad", "draft", "second", "ngram", "model", "plain")


@pytest.mark.parametrize("values", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("word", WORDS)
def test_every_word_reads_on_every_ground(values: dict[str, str], word: str) -> None:
    for ground in GROUNDS:
        assert contrast(QColor(values[word]), QColor(values[ground])) >= 4.5, (word, ground)


def test_both_schemes_name_the_same_colours() -> None:
    assert tuple(DARK) == NAMES


@pytest.mark.parametrize("name", ACCENTS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_accent_reads_and_can_be_written_on(theme: Theme, name: str, scheme: str) -> None:
    theme.set_scheme("dark" if scheme == "dark" else "light")
    theme.set_accent(name)
    for ground in GROUNDS:
        assert contrast(theme.color("accent"), theme.color(ground)) >= 4.5
    assert contrast(theme.on("accent"), theme.color("accent")) >= 4.5


def test_a_pale_system_accent_is_not_taken(theme: Theme) -> None:
    theme._system_accent = QColor("#ffe680")
    theme.set_scheme("light")
    theme.set_accent("system")
    assert theme.color("accent") == QColor(LIGHT["accent"])


def test_zoom_scales_fonts_and_measures_within_bounds(theme: Theme) -> None:
    before = QGuiApplication.font().pointSizeF()
    theme.set_zoom(200)
    assert QGuiApplication.font().pointSizeF() == pytest.approx(2 * before)
    assert theme.px(12) == 24
    theme.set_zoom(1000)
    assert theme.zoom == 200
    theme.set_zoom(1)
    assert theme.zoom == 80


def test_the_palette_follows_the_scheme(theme: Theme) -> None:
    heard: list[bool] = []
    theme.changed.connect(lambda: heard.append(True))
    theme.set_scheme("dark")
    assert QGuiApplication.palette().window().color() == QColor(DARK["bg"])
    theme.set_scheme("light")
    assert QGuiApplication.palette().window().color() == QColor(LIGHT["bg"])
    assert len(heard) >= 2


def test_every_icon_that_is_named_exists_and_draws(theme: Theme) -> None:
    files = {path.stem for path in (resources_dir() / "icons").glob("*.svg")}
    package = Path(slipstream_app.__file__).parent
    named = {
        name
        for path in package.rglob("*.py")
        for name in re.findall(r'\bicon\(\s*(?:self\.)?[\w.]*theme,\s*"([a-z0-9-]+)"', path.read_text(encoding="utf-8"))
    }
    assert named, "the pattern no longer finds the calls"
    assert named <= files, named - files
    for name in files:
        image = icon(theme, name).pixmap(QSize(24, 24)).toImage()
        assert any(image.pixelColor(x, y).alpha() for x in range(24) for y in range(24)), name
