"""Make a drafter: the offer with its figures, every state of a run, a restart of the app; at the end a real one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.fake_run import JUDGED, PAUSED, WRITTEN, FakeRun, figure
from app.scripted_store import ScriptedStore
from slipstream.curves import Curves
from slipstream.store.candidate import Candidate
from slipstream.store.paths import cache_dir
from slipstream.train.runs import OwnRun
from slipstream_app.models.store import open_store
from slipstream_app.models.training import Training, Wanted
from slipstream_app.models.training_forecast import forecast
from slipstream_app.models.training_progress import Stage
from slipstream_app.models.trainings import Trainings
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.models import TRAINING, ModelsScreen
from slipstream_app.widgets.training_page import TrainingPage
from slipstream_app.windows.shell import Shell
from tiny_gguf import tiny_gguf
from tiny_runs import byte_config, write_target

CONFIG = byte_config() | {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 128_000,
    "intermediate_size": 12_288,
}
SPARSE = CONFIG | {"num_experts": 256, "num_experts_per_tok": 4, "moe_intermediate_size": 1024}
WANTED = Wanted("tiny model", "/nowhere/tiny", 2048)


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def runs() -> list[FakeRun]:
    return []


@pytest.fixture
def trainings(qapp: object, context: AppContext, runs: list[FakeRun], tmp_path: Path) -> Iterator[Trainings]:
    """The app's own, whose processes are scripted."""

    def start(arguments: Sequence[str], log: Path) -> FakeRun:
        runs.append(FakeRun(arguments, log))
        return runs[-1]

    context.trainings._start_run = start
    yield context.trainings
    context.trainings.closing()
    for training in context.trainings.all:
        training.look()


@pytest.fixture
def page(qtbot: QtBot, context: AppContext, trainings: Trainings) -> TrainingPage:
    made = TrainingPage(context.theme, trainings)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    return made


def numbers(config: dict[str, Any], elements: int = 1000) -> Candidate:
    return Candidate(config, 2 * elements, elements, 2)


def propose(
    qtbot: QtBot,
    page: TrainingPage,
    config: dict[str, Any],
    curves: Curves | None = None,
    *,
    wanted: Wanted = WANTED,
    elements: int = 1000,
) -> None:
    page.propose(wanted, lambda conversations: forecast(numbers(config, elements), curves, conversations))
    assert page.offer is not None
    assert not page.offer.start.isEnabled()
    qtbot.waitUntil(lambda: page.offer is not None and page.offer.gain.value.text() != "–", timeout=5000)


def begin(trainings: Trainings, runs: list[FakeRun]) -> tuple[Training, FakeRun]:
    training = trainings.open(WANTED)
    training.start()
    return training, runs[-1]


def test_time_energy_and_gain_are_said_before_anything_starts(
    qtbot: QtBot, page: TrainingPage, runs: list[FakeRun], tmp_path: Path
) -> None:
    assert page.nothing.isVisible()
    propose(qtbot, page, CONFIG)
    offer = page.offer
    assert offer is not None
    assert "Wh" in offer.energy.value.text()
    assert float(offer.gain.value.text().rstrip("×")) > 1.1
    assert "An estimate by this machine's kind" in offer.words.text()
    usual = offer.time.value.text()
    offer.amount.setCurrentIndex(0)
    qtbot.waitUntil(lambda: offer.time.value.text() != usual, timeout=5000)
    assert not runs
    offer.start.click()
    assert runs[0].arguments[:2] == ["--model", "/nowhere/tiny"]
    assert runs[0].arguments[runs[0].arguments.index("--conversations") + 1] == "2048"
    assert "--anyway" not in runs[0].arguments
    assert page.offer is None


def test_what_was_measured_here_goes_before_the_kind_of_machine(
    qtbot: QtBot, page: TrainingPage, tmp_path: Path
) -> None:
    dear = Curves(target={128: {1: 100.0, 8: 2500.0}})  # checking costs as much as writing
    propose(qtbot, page, CONFIG, dear)
    assert page.offer is not None
    assert float(page.offer.gain.value.text().rstrip("×")) < 1


