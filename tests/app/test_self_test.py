"""The same answer plainly and with drafts: what it says when the engine is lost between the two."""

from __future__ import annotations

from typing import Any, cast

import pytest

from slipstream.errors import ModelNotFound
from slipstream.events import Delta, Done, Finish, Timings
from slipstream.jobs import Job
from slipstream.types import Chat, Mode, Request
from slipstream_app.models.self_test import PROMPTS, Kind, SelfTest


class LostSession:
    """Takes one request; after it there is no engine."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def submit(self, request: Request, source: str) -> Job:
        assert source == "self-test"
        if self.jobs:
            raise ModelNotFound("no model is loaded; load one first")
        self.jobs.append(Job(request, lambda _: None))
        return self.jobs[-1]


def test_an_engine_lost_between_the_two_answers_ends_the_test_with_its_words() -> None:
    session = LostSession()
    test = SelfTest(cast(Any, session))
    done = Done(Finish.LENGTH, Timings(0, 0, 1, 3, 1, 0, 9, 8), (1,))
    assert test.take(session.jobs[0].number, done)
    assert test.error == "no model is loaded; load one first"
    assert test.speedup is None


class Patient:
    """Takes every request."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def submit(self, request: Request, source: str) -> Job:
        self.jobs.append(Job(request, lambda _: None))
        return self.jobs[-1]


def play(speeds: dict[tuple[Kind, Mode], float], said: dict[Mode, tuple[int, ...]]) -> SelfTest:
    """The whole test, at these tokens a second."""
    session = Patient()
    test = SelfTest(cast(Any, session))
    for at, (kind, mode) in enumerate(speeds):
        job = session.jobs[at]
        assert job.request.options.mode is mode
        assert isinstance(job.request.prompt, Chat)
        assert job.request.prompt.messages[0]["content"] == PROMPTS[kind]
        assert test.speedups == {}, "not before its end"
        assert not test.take(job.number, Delta("x", said[mode]))
        timings = Timings(0, 0, 1, 1 + 64 / speeds[kind, mode], 1, 0, 65, 30)
        assert test.take(job.number, Done(Finish.LENGTH, timings, (1,))) == (at == 3)
    return test


SPEEDS = {
    (Kind.CODE, Mode.BASELINE): 10.0,
    (Kind.CODE, Mode.AUTO): 32.0,
    (Kind.PROSE, Mode.BASELINE): 10.0,
    (Kind.PROSE, Mode.AUTO): 20.0,
}


def test_code_and_prose_are_measured_apart_and_count_alike() -> None:
    test = play(SPEEDS, {Mode.BASELINE: (1, 2), Mode.AUTO: (1, 2)})
    assert test.speedups == pytest.approx({Kind.CODE: 3.2, Kind.PROSE: 2.0})
    assert test.speedup == pytest.approx(6.4**0.5)
    assert test.plain == pytest.approx(10.0)
    assert test.is_same


def test_answers_that_differ_are_seen() -> None:
    assert not play(SPEEDS, {Mode.BASELINE: (1, 2), Mode.AUTO: (1, 3)}).is_same
