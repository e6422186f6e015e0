"""The engine's loop with an engine made of a script: no model."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from slipstream import service
from slipstream.errors import EngineFaulted, InvalidRequest, ModelNotFound
from slipstream.events import (
    Delta,
    Done,
    Event,
    Failed,
    Faulted,
    Finish,
    Loading,
    Prefill,
    Queued,
    Ready,
    Report,
    Status,
    Timings,
    Working,
)
from slipstream.jobs import Inbox, Job
from slipstream.service import SHORT_PROMPT, serve
from slipstream.types import ModelInfo, Request, Text, Tokens

INFO = ModelInfo("toy", "/toy", 100, 10, (), "float32", "none", (1,))
TIMINGS = Timings(0, 0, 0, 0, 1, 0, 1, 0)


class Toy:
    """Says a prompt word by word. `bad` is an error of the request, `broken` one of the model, `gate` waits.

    A word that begins with `read` is a chunk of the prompt, and nothing is said.
    """

    def __init__(self, max_batch: int = 1) -> None:
        self.info = replace(INFO, max_batch=max_batch)
        self.is_closed = False
        self.rested = threading.Event()
        self.order: list[str] = []  # whose turn it was
        self.at_gate = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.thread: threading.Thread | None = None

    def run(self, job: Job) -> Iterator[Event]:
        self.thread = threading.current_thread()
        prompt = job.request.prompt
        if isinstance(prompt, Tokens):
            words = ["short" if len(prompt.ids) <= SHORT_PROMPT else "tokens"]
        else:
            assert isinstance(prompt, Text)
            words = prompt.text.split()
        yield Prefill(0, len(words), 0)
        for word in words:
            if job.is_cancelled:
                yield Done(Finish.CANCELLED, TIMINGS, ())
                return
            self.order.append(word)
            if word == "bad":
                raise InvalidRequest("that will not do")
            if word == "broken":
                raise ValueError("NaN in the forward pass")
            if word == "gate":
                self.at_gate.release()
                assert self.gate.acquire(timeout=10)
            yield Prefill(1, len(words), 0) if word.startswith("read") else Delta(word, (1,))
        yield Done(Finish.STOP, TIMINGS, ())

    def rest(self) -> None:
        self.rested.set()

    def close(self) -> None:
        self.is_closed = True


class Served:
    def __init__(self, engine: Toy, inbox: Inbox) -> None:
        self.engine = engine
        self.inbox = inbox
        self.statuses: list[Status] = []
        self.ready = threading.Event()

    def note(self, status: Status) -> None:
        self.statuses.append(status)
        if isinstance(status, Ready | Faulted):
            self.ready.set()

    def ask(self, text: str) -> tuple[Job, queue.SimpleQueue[Event]]:
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        job = Job(Request(Text(text)), events.put)
        self.inbox.put(job)
        return job, events


@contextmanager
def serving(
    open_engine: Callable[[Report], Toy] | None = None,
    *,
    limit: int = 64,
    max_active: int | None = None,
    max_batch: int = 1,
) -> Generator[Served]:
    engine = Toy(max_batch)
    served = Served(engine, Inbox(limit))
    thread = threading.Thread(
        target=serve,
        args=(served.inbox, open_engine or (lambda _: engine), served.note),
        kwargs={"name": "toy", "max_active": max_active},
    )
    thread.start()
    assert served.ready.wait(10)
    try:
        yield served
    finally:
        served.inbox.close()
        thread.join(10)
        assert not thread.is_alive()


def whole(events: queue.SimpleQueue[Event]) -> list[Event]:
    """All that a job says. It ends once, and nothing comes after."""
    said: list[Event] = []
    while not said or not isinstance(said[-1], Done | Failed):
        said.append(events.get(timeout=10))
    return said


def text(said: list[Event]) -> str:
    return " ".join(event.text for event in said if isinstance(event, Delta))


def test_a_job_from_queue_to_done() -> None:
    with serving() as served:
        job, events = served.ask("one two")
        assert whole(events) == [
            Queued(0),
            Prefill(0, 2, 0),
            Delta("one", (1,)),
            Delta("two", (1,)),
            Done(Finish.STOP, TIMINGS, ()),
        ]
    assert served.statuses == [Loading("toy"), Ready(INFO), Working(INFO, (job.number,)), Ready(INFO)]
    assert served.engine.is_closed
    assert served.engine.thread is not threading.main_thread()
    assert events.empty()


def test_the_engine_rests_once_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "REST_AFTER_S", 0.05)
    with serving() as served:
        for _ in range(2):
            assert served.engine.rested.wait(10)
            _, events = served.ask("gate a")
            served.engine.at_gate.acquire(timeout=10)
            served.engine.rested.clear()
            assert not served.engine.rested.wait(0.2), "not while somebody is answered"
            served.engine.gate.release()
            assert isinstance(whole(events)[-1], Done)


def test_an_error_of_a_request_fails_it_alone() -> None:
    with serving() as served:
        _, other = served.ask("gate a b c")
        served.engine.at_gate.acquire(timeout=10)
        _, bad = served.ask("bad")
        served.engine.gate.release()
        said = whole(bad)
        assert isinstance(said[-1], Failed)
        assert said[-1].error.message == "that will not do"
        assert text(whole(other)) == "gate a b c"
        assert text(whole(served.ask("still here")[1])) == "still here"


@pytest.mark.filterwarnings("ignore")
def test_a_broken_forward_pass_fails_every_job_and_all_later_ones(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as served:
        _, other = served.ask("gate a b c d e f g h")
        served.engine.at_gate.acquire(timeout=10)
        _, broken = served.ask("broken")
        served.engine.gate.release()
        for events in (broken, other):
            said = whole(events)
            assert isinstance(said[-1], Failed)
            assert isinstance(said[-1].error, EngineFaulted)
            assert "NaN in the forward pass" in said[-1].error.message
        _, later = served.ask("hello")
        said = whole(later)
        assert isinstance(said[-1], Failed)
        assert said[-1].error.code == "engine_faulted"
        assert isinstance(served.statuses[-1], Faulted)
    assert served.engine.is_closed
    assert broken.empty()
    assert other.empty()
    assert "failed" in caplog.text


def test_an_engine_that_does_not_open_refuses_jobs_until_it_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    def missing(_: Report) -> Toy:
        raise ModelNotFound("no model there")

    def surprising(_: Report) -> Toy:
        raise KeyError("rope")

    for opener, code in ((missing, "model_not_found"), (surprising, "engine_faulted")):
        with serving(opener) as served:
            for _ in range(2):
                said = whole(served.ask("hello")[1])
                assert isinstance(said[-1], Failed)
                assert said[-1].error.code == code
        assert [type(status) for status in served.statuses] == [Loading, Faulted]


def test_cancel_ends_a_job_with_done_and_leaves_the_others() -> None:
    with serving() as served:
        job, events = served.ask("gate a b c")
        served.engine.at_gate.acquire(timeout=10)
        _, other = served.ask("x y")
        job.cancel()
        served.engine.gate.release()
        said = whole(events)
        assert isinstance(said[-1], Done)
        assert said[-1].reason is Finish.CANCELLED
        assert text(said) == "gate"
        assert text(whole(other)) == "x y"


def test_closing_ends_every_job_once() -> None:
    with serving(max_active=2) as served:
        asked = [served.ask("gate " + "w " * 50) for _ in range(5)]
        served.engine.at_gate.acquire(timeout=10)
        served.inbox.close()
        for _ in range(9):
            served.engine.gate.release()
        for _, events in asked:
            said = whole(events)
            assert isinstance(said[-1], Done)
            assert said[-1].reason is Finish.CANCELLED
    assert all(events.empty() for _, events in asked)


def test_jobs_take_turns_and_a_newcomer_goes_first() -> None:
    with serving() as served:
        _, slow = served.ask("gate a1 a2 a3")
        served.engine.at_gate.acquire(timeout=10)
        _, quick = served.ask("b1 b2")
        served.engine.gate.release()
        whole(slow)
        whole(quick)
    order = served.engine.order
    assert order[:3] == ["gate", "a1", "b1"] or order[:3] == ["gate", "b1", "a1"]
    assert order.index("b2") < order.index("a3")


def test_no_more_than_max_active_are_under_way() -> None:
    with serving(max_active=2) as served:
        asked = [served.ask(f"gate {name}1 {name}2") for name in "abc"]
        served.engine.at_gate.acquire(timeout=10)
        for _ in range(3):
            served.engine.gate.release()
        for _, events in asked:
            whole(events)
    most = max(len(status.jobs) for status in served.statuses if isinstance(status, Working))
    assert most == 2
    order = [word for word in served.engine.order if word != "gate"]
    # The third starts only after one of the first two has said its last word.
    assert order.index("c1") > min(order.index("a2"), order.index("b2"))


def test_a_cancelled_job_still_waiting_ends_with_done_when_the_engine_never_opened() -> None:
    def missing(_: Report) -> Toy:
        raise ModelNotFound("no model there")

    inbox, events = Inbox(), queue.SimpleQueue[Event]()
    job = Job(Request(Text("x")), events.put)
    inbox.put(job)
    job.cancel()
    inbox.close()
    serve(inbox, missing, lambda _: None)
    said = whole(events)
    assert isinstance(said[-1], Done)
    assert said[-1].reason is Finish.CANCELLED


def test_a_load_says_how_far_it_is() -> None:
    toy = Toy()

    def open_engine(report: Report) -> Toy:
        for done in (0, 40, 100):
            report(done, 100)
        return toy

    with serving(open_engine) as served:
        loading = [Loading("toy"), Loading("toy", 0, 100), Loading("toy", 40, 100), Loading("toy", 100, 100)]
        assert served.statuses[:4] == loading
        assert served.statuses[4] == Ready(INFO)


def test_closing_the_inbox_gives_a_load_up_at_its_next_piece() -> None:
    inbox, statuses, events = Inbox(), list[Status](), queue.SimpleQueue[Event]()
    inbox.put(Job(Request(Text("x")), events.put))
    freed = list[str]()

    def open_engine(report: Report) -> Toy:
        try:
            report(10, 100)
            inbox.close()
            report(20, 100)
        finally:
            freed.append("what was read")
        raise AssertionError("it went on")

    serve(inbox, open_engine, statuses.append, name="toy")
    assert freed
    assert statuses == [Loading("toy"), Loading("toy", 10, 100)], "no fault: nobody did anything wrong"
    said = whole(events)
    assert isinstance(said[-1], Done)
    assert said[-1].reason is Finish.CANCELLED


def test_a_short_prompt_does_not_wait_for_long_ones_that_have_taken_every_place() -> None:
    with serving(max_active=1) as served:
        _, long = served.ask("gate long1 long2 long3")
        assert served.engine.at_gate.acquire(timeout=10)
        _, other = served.ask("other")  # of unknown length: waits
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        served.inbox.put(Job(Request(Tokens((1,) * SHORT_PROMPT)), events.put))
        too_long: queue.SimpleQueue[Event] = queue.SimpleQueue()
        served.inbox.put(Job(Request(Tokens((1,) * (SHORT_PROMPT + 1))), too_long.put))
        served.engine.gate.release()
        whole(events)
        for later in (long, other, too_long):
            whole(later)
    order = served.engine.order
    assert order.index("short") < order.index("long3") < order.index("other") < order.index("tokens")


def test_a_cancelled_job_has_the_next_turn_and_one_in_the_queue_ends_without_any() -> None:
    with serving(max_active=2) as served:
        first, one = served.ask("a gate b c")
        assert served.engine.at_gate.acquire(timeout=10)
        _, two = served.ask("d e f")
        waiting, three = served.ask("never")
        waiting.cancel()
        first.cancel()
        served.engine.gate.release()
        ended = whole(three)[-1]
        assert isinstance(ended, Done) and ended.reason is Finish.CANCELLED
        assert text(whole(one)) in ("a gate", "a gate b")
        assert text(whole(two)) == "d e f"
    assert "never" not in served.engine.order


def test_where_rounds_are_shared_one_chunk_is_read_between_two_of_them() -> None:
    with serving(max_batch=6) as served:
        _, gate = served.ask("gate z")
        assert served.engine.at_gate.acquire(timeout=10)
        spoken = [served.ask(" ".join(f"{name}{n}" for n in range(12)))[1] for name in "abc"]
        prompts = [served.ask(" ".join(f"read{name}{n}" for n in range(4)) + " end")[1] for name in "xy"]
        served.engine.gate.release()
        for events in (gate, *spoken, *prompts):
            whole(events)
    order = [word for word in served.engine.order if word not in ("gate", "z")]
    reads = [at for at, word in enumerate(order) if word.startswith("read")]
    assert len(reads) == 8
    assert order[reads[0]][4] != order[reads[1]][4], "prompts take turns"
    for one, other in itertools.pairwise(reads):
        between = order[one + 1 : other]
        talking = [name for name in "abc" if f"{name}0" in order[:one] and f"{name}11" not in order[: other + 1]]
        assert {word[0] for word in between} >= set(talking), "each that decodes has a round"
        assert len(between) <= 4


def test_as_many_are_under_way_as_decode_together() -> None:
    with serving(max_batch=9) as served:
        _, gate = served.ask("gate z")
        assert served.engine.at_gate.acquire(timeout=10)
        asked = [served.ask("gate " + "w " * 5)[1] for _ in range(12)]
        for _ in range(13):
            served.engine.gate.release()
        for events in (gate, *asked):
            whole(events)
    assert max(len(status.jobs) for status in served.statuses if isinstance(status, Working)) == 9


def put_from(served: Served, source: str, text: str) -> tuple[Job, queue.SimpleQueue[Event]]:
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    job = Job(Request(Text(text)), events.put)
    job.source = source
    served.inbox.put(job)
    return job, events


def test_what_had_begun_ends_before_those_who_want_the_engine_alone_begin() -> None:
    with serving() as served:
        _, began = put_from(served, "client", "gate c1 c2 c3")
        assert served.engine.at_gate.acquire(timeout=10)
        release = served.inbox.hold("client")
        _, later = put_from(served, "client", "d1")
        _, first = put_from(served, "race", "r1 r2")
        served.engine.gate.release()
        whole(began)
        whole(first)
        _, second = put_from(served, "race", "r3")  # the engine had nothing that it may begin
        whole(second)
        assert "d1" not in served.engine.order
        release()
        whole(later)
    assert served.engine.order == ["gate", "c1", "c2", "c3", "r1", "r2", "r3", "d1"]


def test_an_engine_that_breaks_or_ends_tells_those_held_back() -> None:
    with serving() as served:
        served.inbox.hold("client")
        _, held = put_from(served, "client", "d1")
        _, race = put_from(served, "race", "broken")
        assert isinstance(whole(race)[-1], Failed)
        told = whole(held)[-1]
        assert isinstance(told, Failed) and isinstance(told.error, EngineFaulted)
    with serving() as served:
        served.inbox.hold("client")
        _, held = put_from(served, "client", "d1")
        served.inbox.close()
        ended = whole(held)[-1]
        assert isinstance(ended, Done) and ended.reason is Finish.CANCELLED
