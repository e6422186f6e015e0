from __future__ import annotations

import threading
import time

import pytest

from slipstream.errors import Busy, Closed
from slipstream.events import Delta, Done, Event, Finish, Queued, Timings
from slipstream.jobs import Inbox, Job, Waiting, events_of
from slipstream.types import Request, Text

REQUEST = Request(Text("hello"))
DONE = Done(Finish.STOP, Timings(0, 0, 0, 0, 1, 0, 1, 0), (1,))


def job(sink: list[Event] | None = None) -> Job:
    return Job(REQUEST, (sink if sink is not None else []).append)


def test_first_in_first_out_and_each_hears_how_many_are_ahead() -> None:
    inbox, said = Inbox(), [list[Event](), list[Event]()]
    jobs = [job(events) for events in said]
    for each in jobs:
        inbox.put(each)
    assert said == [[Queued(0)], [Queued(1)]]
    assert [inbox.get(), inbox.get()] == jobs
    assert len(inbox) == 0


def test_a_full_inbox_says_busy_and_keeps_what_it_has() -> None:
    inbox = Inbox(limit=2)
    inbox.put(job())
    inbox.put(job())
    events: list[Event] = []
    with pytest.raises(Busy) as caught:
        inbox.put(job(events))
    assert caught.value.facts == {"waiting": 2, "retry_after_s": 1.0}
    assert events == []
    assert len(inbox) == 2
    inbox.get()
    inbox.put(job(events))
    assert events == [Queued(1)]


def test_a_closed_inbox_refuses_and_cancels_those_who_wait() -> None:
    inbox, waiting = Inbox(), job()
    inbox.put(waiting)
    inbox.close()
    inbox.close()
    with pytest.raises(Closed):
        inbox.put(job())
    assert waiting.is_cancelled
    assert inbox.get() is waiting  # it still has to be told
    assert inbox.get() is None


def test_getting_without_waiting() -> None:
    assert Inbox().get(wait=False) is None


def test_waiting_ends_when_a_job_comes_or_the_inbox_closes() -> None:
    inbox, got = Inbox(), list[Job | None]()
    thread = threading.Thread(target=lambda: got.extend([inbox.get(), inbox.get()]))
    thread.start()
    first = job()
    inbox.put(first)
    inbox.close()
    thread.join(5)
    assert not thread.is_alive()
    assert got == [first, None]


