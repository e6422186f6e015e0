"""Words: German is complete and compiled, and with a language of long odd words nothing is untranslated or cut off."""

from __future__ import annotations

import importlib.util
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from PySide6.QtCore import QCoreApplication, QLocale, QTranslator
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QTextBrowser,
    QWidget,
)
from pytestqt.qtbot import QtBot

from fakes import INFO, FakeTokeniser
from slipstream.events import Ready
from slipstream.store.paths import resources_dir
from slipstream_app import strings
from slipstream_app.models import chat_prompt
from slipstream_app.precision import precision_text
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.registry import PLACES
from slipstream_app.setting import Detail
from slipstream_app.theme import Theme
from slipstream_app.widgets.stats import StatsStrip
from slipstream_app.windows.settings_window import SettingsWindow
from slipstream_app.windows.shell import Shell
from slipstream_app.windows.toolbar import Toolbar

I18N = resources_dir() / "i18n"
_HOLES = re.compile(r"%L?n|%L?[0-9]|\{[0-9]\}")


@pytest.fixture(scope="module")
def translate() -> ModuleType:
    """packaging/translate.py; packaging is no package."""
    file = Path(__file__).parents[2] / "packaging" / "translate.py"
    spec = importlib.util.spec_from_file_location("translate", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["translate"] = module
    spec.loader.exec_module(module)
    return module


def messages(file: Path) -> list[ET.Element]:
    return list(ET.parse(file).getroot().iter("message"))


def source(message: ET.Element) -> str:
    return message.findtext("source") or ""


@pytest.mark.parametrize("language", strings.LANGUAGES)
def test_every_text_of_the_code_is_translated_and_compiled(
    translate: ModuleType, tmp_path: Path, language: str
) -> None:
    committed = I18N / f"slipstream_{language}.ts"
    fresh = tmp_path / committed.name
    fresh.write_bytes(committed.read_bytes())
    translate.collect(fresh, language)
    missing = [source(m) for m in messages(fresh) if m.find("translation[@type='unfinished']") is not None]
    assert not missing, "run packaging/translate.py and translate these"
    assert {source(m) for m in messages(fresh)} == {source(m) for m in messages(committed)}
    translate.release(committed, tmp_path / "fresh.qm")
    assert (tmp_path / "fresh.qm").read_bytes() == committed.with_suffix(".qm").read_bytes()


def test_translations_keep_their_holes() -> None:
    for message in messages(I18N / "slipstream_de.ts"):
        translation = message.find("translation")
        assert translation is not None
        forms = [form.text or "" for form in translation.iter("numerusform")] or [translation.text or ""]
        wanted = sorted(_HOLES.findall(source(message)))
        for form in forms:
            found = sorted(_HOLES.findall(form))
            # "Die erste Nachricht" needs no number.
            assert found == wanted or (
                len(forms) > 1 and found == [hole for hole in wanted if hole not in ("%n", "%Ln")]
            ), form


# A thing has one word, wherever it is named: what a source with the left one says in German, and what none may say.
_GLOSSARY = {
    r"\bclients?\b": r"Client",
    r"\bdrafters?\b": r"Entwurfsmodell",
    r"\bprompts?\b": r"[Pp]rompt",
    r"\bplain decoding\b": r"[Ee]infache[ns]? Rechnen|einfach rechnen|Einfach",
    r"\b(passes|a pass|each pass|one pass)\b": r"Durchg[aä]ng",
    r"\bAuto(matic)?\b": r"\bAuto\b",
    r"\bdownload": r"[Dd]ownload|[Hh]erunter(ge|zu)?l[aä]d",
}
_OTHER_WORDS = re.compile(r"\bDrafter|Entwerfer|Dekodier|Durchl[aä]uf|Automatisch|zwischengespeichert|[Ee]ingabe")


def test_german_has_one_word_for_one_thing() -> None:
    wrong: list[str] = []
    for message in messages(I18N / "slipstream_de.ts"):
        translation = message.find("translation")
        assert translation is not None
        forms = [form.text or "" for form in translation.iter("numerusform")] or [translation.text or ""]
        english = source(message)
        wanted = [named for word, named in _GLOSSARY.items() if re.search(word, english)]
        wrong += [form for form in forms if _OTHER_WORDS.search(form)]
        wrong += [form for form in forms if not all(re.search(named, form) for named in wanted)]
        wrong += [forms[-1]] if "%Ln token(s)" in english and "Tokens" not in forms[-1] else []
    assert not wrong


@pytest.fixture
def german(qapp: QApplication) -> Iterator[str]:
    before = QLocale()
    yield strings.install(qapp, "de")
    QLocale.setDefault(before)
    for translator in qapp.findChildren(QTranslator):
        qapp.removeTranslator(translator)
        translator.deleteLater()


def test_german_speaks_german(german: str) -> None:
    assert german == "de"
    assert strings.shown("Actions", "Quit Slipstream") == "Slipstream beenden"
    assert QCoreApplication.translate("BannerBar", "%n messages", "", 1) == "1 Meldung"
    assert QCoreApplication.translate("BannerBar", "%n messages", "", 3) == "3 Meldungen"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("4-bit", "4 Bit"),
        ("4-bit group 32", "4 Bit in Gruppen zu 32"),
        ("4-bit group 32, 8-bit group 64", "4 Bit in Gruppen zu 32, 8 Bit in Gruppen zu 64"),
        ("4-bit group 32, computed in float32", "4 Bit in Gruppen zu 32, gerechnet in float32"),
        ("bfloat16", "bfloat16"),
        ("GGUF", "GGUF"),
    ],
)
def test_how_a_model_is_packed_in_german(german: str, said: str, told: str) -> None:
    assert precision_text(said) == told


