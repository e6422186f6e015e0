"""The engine's loop with requests that decode together: the events of each are those of its run alone."""

from __future__ import annotations

import itertools
import queue
import random
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from slipstream.engine.engine import MlxEngine, open_engine
from slipstream.engine.pair import Pair
from slipstream.errors import EngineFaulted, InvalidRequest
from slipstream.events import Choice, Delta, Done, Event, Failed, Faulted, Finish, Prefill, Ready, Report, Status
from slipstream.jobs import Inbox, Job
from slipstream.measure.result import Answer
from slipstream.models.target import Target
from slipstream.service import serve
from slipstream.types import CacheLimits, Grammar, Mode, Options, Request, Tokens
from tiny_runs import write_byte_drafter, write_target

MIB = 2**20
MODES = (Mode.AUTO, Mode.DSPARK, Mode.DFLASH, Mode.LOOKUP, Mode.BASELINE)
JSON = Grammar("json_schema", '{"type":"array","items":{"enum":[1,22,333]},"minItems":3,"maxItems":9}')
LETTERS = Grammar("regex", "[a-d]{5,30}")
NOWHERE = Grammar("regex", "[a-")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("together")
    write_byte_drafter(root / "dspark", Mode.DSPARK)
    write_byte_drafter(root / "dflash", Mode.DFLASH)
    write_target(root / "llama")
    return root


@dataclass
class Heard:
    """What one job said, for as long as it says something."""

    job: Job
    events: queue.SimpleQueue[Event]

    def whole(self) -> list[Event]:
        said: list[Event] = []
        while not said or not isinstance(said[-1], Done | Failed):
            said.append(self.events.get(timeout=60))
        return said


