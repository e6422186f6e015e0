"""What a loaded pair holds of the memory, counted while it answers; and how far it drafts now."""

from __future__ import annotations

from pathlib import Path

import pytest

from slipstream.engine import held
from slipstream.engine.engine import MlxEngine, open_engine
from slipstream.engine.held import Held
from slipstream.engine.pair import Pair
from slipstream.events import Delta, Done, Prefill
from slipstream.jobs import Job
from slipstream.models import streams
from slipstream.store.memory import Limit
from slipstream.types import CacheLimits, Mode, Options, Request, Text
from tiny_runs import write_byte_drafter, write_target


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MlxEngine:
    monkeypatch.setattr(held, "EVERY_S", 0.0)
    streams.renew()
    target = write_target(tmp_path / "target")
    drafter = write_byte_drafter(tmp_path / "dspark", Mode.DSPARK)
    return open_engine(Pair(target, (drafter,)), CacheLimits(2**30, 0, str(tmp_path)))


def now(engine: MlxEngine) -> Held:
    assert engine.ledger is not None
    return engine.ledger.now


def test_weights_are_what_was_loaded(engine: MlxEngine, tmp_path: Path) -> None:
    """Here all of it is float32, as it is stored; a little more stands beside it."""
    for bytes_, folder in ((now(engine).target, "target"), (now(engine).drafters, "dspark")):
        stored = (tmp_path / folder / "model.safetensors").stat().st_size
        assert 0.9 * stored < bytes_ < 2 * stored + 10**6, folder
    assert now(engine).caches == 0
    assert now(engine).active >= now(engine).target + now(engine).drafters
    assert now(engine).free > 0


def test_caches_are_counted_while_an_answer_is_under_way(engine: MlxEngine) -> None:
    seen: list[int] = []
    job = Job(Request(Text("x" * 200), Options(max_tokens=40, mode=Mode.DSPARK, ignore_eos=True)), lambda _: None)
    for event in engine.run(job):
        if isinstance(event, Prefill | Delta):
            seen.append(now(engine).caches)
        if isinstance(event, Done):
            assert event.timings.output_tokens == 40
    cache = engine.target.make_cache()
    assert seen[0] == 0, "nothing was read yet"
    assert max(seen) > 0
    engine.rest()
    assert now(engine).caches == 0
    assert cache.bytes == 0


def test_an_answer_that_is_given_up_is_counted_no_longer(engine: MlxEngine) -> None:
    job = Job(Request(Text("x" * 200), Options(max_tokens=400, ignore_eos=True)), lambda _: None)
    events = engine.run(job)
    while not isinstance(next(events), Delta):
        pass
    assert now(engine).caches > 0
    job.cancel()
    list(events)
    assert now(engine).caches == 0


def test_what_a_named_drafter_may_draft_is_said(engine: MlxEngine) -> None:
    for most, expected in ((3, 3), (50, engine.drafters[Mode.DSPARK].block)):
        options = Options(max_tokens=4, mode=Mode.DSPARK, max_draft=most)
        list(engine.run(Job(Request(Text("abc"), options), lambda _: None)))
        assert engine.costs.depth().caps == {"dspark": expected}
    list(engine.run(Job(Request(Text("abc"), Options(max_tokens=4, mode=Mode.BASELINE)), lambda _: None)))
    assert engine.costs.depth().caps == {}, "nobody drafts now"


def test_a_count_is_not_made_anew_at_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def headroom(_: Limit) -> int:
        asked.append(1)
        return 5

    monkeypatch.setattr("slipstream.store.memory.headroom", headroom)
    ledger = held.Ledger(1, 2, Limit(10, "free memory", 10, False))
    for _ in range(100):
        ledger.look()
    assert len(asked) == 2
    with ledger.holding(lambda: 7):
        ledger.look(soon=False)
        assert ledger.now.caches == 7
    assert ledger.now.caches == 0