def test_too_little_gain_is_refused_in_the_planners_words_and_made_when_told_to(
    qtbot: QtBot, page: TrainingPage, runs: list[FakeRun], tmp_path: Path
) -> None:
    propose(qtbot, page, SPARSE, Curves(target={128: {1: 100.0, 8: 2500.0}}))
    offer = page.offer
    assert offer is not None
    assert not offer.start.isVisible()
    assert "few of its weights are used for each token" in offer.words.text()
    offer.anyway.click()
    assert "--anyway" in runs[0].arguments


def test_a_config_that_says_too_little_is_a_sentence(qtbot: QtBot, page: TrainingPage, tmp_path: Path) -> None:
    page.propose(WANTED, lambda count: forecast(numbers({}), None, count))
    first = page.offer
    assert first is not None
    qtbot.waitUntil(lambda: "does not say how large" in first.words.text(), timeout=5000)
    assert not first.start.isEnabled()
    first.decline.click()
    assert page.offer is None
    assert page.nothing.isVisible()
    page.propose(WANTED, lambda count: forecast(numbers(CONFIG | {"num_hidden_layers": 1}), None, count))
    second = page.offer
    assert second is not None
    qtbot.waitUntil(lambda: second.words.text() == "a target of 1 layers is too small for a drafter", timeout=5000)


def test_every_state_of_a_run_is_shown(page: TrainingPage, trainings: Trainings, runs: list[FakeRun]) -> None:
    made: list[Training] = []
    trainings.made.connect(made.append)
    training, run = begin(trainings, runs)
    card = page.cards[training.key]
    assert training.stage is Stage.STARTING
    assert not card.switch.isVisibleTo(card), "the process does not listen yet"
    run.say(WRITTEN)
    training.look()
    assert card.words.text() == "The model writes conversations: part 1 of 2 is done."
    assert card.tokens.value.text() == "30,000"
    assert card.bar.value() == 500
    run.say(WRITTEN | {"shard": 1}, figure(10, 0.25, 2.0, (0.4, 0.2, 0.1)), figure(20, 0.5, 1.0))
    training.look()
    assert card.words.text() == "The drafter learns: 50% done."
    assert (card.step.value.text(), card.loss.value.text(), card.per_round.value.text()) == ("20", "1.000", "2.50")
    said = card.positions.picture.accessibleDescription()
    assert said == "Kept by position: 1: 70%, 2: 50%, 3: 30%"
    card.switch.click()
    assert (training.stage, run.told) == (Stage.PAUSING, ["pause"])
    assert card.words.text().startswith("Pauses after this part")
    run.say(figure(21, 0.52, 0.9))  # the step that was being made
    training.look()
    assert training.stage is Stage.PAUSING
    run.say(PAUSED)
    training.look()
    assert training.stage is Stage.PAUSED
    assert card.words.text().startswith("Paused.")
    assert card.switch.text() == "Continue"
    card.switch.click()
    assert (training.stage, run.told) == (Stage.FITTING, ["pause", "resume"])
    run.say(PAUSED | {"stands": False})
    training.look()
    card.switch.click()
    assert training.stage is Stage.PAUSING, "an earlier pause is over"
    card.switch.click()
    run.say(JUDGED)
    training.look()
    assert training.stage is Stage.JUDGING
    training.output.mkdir(parents=True)
    (training.output / "model.safetensors").write_bytes(b"")
    run.end()
    training.look()
    assert training.stage is Stage.DONE
    assert made == [training]
    assert "3.00 tokens per round" in card.words.text()
    assert card.load.isVisibleTo(card)


def test_a_refusal_of_the_process_is_said_and_can_be_overruled(
    page: TrainingPage, trainings: Trainings, runs: list[FakeRun]
) -> None:
    training, run = begin(trainings, runs)
    run.end("a drafter would make this model 0.97 times as fast: it is so small; use --mode lookup, or --anyway")
    training.look()
    card = page.cards[training.key]
    assert card.words.text() == "Not made: a drafter would make this model 0.97 times as fast: it is so small."
    card.anyway.click()
    assert "--anyway" in runs[1].arguments