def test_many_threads_put_no_more_than_the_limit() -> None:
    inbox, refused = Inbox(limit=10), list[Busy]()

    def put() -> None:
        try:
            inbox.put(job())
        except Busy as error:
            refused.append(error)

    threads = [threading.Thread(target=put) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(inbox) == 10
    assert len(refused) == 20


def answer(inbox: Inbox, *events: Event) -> None:
    """A stand-in for the engine: takes one job and says these."""
    taken = inbox.get()
    assert taken is not None
    for event in events:
        taken.sink(event)


def test_events_of_a_request_end_with_the_last() -> None:
    inbox = Inbox()
    thread = threading.Thread(target=answer, args=(inbox, Delta("a", (1,)), DONE))
    thread.start()
    assert list(events_of(inbox, REQUEST)) == [Queued(0), Delta("a", (1,)), DONE]
    thread.join()


def test_leaving_early_cancels() -> None:
    inbox = Inbox()
    events = events_of(inbox, REQUEST)
    assert next(events) == Queued(0)
    taken = inbox.get()
    assert taken is not None
    assert not taken.is_cancelled
    events.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert taken.is_cancelled


def test_an_interrupted_wait_can_be_cancelled_and_followed_to_its_end() -> None:
    inbox = Inbox()
    waiting = Waiting(inbox, REQUEST)
    assert next(waiting) == Queued(0)
    waiting.job.cancel()
    answer(inbox, Delta("a", (1,)), DONE)
    assert list(waiting) == [Delta("a", (1,)), DONE]
    assert list(waiting) == []


def test_jobs_have_numbers_of_their_own_and_know_when_they_came() -> None:
    one, two = job(), job()
    assert one.number < two.number
    assert one.queued_s <= two.queued_s <= time.monotonic()


def test_whoever_left_the_queue_is_told_at_once_and_makes_room() -> None:
    inbox, said = Inbox(limit=2), [list[Event](), list[Event]()]
    jobs = [job(events) for events in said]
    for each in jobs:
        inbox.put(each)
    jobs[0].cancel()
    newcomer = job()
    inbox.put(newcomer)  # the queue was full of one that nobody waits for
    ended = said[0][-1]
    assert isinstance(ended, Done) and ended.reason is Finish.CANCELLED
    jobs[1].cancel()
    inbox.drop_cancelled()
    inbox.drop_cancelled()
    assert [type(event) for event in said[1]] == [Queued, Done]
    assert inbox.get(wait=False) is newcomer and len(inbox) == 0


def test_a_choosy_taker_leaves_the_others_in_order() -> None:
    inbox, jobs = Inbox(), [job(), job(), job()]
    for each in jobs:
        inbox.put(each)
    assert inbox.get(only=lambda one: one is jobs[1]) is jobs[1]
    assert inbox.get(wait=False, only=lambda _: False) is None
    assert [inbox.get(), inbox.get()] == [jobs[0], jobs[2]]


def from_source(source: str, sink: list[Event] | None = None) -> Job:
    made = job(sink)
    made.source = source
    return made


def test_jobs_of_a_source_are_held_back_until_they_are_let_go() -> None:
    inbox, said = Inbox(), list[Event]()
    first, second = from_source("client"), from_source("race", said)
    release, other = inbox.hold("client"), inbox.hold("client")
    inbox.put(first)
    inbox.put(second)
    assert said == [Queued(0)]  # who is held back is ahead of nobody
    assert (inbox.held, inbox.is_holding, len(inbox)) == (1, True, 2)
    assert inbox.get() is second
    assert inbox.get(wait=False) is None
    assert not inbox.wait(0)
    release()
    release()
    assert inbox.get(wait=False) is None  # the other hold is still on
    other()
    assert inbox.wait(0)
    assert inbox.get() is first
    assert not inbox.is_holding


def test_those_held_back_take_no_place_from_others_and_have_a_bound_of_their_own() -> None:
    inbox = Inbox(limit=2)
    inbox.hold("client")
    for _ in range(2):
        inbox.put(from_source("client"))
    with pytest.raises(Busy):
        inbox.put(from_source("client"))
    for _ in range(2):
        inbox.put(from_source("race"))
    with pytest.raises(Busy):
        inbox.put(from_source("race"))


def test_a_job_that_is_held_back_ends_as_soon_as_it_is_taken_back() -> None:
    """Although the engine sleeps, since there is nothing that it may begin."""
    inbox, said, got = Inbox(), list[Event](), list[Job | None]()
    held = from_source("client", said)
    release = inbox.hold("client")
    inbox.put(held)
    engine = threading.Thread(target=lambda: got.append(inbox.get()))
    engine.start()
    held.cancel()
    deadline = time.monotonic() + 5
    while len(said) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert isinstance(said[-1], Done) and said[-1].reason is Finish.CANCELLED
    assert len(inbox) == 0
    release()
    inbox.close()
    engine.join(5)
    assert got == [None]


def test_a_job_that_was_taken_back_before_the_engine_sleeps_ends_as_well() -> None:
    inbox, said = Inbox(), list[Event]()
    held = from_source("client", said)
    inbox.hold("client")
    inbox.put(held)
    held.cancel()
    engine = threading.Thread(target=inbox.get)
    engine.start()
    deadline = time.monotonic() + 2
    while len(said) < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    inbox.close()
    engine.join(5)
    assert [type(event) for event in said] == [Queued, Done]


def test_a_closed_inbox_holds_nobody_back() -> None:
    inbox, held = Inbox(), from_source("client")
    inbox.hold("client")
    inbox.put(held)
    inbox.close()
    assert held.is_cancelled
    assert inbox.get() is held
    assert not inbox.is_holding
