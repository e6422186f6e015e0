"""Calibration on tiny pairs: every cache kind, kept and used again, refused where it would mislead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten

import tiny
import tiny_families
from slipstream.curves import Curves
from slipstream.drafters.dspark import DSpark
from slipstream.drafters.protocol import Drafter, Proposal, Wish
from slipstream.engine.calibrate import Calibration, Point
from slipstream.engine.costs import PLAIN, ROUND_MS, WAIT_MS, Costs
from slipstream.engine.engine import MlxEngine, open_engine
from slipstream.engine.pair import Pair
from slipstream.engine.policy import Policy
from slipstream.errors import Unsteady
from slipstream.events import Delta, Done, Event, Finish, Measured, Prefill
from slipstream.jobs import Job
from slipstream.models.target import Target
from slipstream.store import machine
from slipstream.store.curves import curves_of
from slipstream.types import Calibrate, Mode, Options, Request, Tokens
from tiny_runs import windowed_target, write_byte_drafter, write_target

BUSY = "busy (load 9.0 on 2 processors over the last minute)"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> MlxEngine:
    root = tmp_path_factory.mktemp("calibrate")
    write_byte_drafter(root / "dspark", Mode.DSPARK)
    write_byte_drafter(root / "dflash", Mode.DFLASH)
    return open_engine(Pair(write_target(root / "target"), (root / "dspark", root / "dflash")))


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(machine, "disturbance", lambda: None)
    monkeypatch.setattr("slipstream.engine.calibrate.REPEATS", 1)
    short = partial(Calibration, contexts=(64, 200, 5000), budget_s=60.0)
    monkeypatch.setattr("slipstream.engine.engine.Calibration", short)


def started(loaded: MlxEngine) -> MlxEngine:
    """An engine of the loaded pair as it is at its start."""
    return MlxEngine(loaded.target, loaded.drafters, loaded.tokeniser, loaded.info, parts=loaded._parts)


def run(engine: MlxEngine, work: Calibrate | Request) -> list[Event]:
    return list(engine.run(Job(work, lambda _: None)))


def test_what_is_measured_is_used_and_kept(loaded: MlxEngine) -> None:
    engine = started(loaded)
    assert engine.costs.unmeasured("dspark", 7) == 0
    *measured, done = run(engine, Calibrate())
    assert isinstance(done, Done)
    assert done.reason is Finish.STOP
    assert all(isinstance(event, Measured) for event in measured)
    last = measured[-1]
    assert isinstance(last, Measured)
    assert last.done == last.total
    curves = last.curves
    assert {1, 8} <= set(curves.target[64])
    assert curves.contexts == [64, 200]  # 5000 do not fit into this target's context
    assert set(curves.drafters) == {"dspark", "dflash"}
    assert all(ms > 0 for row in curves.target.values() for ms in row.values())

    for each in (engine, started(loaded)):  # now, and at the next start
        assert each.costs.curves == curves
        assert each.costs.unmeasured("dspark", 7) is None
        assert each.pace.seconds(0, 500) is not None
        found = curves_of(each.info)
        assert found is not None
        assert found.curves == curves


def test_auto_spends_no_rounds_on_measuring_and_says_the_same(loaded: MlxEngine) -> None:
    engine = started(loaded)
    prompt = Tokens(tuple(range(40)))

    def said(mode: Mode) -> list[int]:
        request = Request(prompt, Options(mode=mode, max_tokens=40, ignore_eos=True))
        return [token for event in run(engine, request) if isinstance(event, Delta) for token in event.tokens]

    plain = said(Mode.BASELINE)
    run(engine, Calibrate())
    assert said(Mode.AUTO) == plain


def test_a_prompts_progress_says_how_long_it_will_take(loaded: MlxEngine) -> None:
    engine = started(loaded)
    request = Request(Tokens(tuple(range(100))), Options(max_tokens=1))
    first = [event.left_s for event in run(engine, request) if isinstance(event, Prefill)]
    assert first[0] is None  # nothing was read yet on this machine
    assert first[1] is not None
    again = [event.left_s for event in run(engine, request) if isinstance(event, Prefill)]
    assert None not in again
    assert again[0] > again[1] > again[-1] == 0  # type: ignore[operator]


def test_a_hot_or_busy_machine_is_not_measured(loaded: MlxEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "disturbance", lambda: BUSY)
    engine = started(loaded)
    with pytest.raises(Unsteady, match=r"busy .load 9\.0.*--force"):
        run(engine, Calibrate())
    assert isinstance(run(engine, Calibrate(force=True))[-1], Done)
    assert curves_of(engine.info) is not None  # better than a guess


def test_figures_of_a_busy_machine_replace_no_better_ones(loaded: MlxEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = started(loaded)
    run(engine, Calibrate())
    good, kept = engine.costs.curves, curves_of(engine.info)
    assert good is not None
    monkeypatch.setattr(machine, "disturbance", lambda: BUSY)
    run(engine, Calibrate(force=True))
    assert engine.costs.curves is good
    assert curves_of(engine.info) == kept


def test_a_cancelled_calibration_keeps_nothing(loaded: MlxEngine) -> None:
    engine = started(loaded)
    job = Job(Calibrate(), lambda _: None)
    events = engine.run(job)
    assert isinstance(next(events), Measured)
    job.cancel()
    (done,) = events
    assert isinstance(done, Done)
    assert done.reason is Finish.CANCELLED
    assert engine.costs.curves is None
    assert curves_of(engine.info) is None


TARGETS: dict[str, tuple[Callable[[], Target], int]] = {
    "plain": (tiny.target, 0),
    "packed": (tiny.target, 8),
    "windows": (windowed_target, 0),
    "delta nets": (lambda: tiny_families.target("qwen3_next"), 0),
    "mamba": (lambda: tiny_families.target("nemotron_h"), 0),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_every_cache_kind_can_be_measured(kind: str) -> None:
    make, kv_bits = TARGETS[kind]
    calibration = Calibration(make(), {}, kv_bits=kv_bits, chunks=(16,), contexts=(64, 300), budget_s=60.0)
    for _ in calibration.run():
        assert all(cache.length == context for context, cache in calibration._caches.items())
    assert {1, 8} <= set(calibration.curves.target[64])
    assert calibration.curves.prefill[64][16] > 0


def stopped(budget_s: float) -> Iterator[int]:
    """Sizes measured until the time is over; every pass takes 1 s by this clock."""
    ticks = iter(range(10_000))
    target = tiny.target()
    drafters: dict[Mode, Drafter] = {}
    calibration = Calibration(target, drafters, chunks=(8, 4), budget_s=budget_s, clock=lambda: float(next(ticks)))
    yield from (len(calibration._best) for _ in calibration.run())


def test_the_time_is_kept_to_but_the_most_telling_points_are_measured() -> None:
    assert list(stopped(0.0)) == [1, 2, 3, 4]
    assert 4 < len(list(stopped(45.0))) < 10


def test_no_pass_is_begun_that_would_not_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in pair took 5.26 s of 4: its last pass began in time."""
    now, measured = [0.0], list[Point]()

    def slow(self: Calibration, point: Point) -> float:
        del self
        now[0] += 2.0 if point.source == "prefill" else 0.7
        measured.append(point)
        return 1.0

    monkeypatch.setattr(Calibration, "_measure", slow)
    monkeypatch.setattr("slipstream.engine.calibrate.REPEATS", 5)
    calibration = Calibration(tiny.target(), {}, chunks=(8, 4), contexts=(64,), budget_s=9.0, clock=lambda: now[0])
    list(calibration.run())
    assert 8.0 < now[0] <= 9.0
    assert Point("prefill", 64, 4) not in measured
    assert len(set(measured)) >= 6