def test_a_failure_is_said_and_can_be_tried_again(
    page: TrainingPage, trainings: Trainings, runs: list[FakeRun]
) -> None:
    training, run = begin(trainings, runs)
    run.end("the disk is full")
    training.look()
    card = page.cards[training.key]
    assert card.words.text() == "It failed: the disk is full"
    card.switch.click()
    assert training.stage is Stage.STARTING
    assert runs[1].arguments == run.arguments, "it goes on where it was"


def test_cancel_asks_once_more_and_deletes_what_was_made(
    page: TrainingPage, trainings: Trainings, runs: list[FakeRun]
) -> None:
    training, run = begin(trainings, runs)
    training.work.mkdir(parents=True)
    (training.work / "shard").write_text("x")
    card = page.cards[training.key]
    card.cancel.click()
    assert run.is_running
    assert str(training.work) in card.goes.text()
    training.changed.emit()  # a report must not take the question away
    assert card.cancel.text() == "Really delete"
    card._sure.timeout.emit()
    assert (card.cancel.text(), card.goes.isVisibleTo(card)) == ("Cancel…", False)
    card.cancel.click()
    run.say(WRITTEN)
    training.look()
    assert card.cancel.text() == "Cancel…", "another stage is another question"
    card.cancel.click()
    card.cancel.click()
    assert run.told == ["kill"]
    assert not training.work.exists()
    assert not trainings.all
    assert page.nothing.isVisible()


def test_after_a_restart_of_the_app_it_can_go_on(
    qtbot: QtBot, context: AppContext, trainings: Trainings, runs: list[FakeRun], tmp_path: Path
) -> None:
    training, run = begin(trainings, runs)
    run.say(WRITTEN, WRITTEN | {"shard": 1}, figure(10, 0.25, 2.0))
    training.look()
    trainings.closing()
    assert run.told == ["stop"]
    again = Trainings(tmp_path / "training", trainings._start_run)
    found = again.all[0]
    assert (found.stage, found.progress.step, found.progress.tokens) == (Stage.HALTED, 10, 60_000)
    assert again.unfinished == [found]
    found.resume()
    assert runs[1].arguments == run.arguments
    runs[1].say(figure(8, 0.2, 2.5), figure(16, 0.4, 1.5))  # from the last checkpoint
    found.look()
    assert [step for step, _ in found.progress.loss] == [8, 16]
    again.closing()
    found.look()


def test_a_process_that_outlived_the_app_is_taken_up(
    qtbot: QtBot, trainings: Trainings, runs: list[FakeRun], tmp_path: Path
) -> None:
    """A shell stands for it: it has the log's name in its command."""
    log = tmp_path / "training" / f"{WANTED.key}-1.jsonl"
    script = f"trap 'exit 0' TERM; trap 'echo paused > {tmp_path}/told' USR1; while true; do sleep 0.05; done; : {log}"
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", script], os.environ)
    try:
        training, run = begin(trainings, runs)
        run.say(WRITTEN, WRITTEN | {"shard": 1}, figure(10, 0.25, 2.0))
        run.pid = pid
        training.look()
        again = Trainings(tmp_path / "training", trainings._start_run)
        found = again.all[0]
        assert found.stage is Stage.FITTING
        found.pause()
        qtbot.waitUntil((tmp_path / "told").exists, timeout=5000)
        assert Trainings(tmp_path / "training", trainings._start_run).all[0].stage is Stage.PAUSING
        run.say(PAUSED)
        found.look()
        assert found.stage is Stage.PAUSED
        assert Trainings(tmp_path / "training", trainings._start_run).all[0].stage is Stage.PAUSED
        again.closing()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    found.look()
    assert found.stage is Stage.HALTED
    later = Trainings(tmp_path / "training", trainings._start_run).all[0]
    assert later.stage is Stage.HALTED, "another process with that number is not taken for it"