class Loop:
    """A loaded pair on the engine's thread."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self.engine: MlxEngine | None = None
        self.statuses: list[Status] = []
        self.is_up = threading.Event()

    def ask(self, request: Request) -> Heard:
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        job = Job(request, events.put)
        self._inbox.put(job)
        return Heard(job, events)

    def note(self, status: Status) -> None:
        self.statuses.append(status)
        if isinstance(status, Ready | Faulted):
            self.is_up.set()


@contextmanager
def loop(
    root: Path, max_batch: int, *, kv_bits: int = 0, drafters: Sequence[str] = ("dspark", "dflash")
) -> Generator[Loop]:
    inbox = Inbox(256)
    made = Loop(inbox)

    def load(_: Report) -> MlxEngine:
        limits = CacheLimits(64 * MIB, 0, str(root)) if max_batch > 1 else None
        folders = tuple(root / name for name in drafters)
        pair = Pair(root / "llama", folders, kv_bits=kv_bits, max_batch=max_batch)
        made.engine = open_engine(pair, limits)
        return made.engine

    thread = threading.Thread(target=serve, args=(inbox, load, made.note))
    thread.start()
    assert made.is_up.wait(60)
    try:
        yield made
    finally:
        inbox.close()
        thread.join(60)
        assert not thread.is_alive()


@dataclass(frozen=True)
class Asked:
    request: Request
    leaves: int | None = None  # cancelled after so many deltas


def some_requests(rng: random.Random, count: int) -> list[Asked]:
    """Prompts that share beginnings, options of every kind."""
    beginnings = [[rng.randrange(97, 105) for _ in range(length)] for length in (4, 30, 80)]
    return [
        Asked(
            Request(
                Tokens((*rng.choice(beginnings), *(rng.randrange(97, 105) for _ in range(rng.randrange(1, 9))))),
                Options(
                    mode=rng.choice(MODES),
                    temperature=rng.choice((0.0, 0.0, 0.7)),
                    seed=rng.randrange(99),
                    max_tokens=rng.randrange(1, 26),
                    ignore_eos=rng.random() < 0.8,
                    stop=rng.choice(((), (), ("a",), ("bc", "d"))),
                    grammar=rng.choice((None, None, None, JSON, LETTERS)),
                    logprobs=rng.choice((None, None, 2)),
                    repetition_penalty=rng.choice((1.0, 1.0, 1.2)),
                    max_draft=rng.choice((None, None, 1, 3)),
                ),
            ),
            leaves=rng.choice((None, None, None, None, 1, 4)),
        )
        for _ in range(count)
    ]


@dataclass(frozen=True)
class Said:
    tokens: tuple[int, ...]
    text: str
    reason: Finish
    stop: str | None
    choices: tuple[Choice, ...]

    @classmethod
    def of(cls, events: Sequence[Event]) -> Said:
        done = events[-1]
        assert isinstance(done, Done), done
        answer = Answer()
        for event in events:
            answer.add(event)
        choices = [choice for event in events if isinstance(event, Delta) for choice in event.logprobs]
        return cls(tuple(answer.tokens), answer.text, done.reason, done.stop, tuple(choices))


def together(served: Loop, asked: Sequence[Asked]) -> list[list[Event]]:
    """Ask for all at once, take some back on the way, and hear them to their ends."""
    heard = [served.ask(one.request) for one in asked]
    said: list[list[Event]] = [[] for _ in asked]
    for one, at, into in zip(asked, heard, said, strict=True):
        while one.leaves is not None and sum(isinstance(event, Delta) for event in into) < one.leaves:
            into.append(at.events.get(timeout=60))
            if isinstance(into[-1], Done | Failed):
                break
        if one.leaves is not None:
            at.job.cancel()
    for at, into in zip(heard, said, strict=True):
        if not into or not isinstance(into[-1], Done | Failed):
            into.extend(at.whole())
    return said


def compare(asked: Sequence[Asked], said: Sequence[Sequence[Event]], alone: Sequence[Said]) -> int:
    shared = 0
    for one, events, expected in zip(asked, said, alone, strict=True):
        got = Said.of(events)
        if got.reason is Finish.CANCELLED:
            assert one.leaves is not None
            assert got.tokens == expected.tokens[: len(got.tokens)], one
        else:
            assert got == expected, one
        shared += len(got.tokens)
    return shared


def check(root: Path, seed: int, count: int, max_batch: int, kv_bits: int = 0) -> None:
    asked = some_requests(random.Random(seed), count)
    with loop(root, 1, kv_bits=kv_bits) as served:
        alone = [Said.of(served.ask(one.request).whole()) for one in asked]
    with loop(root, max_batch, kv_bits=kv_bits) as served:
        said = together(served, asked)
        again = together(served, asked)  # now from the prefix cache
    compare(asked, said, alone)
    compare(asked, again, alone)
    reused = [event.reused for events in again for event in events if isinstance(event, Prefill)]
    assert any(reused), "the prefix cache was not used"


@pytest.fixture(scope="module")
def served(root: Path) -> Generator[Loop]:
    with loop(root, 3) as served:
        yield served


def test_each_answer_is_what_it_is_alone(served: Loop) -> None:
    asked = some_requests(random.Random(1), 7)
    alone = [Said.of(served.ask(replace(one.request, reuse=False)).whole()) for one in asked]
    for _ in range(2):  # then from the prefix cache
        compare(asked, together(served, asked), alone)


def test_they_share_rounds_and_an_error_of_one_is_its_own(served: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    forward = Target.forward_rows

    def counted(onto: Target, asked: Any, taps: Any = ()) -> Any:
        rows.append(len(asked))
        return forward(onto, asked, taps)

    monkeypatch.setattr(Target, "forward_rows", counted)
    options = Options(max_tokens=20, ignore_eos=True, mode=Mode.BASELINE)
    prompt = Tokens((97, 98, 99))
    good = [served.ask(Request(prompt, replace(options, seed=seed, temperature=0.9))) for seed in range(4)]
    bad = [
        served.ask(Request(prompt, replace(options, grammar=NOWHERE))),
        served.ask(Request(Tokens((97, 300)), options)),
    ]
    said = [Said.of(one.whole()) for one in good]
    for one in bad:
        failed = one.whole()[-1]
        assert isinstance(failed, Failed) and isinstance(failed.error, InvalidRequest)
    assert [len(one.tokens) for one in said] == [20] * 4
    assert max(rows) == 3
    assert len(rows) < 4 * 19, "a round was for several"


def test_a_forward_that_breaks_ends_all_that_share_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = Target.forward_rows

    def broken(onto: Target, asked: Any, taps: Any = ()) -> Any:
        if len(asked) > 1:
            raise RuntimeError("out of memory")
        return forward(onto, asked, taps)

    with loop(root, 3, drafters=()) as served:
        monkeypatch.setattr(Target, "forward_rows", broken)
        served.statuses.clear()
        heard = [served.ask(Request(Tokens((97,)), Options(max_tokens=500, ignore_eos=True))) for _ in range(3)]
        for one in heard:
            failed = one.whole()[-1]
            assert isinstance(failed, Failed) and isinstance(failed.error, EngineFaulted)
            assert one.events.empty()
        assert isinstance(served.statuses[-1], Faulted)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 10))
def test_many_answers_are_what_they_are_alone(seed: int, root: Path) -> None:
    check(root, seed, 40, max_batch=(2, 3, 5, 8)[seed % 4], kv_bits=8 if seed % 3 == 0 else 0)


def test_a_long_prompt_is_read_in_smaller_pieces_while_others_decode(root: Path) -> None:
    engine = open_engine(Pair(root / "llama", (), max_batch=2))
    engine._chunk = 256

    def run(prompt: Sequence[int], length: int) -> Iterator[Event]:
        options = Options(max_tokens=length, ignore_eos=True, mode=Mode.BASELINE)
        return engine.run(Job(Request(Tokens(tuple(prompt)), options), lambda _: None))

    talking = run([97], 4)
    while not isinstance(next(talking), Delta):
        pass
    next(talking)
    reading = run([97, 98] * 400, 1)
    sizes = [event.done for event in itertools.islice(reading, 4) if isinstance(event, Prefill)]
    assert sizes == [0, 64, 128, 192]
    list(talking)
    sizes = [event.done for event in reading if isinstance(event, Prefill)]
    assert sizes == [448, 704, 800]