def test_a_context_with_one_width_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time ends between two: as if every width behind that context cost what one token costs."""
    now = [0.0]

    def timed(self: Calibration, point: Point) -> float:
        del self
        now[0] += 1.0
        return 10.0 * point.size

    monkeypatch.setattr(Calibration, "_measure", timed)
    calibration = Calibration(tiny.target(), {}, chunks=(8,), contexts=(64, 200), budget_s=7.0, clock=lambda: now[0])
    for _ in calibration.run():
        assert calibration.curves.verify_ms(8, 200) in (10.0, 80.0)
        assert len(calibration.curves.target) == 1 or calibration.curves.verify_ms(8, 200) == 80.0
    assert {point.context for point in calibration._best if point.source == "target"} == {64, 200}


def test_a_prompt_is_read_in_the_longest_chunks_that_can_be_cancelled() -> None:
    curves = Curves(prefill={128: {128: 40.0, 512: 120.0, 2048: 450.0}, 4096: {512: 300.0}})
    assert curves.chunk(150) == 512
    assert curves.chunk(1000) == 2048
    assert curves.chunk(10) == 128  # none can: the shortest
    assert Curves().chunk(150) is None


def test_costs_follow_curves_and_are_corrected_by_rounds() -> None:
    target = {128: {1: 10.0, 8: 17.0}, 1128: {1: 20.0, 8: 27.0}}
    costs = Costs(frozenset({"lookup"}), Curves(target, {"dspark": {128: {7: 3.0}}}))
    assert costs.unmeasured("dspark", 7) is None
    assert costs.round_ms(PLAIN, 0, 128) == 10.0 + ROUND_MS
    assert costs.round_ms("dspark", 7, 128) == 20.0 + ROUND_MS
    assert costs.rounds_ms("dspark", 7, 128)[7] == 20.0 + ROUND_MS
    assert costs.rounds_ms("dspark", 7, 128, drafted=7)[0] == 13.0 + WAIT_MS + ROUND_MS
    assert costs.round_ms("lookup", 7, 128) == 17.0 + ROUND_MS
    assert costs.round_ms("dspark", 7, 1128) == 30.0 + ROUND_MS
    for _ in range(30):
        costs.learn("dspark", 7, 42.0, 128)  # rounds take twice as long as measured
    assert costs.round_ms("dspark", 7, 128) == pytest.approx(42, rel=0.02)
    assert costs.round_ms("dspark", 7, 1128) == pytest.approx(62, rel=0.02)
    assert costs.round_ms(PLAIN, 0, 128) == pytest.approx(22, rel=0.02)  # never run: taken to have slowed down as well


def test_a_number_held_up_while_it_was_measured_is_no_dearer_than_a_wider_one() -> None:
    """So it was on a busy machine: 4 rows 931 ms, 8 rows 491."""
    costs = Costs(curves=Curves({128: {1: 421.0, 4: 931.0, 8: 491.0}}, {"dspark": {128: {7: 60.0}}}))
    dear = costs.rounds_ms("dspark", 7, 128)
    assert dear == sorted(dear)
    assert dear[3] == dear[7] == 491 + 60 + ROUND_MS
    assert costs.curves is not None
    assert costs.curves.target[128][4] == 931.0  # what is shown is what was measured


def test_what_a_chart_shows_was_measured() -> None:
    costs = Costs()
    assert costs.rounds() == {}
    costs.learn("lookup", 3, 12.0)
    assert costs.rounds() == {"lookup": [(3, pytest.approx(12.0))]}
    costs.start_from(Curves({128: {1: 10.0, 4: 13.0, 8: 17.0, 33: 50.0}}, {"dspark": {128: {7: 3.0}}}))
    beside = ROUND_MS
    assert costs.rounds() == {PLAIN: [(0, 10.0 + beside)], "dspark": [(3, 16.0 + beside), (7, 20.0 + beside)]}
    for _ in range(30):
        costs.learn("dspark", 7, 30.0)
    (few, few_ms), (many, many_ms) = costs.rounds()["dspark"]
    assert (few, many) == (3, 7)
    assert 20 < few_ms < many_ms == pytest.approx(30, rel=0.02)


def test_a_policy_knows_how_long_its_text_is() -> None:
    """Where attention to a long context is what costs, wide verification pays, and at its beginning it does not."""
    target = {0: {1: 10.0, 8: 80.0}, 8000: {1: 100.0, 8: 105.0}}
    costs = Costs(curves=Curves(target, {"dspark": {0: {7: 1.0}}}))
    assert Policy(costs, context=0).length("dspark", 7) == 0
    assert Policy(costs, context=8000).length("dspark", 7) == 7


def parameter_bytes(target: Target, *, without: str = "", of: str = "") -> int:
    named: list[tuple[str, mx.array]] = tree_flatten(target.model.parameters())  # type: ignore[assignment]
    return sum(array.nbytes for name, array in named if of in name and not (without and without in name))


def test_a_drafters_first_pass_is_not_timed(loaded: MlxEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the weights in: on two cores 208 ms of the built-in DSpark, where every later one took 50."""
    now, used = [0.0], set[str]()
    propose = DSpark.propose_together

    def slow_at_first(self: DSpark, wishes: Sequence[Wish]) -> list[Proposal]:
        now[0] += 0.05 if "dspark" in used else 10.0
        used.add("dspark")
        return propose(self, wishes)

    monkeypatch.setattr(DSpark, "propose_together", slow_at_first)
    measuring = Calibration(
        loaded.target, loaded.drafters, chunks=(32,), contexts=(64,), budget_s=0.0, clock=lambda: now[0]
    )
    list(measuring.run())
    assert measuring.curves.drafters["dspark"][64][7] == pytest.approx(50)


def test_what_a_token_reads_of_the_weights() -> None:
    tied = tiny.target()
    assert tied.read_bytes == parameter_bytes(tied)  # the embedding is the head
    untied = tiny.target(model_type="qwen3")
    assert untied.read_bytes == parameter_bytes(untied, without="embed_tokens")
    packed = tiny.target("4-bit")
    assert packed.read_bytes == parameter_bytes(packed)
    experts = tiny_families.target("qwen3_moe")  # asks two of four
    asked = parameter_bytes(experts, of="switch_mlp") // 2
    assert asked
    assert experts.read_bytes == parameter_bytes(experts, without="embed_tokens") - asked