def test_one_is_made_at_a_time(qtbot: QtBot, page: TrainingPage, trainings: Trainings, runs: list[FakeRun]) -> None:
    first, run = begin(trainings, runs)
    run.goes_on = True
    run.say(WRITTEN)
    first.look()
    propose(qtbot, page, CONFIG, wanted=Wanted("another", None, 2048))
    assert page.offer is not None
    assert "ends after its step" in page.offer.others.text()
    page.offer.start.click()
    assert run.told == ["stop"]
    card = page.cards[first.key]
    assert card.words.text() == "It ends after this step, and can be continued from there."
    assert not card.switch.isVisibleTo(card)
    second = trainings.all[1]
    assert (second.stage, len(runs)) == (Stage.WAITING, 1)
    run.end()
    first.look()
    assert (first.stage, second.stage) == (Stage.HALTED, Stage.STARTING)
    assert "--model" not in runs[1].arguments
    runs[1].goes_on = True
    card.switch.click()  # Continue keeps to it too
    assert (first.stage, runs[1].told, len(runs)) == (Stage.WAITING, ["stop"], 2)
    runs[1].end()
    second.look()
    assert (first.stage, second.stage, len(runs)) == (Stage.STARTING, Stage.HALTED, 3)


def test_the_end_of_the_app_is_one_word_to_a_run_that_ends_already(trainings: Trainings, runs: list[FakeRun]) -> None:
    training, run = begin(trainings, runs)
    run.goes_on = True
    training.halt()
    trainings.closing()
    assert run.told == ["stop"]
    run.end()


def test_what_is_finished_although_it_was_told_to_end_is_finished(trainings: Trainings, runs: list[FakeRun]) -> None:
    made: list[Training] = []
    trainings.made.connect(made.append)
    training, run = begin(trainings, runs)
    run.goes_on = True
    training.halt()
    run.say(WRITTEN, JUDGED)
    training.output.mkdir(parents=True)
    (training.output / "model.safetensors").write_bytes(b"")
    run.end()
    training.look()
    assert (training.stage, made) == (Stage.DONE, [training])


def test_nothing_of_the_commands_is_deleted_or_written_over(trainings: Trainings, runs: list[FakeRun]) -> None:
    theirs = [cache_dir() / "train" / name / "tiny-DSpark" for name in ("tiny model", "tiny-model", WANTED.key)]
    for folder in theirs:
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"weights")
    training, _ = begin(trainings, runs)
    training.work.mkdir(parents=True)
    training.output.mkdir(parents=True)
    (training.output / "model.safetensors").write_bytes(b"mine")
    finished = training.output
    trainings.drop(training)
    assert all((folder / "model.safetensors").is_file() for folder in theirs)
    assert (finished / "model.safetensors").is_file()
    again, _ = begin(trainings, runs)
    assert again.output != finished, "a new one does not write over a finished one"


def test_models_of_one_short_title_are_different_ones() -> None:
    wanted = [
        Wanted("X", "orgA/X", 1),
        Wanted("X", "orgB/X", 1),
        Wanted("\u6a21\u578b", "a", 1),
        Wanted("x", "orgC/x", 1),
    ]
    wanted.append(Wanted("\u0434\u0432\u0430", "b", 1))
    assert len({one.key.lower() for one in wanted}) == len(wanted)


def test_memory_is_said_and_refused_with_the_numbers(qtbot: QtBot, page: TrainingPage) -> None:
    propose(qtbot, page, CONFIG)
    assert page.offer is not None
    assert "once more, unpacked" in page.offer.memory.text()
    assert page.offer.start.isEnabled()
    propose(qtbot, page, CONFIG, elements=10**15)
    assert "It cannot be made here" in page.offer.memory.text()
    assert "PB" in page.offer.memory.text() or "TB" in page.offer.memory.text() or "GB" in page.offer.memory.text()
    assert not page.offer.start.isEnabled()
    assert not page.offer.anyway.isEnabled()


@pytest.fixture
def screen(qtbot: QtBot, context: AppContext, trainings: Trainings) -> Iterator[ModelsScreen]:
    store = ScriptedStore(lambda _: None)

    def open_(notify: Callable[[Any], None]) -> ScriptedStore:
        store.notify = notify
        return store

    made = ModelsScreen(context, open_=open_)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    yield made
    made.closing()


def test_the_models_screen_offers_it_for_what_is_here(
    qtbot: QtBot, screen: ModelsScreen, runs: list[FakeRun], tmp_path: Path
) -> None:
    store = screen._store
    assert isinstance(store, ScriptedStore)
    store.numbers = numbers(CONFIG)
    screen.visited(None)
    qtbot.waitUntil(lambda: screen.table.rowCount() > 1, timeout=5000)
    number = screen.table.number_of("qwen")
    assert number is not None
    screen.pairs.view.selectRow(number)
    screen.pairs.details.make.click()
    assert screen.sections.index == TRAINING
    offer = screen.training.offer
    assert offer is not None
    assert offer.heading.text() == "Make a drafter for Qwen3.8 27B"
    qtbot.waitUntil(offer.start.isEnabled, timeout=5000)
    offer.start.click()
    assert runs[0].arguments[:2] == ["--model", "mlx-community/Qwen3.8-27B-4bit"]


