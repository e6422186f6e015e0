"""One pair's details: its files, licence and folder, and who may draft with what was kept here."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from pytestqt.qtbot import QtBot

import tiny_gguf
from app.test_models_screen import cell, choose, screen, store, visit
from slipstream.errors import EngineFaulted
from slipstream.events import Delta, Done, Failed, Finish, Round, Timings
from slipstream.store import memory
from slipstream.store.licence import licence_of
from slipstream.types import Mode, Request, Text
from slipstream_app.bridge.pair import BUILT_IN, PairChoice
from slipstream_app.models.acceptance import MOST, Acceptances, Accepted
from slipstream_app.models.pairs import STATE
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.models import ModelsScreen
from slipstream_app.settings import Settings
from slipstream_app.widgets.pair_details import LIMITS

__all__ = ["screen", "store"]
QWEN = PairChoice("Qwen3.8 27B + DFlash 2", "mlx-community/Qwen3.8-27B-4bit", ("z-lab/dflash",))
DONE = Done(Finish.STOP, Timings(0, 0, 1, 2, 5, 0, 9, 3), ())


def answer(app: AppContext, job: int, *rounds: tuple[str, int, int], choice: PairChoice, end: object = DONE) -> None:
    """An answer of a loaded pair: (who drafted, drafted, accepted) of each round."""
    before, app.session._choice = app.session._choice, choice
    app.bus.open(job, "chat", Request(Text("x")))
    app.session._choice = before  # an unload on the way changes nothing
    app.bus.say(job, Delta("x", (1,)))
    for source, drafted, accepted in rounds:
        app.bus.say(job, Delta("x", (1,) * (accepted + 1), Round(0, source, (1,) * drafted, accepted)))
    app.bus.say(job, end)  # pyright: ignore[reportArgumentType]


def options(screen: ModelsScreen) -> list[str]:
    shown = screen.pairs.details.drafters
    return [button.text() for button in shown.buttons] if shown.isVisible() else []


# What is recorded.


def test_finished_answers_add_up_by_pair_and_by_who_drafted(context: AppContext, tmp_path: Path) -> None:
    answer(context, 1, ("dspark", 7, 5), ("dspark", 7, 2), ("lookup", 4, 4), ("plain", 0, 0), choice=BUILT_IN)
    answer(context, 2, ("dspark", 6, 3), choice=BUILT_IN)
    answer(context, 3, ("dflash", 5, 1), choice=QWEN)
    known = context.acceptances.of(BUILT_IN)
    assert known == {"dspark": Accepted(20, 10, 3), "lookup": Accepted(4, 4, 1)}
    assert known["dspark"].share == 0.5
    assert known["dspark"].per_round == pytest.approx(1 + 10 / 3)
    assert context.acceptances.of(QWEN) == {"dflash": Accepted(5, 1, 1)}
    context.settings.sync()
    again = Acceptances(context.session, Settings(tmp_path / "settings.ini"))
    assert again.of(BUILT_IN) == known, "it outlives the program"


def test_what_failed_or_drafted_nothing_is_no_measurement(context: AppContext) -> None:
    answer(context, 1, ("dspark", 7, 5), choice=QWEN, end=Failed(EngineFaulted("it broke; reload it")))
    answer(context, 2, ("plain", 0, 0), choice=QWEN)
    assert context.acceptances.of(QWEN) == {}
    assert context.settings.recall("accepted") is None


def test_old_drafts_lose_weight_and_the_record_stays_small(context: AppContext) -> None:
    full = Accepted(MOST + 2, MOST + 2, MOST).plus(Accepted(10, 0, 10))
    assert full == Accepted(MOST // 2 + 11, MOST // 2 + 1, MOST // 2 + 10)
    for number in range(130):
        answer(context, number, ("dspark", 2, 1), choice=PairChoice(str(number), str(number)))
    assert context.acceptances.of(PairChoice("0", "0")) == {}
    assert context.acceptances.of(PairChoice("whatever", "129")) == {"dspark": Accepted(2, 1, 1)}


@pytest.mark.parametrize(
    "stored",
    ["", "no json", "[]", '{"built in + own": 3}', '{"built in + own": {"dspark": [1, 2, 3], "mtp": ["x"], "x": 7}}'],
)
def test_a_record_that_cannot_be_read_was_not_measured(context: AppContext, stored: str) -> None:
    context.settings.remember("accepted", stored)
    assert context.acceptances.of(BUILT_IN) == {}
    answer(context, 1, ("dspark", 4, 2), choice=BUILT_IN)
    assert context.acceptances.of(BUILT_IN) == {"dspark": Accepted(4, 2, 1)}


# What is shown.


def test_files_licence_and_folder(qtbot: QtBot, screen: ModelsScreen) -> None:
    visit(qtbot, screen)
    choose(screen, "qwen")
    details = screen.pairs.details
    facts = details.facts.text().splitlines()
    assert "Licence: mlx-community/Qwen3.8-27B-4bit: apache-2.0; z-lab/dflash: not stated in its files" in facts
    assert "Folder: /models/qwen, /models/dflash (a folder of your own)" in facts
    assert details.files.switch.text() == "7 file(s), 17.2\xa0GB"
    assert not details.files.files.isVisible()
    details.files.switch.click()
    assert details.files.files.isVisible()
    lines = details.files.files.toPlainText().splitlines()
    assert lines[:3] == [
        "/models/qwen",
        "    config.json\t2.1 kB",
        "    model-00001-of-00003.safetensors\t5.3 GB",
    ]
    assert "    model.safetensors\t1.7 GB" in lines
    choose(screen, "built in")
    assert "Licence: apache-2.0" in details.facts.text().splitlines()
    assert details.files.switch.text().startswith("2 file(s)")


def test_drafters_are_offered_with_what_was_kept_here(qtbot: QtBot, screen: ModelsScreen, context: AppContext) -> None:
    visit(qtbot, screen)
    choose(screen, "qwen")
    assert options(screen) == ["DFlash (dflash): not measured here", "MTP: not measured here", "None"]
    answer(context, 1, ("dflash", 8, 6), ("dflash", 8, 4), choice=QWEN)
    assert options(screen)[0] == ("DFlash (dflash): 62% of 16 draft(s) accepted here, 6.00 tokens per round")
    assert screen.pairs.details.drafters.value == QWEN
    choose(screen, "wrong")
    assert options(screen) == []


def test_a_pair_is_loaded_with_the_drafter_that_was_chosen(
    qtbot: QtBot, screen: ModelsScreen, context: AppContext
) -> None:
    visit(qtbot, screen)
    choose(screen, "qwen")
    details = screen.pairs.details
    details.drafters.buttons[2].click()
    answer(context, 1, ("dflash", 8, 6), choice=QWEN)  # what is shown anew keeps the choice
    details.load.click()
    assert context.session.choice == PairChoice("Qwen3.8 27B", QWEN.target, ())
    qtbot.waitUntil(lambda: context.session.info is not None, timeout=5000)
    assert cell(screen, "qwen", STATE) == "Loaded without drafter"
    assert cell(screen, "qwen own", STATE) == "Ready"
    assert details.load.text() == "Unload"
    details.load.click()
    qtbot.waitUntil(lambda: cell(screen, "qwen", STATE) == "Ready", timeout=5000)
    details.drafters.buttons[1].click()
    details.load.click()
    qtbot.waitUntil(lambda: cell(screen, "qwen own", STATE) == "Loaded", timeout=5000)
    chosen = screen.pairs.chosen
    assert chosen is not None
    assert chosen.key == "qwen own"
    choose(screen, "qwen")
    assert details.drafters.value == QWEN, "another row begins with its own"


def test_of_the_loaded_pair_another_drafter_drafts_from_the_next_answer_on(
    qtbot: QtBot, screen: ModelsScreen, context: AppContext
) -> None:
    visit(qtbot, screen)
    choose(screen, "built in")
    screen.pairs.details.load.click()
    qtbot.waitUntil(lambda: context.session.info is not None, timeout=5000)
    shown = screen.pairs.details.drafters
    assert shown.heading.text() == "Drafter of the next answers"
    assert options(screen) == [
        "Auto: whatever is fastest, measured as it goes",
        "DSpark: not measured here",
        "Lookup: not measured here",
        "None: plain decoding",
    ]
    assert shown.value is Mode.AUTO
    shown.buttons[1].click()
    assert context.drafting.active is Mode.DSPARK
    context.drafting.choose(Mode.BASELINE)  # in the menu
    assert shown.value is Mode.BASELINE
    shown.show_options(shown._options, None)  # nobody who is offered: none is shown as chosen
    assert shown.value is None
    answer(context, 1, ("dspark", 4, 3), choice=BUILT_IN)
    assert shown.value is Mode.BASELINE
    assert "75% of 4 draft(s)" in options(screen)[1]


# Licences.


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("README.md", "---\nlicense: apache-2.0\ntags:\n- x\n---\n# Model\n", "apache-2.0"),
        ("README.md", "---\r\nlicense: other\r\nlicense_name: 'gemma-terms'\r\n---\r\n", "gemma-terms"),
        ("README.md", "---\nlicense: other\n---\n", "other"),
        ("README.md", "# Model\nlicense: no head\n", ""),
        ("README.md", "---\nlicense:\n---\n", ""),
        ("LICENSE", "MIT License", "LICENSE"),
        ("notes.txt", "license: mit", ""),
    ],
)
def test_a_folders_licence(tmp_path: Path, name: str, text: str, expected: str) -> None:
    (tmp_path / name).write_text(text)
    assert licence_of(tmp_path) == expected


def test_a_ggufs_licence(tmp_path: Path) -> None:
    made = tiny_gguf.tiny_gguf()
    made.metadata["general.license"] = "mit"
    assert licence_of(made.write(tmp_path / "x.gguf")) == "mit"
    (tmp_path / "broken.gguf").write_bytes(b"no gguf")
    assert licence_of(tmp_path / "broken.gguf") == ""


def test_every_limit_of_the_core_has_words() -> None:
    assert set(LIMITS) == set(get_args(memory.Kind))
