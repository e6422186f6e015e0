"""The same answer plainly and with drafts: what it says when the engine is lost between the two."""

from __future__ import annotations

from typing import Any, cast

from slipstream.errors import ModelNotFound
from slipstream.events import Done, Finish, Timings
from slipstream.jobs import Job
from slipstream.types import Request
from slipstream_app.models.self_test import SelfTest


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