def test_the_loaded_model_and_an_answers_figures_in_german(qtbot: QtBot, theme: Theme, german: str) -> None:
    packed = "4-bit group 32, computed in float32"
    toolbar, strip = Toolbar(theme), StatsStrip(theme)
    qtbot.addWidget(toolbar)
    qtbot.addWidget(strip)
    toolbar.show_status(Ready(replace(INFO, quantisation=packed)))
    assert toolbar.facts.toolTip().endswith("4 Bit in Gruppen zu 32, gerechnet in float32")
    timings = {"decode_tps": 49.2, "ttft_s": 0.08, "reused_tokens": 0, "prompt_tokens": 1234, "rounds": 0}
    facts = {"timings": timings | {"output_tokens": 3}, "mode": "baseline", "quantisation": packed}
    strip.set_facts(facts | {"options": {"temperature": 0.7}}, Detail.STANDARD)
    assert strip.drafter() == "Einfach"
    assert "Bit in Gruppen zu 32, gerechnet in float32 | Kontext 1.234 | Temperatur 0,7 |" in strip.line()


# A language in which every word is strange and a third longer.


def pseudo(text: str) -> str:
    parts = re.split(r"(%L?n|\{[0-9]\})", text)
    odd = str.maketrans("aeiounsyAEIOU", "àéïöûñšýÀÉÏÖÛ")
    return (
        "⟦"
        + "".join(part if _HOLES.fullmatch(part) else part.translate(odd) for part in parts)
        + "·" * (len(text) // 3)
        + "⟧"
    )


@pytest.fixture
def pseudo_language(translate: ModuleType, tmp_path: Path, qapp: QApplication) -> Iterator[None]:
    tree = ET.parse(I18N / "slipstream_de.ts")
    for message in tree.getroot().iter("message"):
        translation = message.find("translation")
        assert translation is not None
        forms = list(translation.iter("numerusform"))
        for form in forms or [translation]:
            form.text = pseudo(source(message))
    file = tmp_path / "pseudo.ts"
    tree.write(file, encoding="utf-8", xml_declaration=True)
    translate.release(file, tmp_path / "pseudo.qm")
    translator = QTranslator()
    assert translator.load(str(tmp_path / "pseudo.qm"))
    qapp.installTranslator(translator)
    yield
    qapp.removeTranslator(translator)


# Names, numbers, units, and the text of the machine or of the user: the same in every language.
_SAME = re.compile(
    r"^[\W\d_]*$|Slipstream|SmolLM2|scripted|fake-model|DSpark|DFlash|MTP|tok/s|GB|MB|http|Claude|pi$|Codex|opencode|npm"
    r"|English|Deutsch|Intel|AMD|Linux|Python|float|JSON|seed|^[A-Z]$|^\d|EOF|Noto|Mono|DejaVu|MIT|Apache|BSD|⌘|/"
    r"|, top_p "
)


def words_of(widget: QWidget) -> list[str]:
    found = [widget.accessibleName(), widget.toolTip()]
    if isinstance(widget, QLabel | QAbstractButton):
        found.append(widget.text())
    if isinstance(widget, QLineEdit):
        found.append(widget.placeholderText())
    if isinstance(widget, QComboBox):
        found += [widget.itemText(number) for number in range(widget.count())]
    return [re.sub("<[^>]*>", "", text).strip() for text in found if text]


def untranslated(root: QWidget) -> set[str]:
    return {
        text
        for widget in [root, *root.findChildren(QWidget)]
        if not widget.objectName().startswith("qt_") and not isinstance(widget, QTextBrowser)
        for text in words_of(widget)
        if "⟦" not in text and not _SAME.search(text)
    }


def clipped(root: QWidget) -> set[str]:
    """Texts that are wider than their widget and can neither wrap nor be scrolled."""
    return {
        widget.text()
        for kind in (QLabel, QPushButton)
        for widget in root.findChildren(kind)
        if widget.isVisible()
        and widget.text()
        and not (isinstance(widget, QLabel) and (widget.wordWrap() or widget.property("elides")))
        and widget.width() + 2 < widget.minimumSizeHint().width()
    }


@pytest.fixture
def whole(
    qtbot: QtBot, context: AppContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pseudo_language: None
) -> Iterator[Shell]:
    """The window with its real screens."""
    monkeypatch.setattr(chat_prompt, "_open", lambda _: FakeTokeniser())
    made = Shell(context, tmp_path / "log")
    made.window.resize(1280, 800)
    made.window.show()
    yield made
    made.quit()
    made.window.deleteLater()


def test_no_text_is_left_in_english_and_none_is_cut(qtbot: QtBot, whole: Shell) -> None:
    for name in (*(place.name for place in PLACES), "onboarding"):
        whole.window.go(name)
        QApplication.processEvents()
        assert untranslated(whole.window) == set(), name
        assert clipped(whole.window) == set(), name
    titles = {action.text() for menu in whole.window.menus.values() for action in menu.actions() if action.text()}
    assert {title for title in titles if "⟦" not in title} == set()


def test_the_settings_and_the_sheet_are_translated_too(qtbot: QtBot, whole: Shell) -> None:
    app = whole.app
    window = SettingsWindow(app.theme, app.settings, app.session, whole.updates, app.calibrating)
    qtbot.addWidget(window)
    window.show()
    for row in range(window.list.count()):
        window.list.setCurrentRow(row)
        QApplication.processEvents()
        assert untranslated(window.stack.currentWidget()) == set()
        assert clipped(window.stack.currentWidget()) == set()
    whole.open_sheet()
    assert whole._sheet is not None
    keys = {label.text() for label in whole._sheet.findChildren(QLabel) if label.property("role") == "muted"}
    assert untranslated(whole._sheet) - keys == {"Close"}  # Qt's own word, from Qt's own translation
    whole._sheet.close()