def test_the_shell_says_that_one_is_made_whatever_screen_is_open(
    shell: Shell, trainings: Trainings, runs: list[FakeRun]
) -> None:
    training, run = begin(trainings, runs)
    run.say(JUDGED)
    training.output.mkdir(parents=True)
    (training.output / "model.safetensors").write_bytes(b"")
    run.end()
    training.look()
    banner = shell.app.banners.current
    assert banner is not None
    assert banner.text == "The drafter for tiny model is made."


def test_what_was_finished_while_there_was_no_app_is_news(
    context: AppContext, trainings: Trainings, runs: list[FakeRun], tmp_path: Path
) -> None:
    training, run = begin(trainings, runs)
    run.say(JUDGED)
    training.output.mkdir(parents=True)
    (training.output / "model.safetensors").write_bytes(b"")
    folder = tmp_path / "training"
    assert [found.is_news for found in Trainings(folder, trainings._start_run).all] == [True]
    assert [found.is_news for found in Trainings(folder, trainings._start_run).all] == [False], "once"


def test_an_offer_for_a_gguf_converts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "models" / "tiny.gguf"
    file.parent.mkdir()
    tiny_gguf().write(file)
    store = open_store(lambda _: None)
    store.add_folder(file.parent)
    row = next(row for row in store.pairs() if "tiny" in row.title)
    found = forecast(store.target_numbers(row), None)
    assert 0 < found.needed <= found.limit
    assert not (cache_dir() / "gguf").exists()


@pytest.mark.slow
def test_a_real_one_is_made_paused_and_offered(qtbot: QtBot, context: AppContext, tmp_path: Path) -> None:
    """The command itself on a tiny model: some seconds of work, then its drafter is a pair that loads."""
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "What is this?"}\n{"prompt": "And that one?"}\n')
    models = tmp_path / "models"
    model = write_target(models / "tiny", tie_word_embeddings=True)
    extra = ["--prompts", str(prompts), "--answer", "12", "--invented", "0", "--width", "8", "--texts", "2"]
    extra += ["--anchors", "4", "--layers", "1", "--taps", "0,1,2", "--rank", "8", "--longest", "128", "--steps", "60"]
    extra += ["--shard", "16"]
    trainings = Trainings(tmp_path / "training", OwnRun)
    training = trainings.open(Wanted("tiny", str(model), 16, anyway=True, extra=tuple(extra)))
    training.start()
    qtbot.waitUntil(lambda: training.progress.step >= 10 or training.stage is Stage.FAILED, timeout=200_000)
    assert training.stage is Stage.FITTING, training.why
    training.pause()
    qtbot.waitUntil(lambda: training.stage is Stage.PAUSED, timeout=20_000)
    step = training.progress.step
    qtbot.wait(500)
    assert training.progress.step == step
    training.halt()
    qtbot.waitUntil(lambda: training.stage is Stage.HALTED, timeout=100_000)

    again = Trainings(tmp_path / "training", OwnRun)  # as after a restart of the app
    found = again.all[0]
    assert (found.stage, found.progress.step) == (Stage.HALTED, step)
    found.resume()
    qtbot.waitUntil(lambda: found.stage in (Stage.DONE, Stage.HALTED, Stage.FAILED), timeout=250_000)
    assert found.stage is Stage.DONE, found.why
    assert found.progress.step == 60

    store = open_store(lambda _: None)
    store.add_folder(models)
    rows = {row.title: row for row in store.pairs()}
    row = rows["tiny + own DSpark"]
    assert row.is_made_here
    assert store.plan_removal(row).files[0][0].parent == found.output, "the model stays"
    from slipstream_app.bridge.pair import open_choice

    engine = open_choice(row.choice)
    assert engine.info.drafters
    engine.close()
