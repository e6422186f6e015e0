"""Loading and unloading around the answers under way, with engines made of a script on real threads and sockets."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from fakes import INFO, FakeEngine, FakeTokeniser, Script
from server.requests import chat, chat_body, get, open_stream, post
from server.test_streams import wait_for
from slipstream.curves import Curves
from slipstream.errors import ModelNotFound, Unsteady, WontFit
from slipstream.events import Done, Empty, Event, Finish, Measured, Report, Timings
from slipstream.jobs import Inbox, Job
from slipstream.server import model_host
from slipstream.server.app import HttpServer
from slipstream.server.backend import Backend
from slipstream.server.fields import Fields
from slipstream.server.model_host import Known, ModelHost
from slipstream.server.times import read_time
from slipstream.types import Calibrate

SLOW = Script(pieces=("word ",) * 20, round_s=0.01)


@dataclass
class Hosted:
    url: str
    host: ModelHost
    server: HttpServer
    backend: Backend
    engines: list[FakeEngine] = field(default_factory=list[FakeEngine])
    open_now: int = 0
    most_open: int = 0

    def call(self, work: Any) -> Any:
        return self.server.call(work).result(10)


class Counted(FakeEngine):
    closed: Callable[[], None] = lambda: None

    def run(self, job: Job) -> Iterator[Event]:
        return self._measure(job, job.work) if isinstance(job.work, Calibrate) else super().run(job)

    def _measure(self, job: Job, work: Calibrate) -> Iterator[Event]:
        if not work.force:
            raise Unsteady("busy")
        for done in range(1, 4):
            time.sleep(0.05)
            yield Measured(done, 3, Curves({0: {1: 5.0, done: 7.0}}))
            if job.is_cancelled:
                break
        self.ended.append(Done(Finish.STOP, Timings(0, 0, 0, 0, 0, 0, 0, 0), ()))
        yield self.ended[-1]

    def close(self) -> None:
        self.closed()


@contextmanager
def hosting(script: Script = SLOW, *, load_s: float = 0.0, **settings: Any) -> Generator[Hosted]:
    """`broken` cannot be loaded, `gone` does not exist; `first`, `second` and `broken` are listed."""
    backend = Backend(Inbox(), open_tokeniser=lambda _: FakeTokeniser())
    lock = threading.Lock()

    def open_engine(name: str, report: Report) -> FakeEngine:
        for done in range(10 if load_s else 0):
            report(done, 10)
            time.sleep(load_s / 10)
        if name == "broken":
            raise WontFit("broken needs more memory than there is")

        def closed() -> None:
            with lock:
                hosted.open_now -= 1

        engine = Counted(script, replace(INFO, name=name))
        engine.closed = closed
        with lock:
            hosted.engines.append(engine)
            hosted.open_now += 1
            hosted.most_open = max(hosted.most_open, hosted.open_now)
        return engine

    def find(name: str) -> None:
        if name == "gone":
            raise ModelNotFound("no model at gone; check the path or the name")

    def listed() -> list[Known]:
        return [Known("second", 5, 100), Known("broken")]

    host = ModelHost(backend, open_engine, "first", find=find, models=listed, **settings)
    server = HttpServer(backend, port=0, models=host)
    hosted = Hosted(server.url, host, server, backend)
    server.start()
    try:
        hosted.call(host.load_default())
        yield hosted
    finally:
        for engine in hosted.engines:
            engine.released.set()
        server.stop()
        host.close()
        backend.close()


def named(answer: Any) -> str:
    return answer["model"]


def test_a_request_for_another_model_loads_it_and_any_unknown_name_is_answered_by_the_one_there() -> None:
    with hosting() as hosted:
        assert named(chat(hosted.url)) == "first"
        asked = post(hosted.url, "/v1/messages", chat_body() | {"model": "second", "max_tokens": 5})
        assert named(asked.json()) == "second"
        assert named(chat(hosted.url)) == "second"
        assert named(post(hosted.url, "/v1/chat/completions", chat_body() | {"model": "first"}).json()) == "first"
        assert hosted.most_open == 1


def test_unloading_waits_for_the_answer_under_way_and_the_next_request_loads_again() -> None:
    with hosting() as hosted, ThreadPoolExecutor(2) as pool:
        with open_stream(hosted.url, chat_body(stream=True)) as response:
            lines = response.iter_lines()
            next(lines)
            unloading = pool.submit(post, hosted.url, "/admin/unload", {})
            time.sleep(0.05)
            late = pool.submit(chat, hosted.url)
            rest = [line for line in lines if line]
            assert rest[-1] == "data: [DONE]" and sum("word" in line for line in rest) == 20
        assert unloading.result(5).json() == {"ok": True}
        assert named(late.result(5)) == "first"
        assert len(hosted.engines) == 2 and hosted.most_open == 1


def test_what_can_be_loaded_is_listed_and_health_is_good_while_nothing_is() -> None:
    with hosting() as hosted:
        post(hosted.url, "/admin/unload", {})
        assert get(hosted.url, "/health").json()["status"] == "ok"
        listed = get(hosted.url, "/admin/models").json()
        assert [(model["name"], model["loaded"]) for model in listed["models"]] == [
            ("first", False), ("second", False), ("broken", False),
        ]  # fmt: skip
        post(hosted.url, "/admin/load", {"model": "second"})
        assert [model["loaded"] for model in get(hosted.url, "/admin/models").json()["models"]] == [False, True, False]
        offered = get(hosted.url, "/v1/models").json()["data"]
        assert [(model["id"], model["loaded"]) for model in offered] == [
            ("second", True), ("first", False), ("broken", False),
        ]  # fmt: skip
        assert get(hosted.url, "/v1/models/broken").json()["context_window"] is None


def test_a_model_that_does_not_exist_leaves_the_loaded_one_alone() -> None:
    with hosting() as hosted:
        missing = post(hosted.url, "/admin/load", {"model": "gone"})
        assert missing.status_code == 404 and "check the path" in missing.json()["error"]["message"]
        assert named(chat(hosted.url)) == "first" and len(hosted.engines) == 1


def test_a_load_that_fails_is_said_and_the_next_request_loads_what_worked() -> None:
    with hosting() as hosted:
        refused = post(hosted.url, "/v1/chat/completions", chat_body() | {"model": "broken"})
        assert refused.status_code == 503 and "memory" in refused.json()["error"]["message"]
        anthropic = post(hosted.url, "/v1/messages", chat_body() | {"model": "broken", "max_tokens": 5})
        assert anthropic.json()["error"]["type"] == "overloaded_error"
        assert named(chat(hosted.url)) == "first"


def test_p11_two_loads_at_once_never_both() -> None:
    """A generation is under way, two loads come together: it ends unharmed, then they happen one after the other."""
    with hosting(load_s=0.05) as hosted, ThreadPoolExecutor(3) as pool:
        with open_stream(hosted.url, chat_body(stream=True)) as response:
            lines = response.iter_lines()
            next(lines)
            loads = [pool.submit(post, hosted.url, "/admin/load", {"model": name}) for name in ("second", "broken")]
            rest = [line for line in lines if line]
            assert rest[-1] == "data: [DONE]" and sum("word" in line for line in rest) == 20
        assert sorted(load.result(5).status_code for load in loads) == [200, 503]
        assert hosted.most_open == 1
        # What the failed load took is free again.
        assert named(post(hosted.url, "/v1/chat/completions", chat_body() | {"model": "second"}).json()) == "second"


def test_a_client_that_asked_for_a_load_may_leave() -> None:
    with hosting(load_s=1.0) as hosted:
        with pytest.raises(Exception, match="timed out"):
            post(hosted.url, "/v1/chat/completions", chat_body() | {"model": "second"}, timeout=0.5)
        assert named(chat(hosted.url)) == "second", "the load went on, and nothing waits for ever"


def test_unloading_gives_up_the_load_that_is_under_way() -> None:
    with hosting() as hosted, ThreadPoolExecutor(1) as pool:
        began = threading.Event()
        release = threading.Event()

        def open_slowly(name: str, report: Report) -> FakeEngine:
            began.set()
            while not release.wait(0.01):
                report(1, 2)
            return FakeEngine(SLOW, replace(INFO, name=name))

        opened, hosted.host._open_engine = hosted.host._open_engine, open_slowly
        load = pool.submit(post, hosted.url, "/admin/load", {"model": "second"})
        assert began.wait(5)
        assert post(hosted.url, "/admin/unload", {}).status_code == 200, "though the load would never end"
        refused = load.result(5)
        assert refused.status_code == 503
        assert "load it again" in refused.text
        assert hosted.host.loaded is None
        assert isinstance(hosted.backend.status, Empty)
        hosted.host._open_engine = opened
        assert named(chat(hosted.url)) == "first", "the next request loads what was there"


def test_idle_time_unloads_but_not_a_pinned_model() -> None:
    with hosting(keep_alive_s=0.1) as hosted:
        wait_for(lambda: hosted.host.loaded is None)
        assert named(chat(hosted.url)) == "first"
        assert post(hosted.url, "/admin/pin", {"pinned": True}).json() == {"ok": True}
        time.sleep(0.3)
        assert hosted.host.loaded == "first"
        assert named(post(hosted.url, "/v1/chat/completions", chat_body() | {"model": "second"}).json()) == "first"
        post(hosted.url, "/admin/pin", {"pinned": False})
        wait_for(lambda: hosted.host.loaded is None)
        post(hosted.url, "/admin/keep-alive", {"seconds": None})
        chat(hosted.url)
        time.sleep(0.3)
        assert hosted.host.loaded == "first"
        for body in ({}, {"seconds": -1}, {"seconds": "soon"}):
            assert post(hosted.url, "/admin/keep-alive", body).status_code == 400
        assert post(hosted.url, "/admin/pin", {"pinned": "no"}).status_code == 400
        assert post(hosted.url, "/admin/keep-alive", {"keep_alive": "5m"}).json() == {"ok": True}
        assert get(hosted.url, "/admin/models").json()["keep_alive_s"] == 300


def test_ollamas_keep_alive_is_for_the_model_that_answers_until_the_next_request() -> None:
    with hosting(Script()) as hosted:
        asked = chat_body(stream=False)
        assert post(hosted.url, "/api/chat", asked | {"keep_alive": 0}).json()["done"]
        wait_for(lambda: hosted.host.loaded is None)
        assert post(hosted.url, "/api/chat", {"model": "first", "messages": []}).json()["done_reason"] == "load"
        assert hosted.host.loaded == "first"
        assert post(hosted.url, "/api/generate", {"keep_alive": 0}).json()["done_reason"] == "unload"
        wait_for(lambda: hosted.host.loaded is None)
        post(hosted.url, "/api/generate", {"prompt": "x", "stream": False, "keep_alive": "100ms"})
        assert hosted.host.loaded == "first"
        wait_for(lambda: hosted.host.loaded is None)
        post(hosted.url, "/api/chat", asked | {"keep_alive": "100ms"})
        chat(hosted.url)  # says nothing, so the server's own setting holds: for ever
        time.sleep(0.3)
        assert hosted.host.loaded == "first"
        post(hosted.url, "/admin/keep-alive", {"seconds": 0.1})
        post(hosted.url, "/api/chat", asked | {"keep_alive": -1})
        time.sleep(0.3)
        assert hosted.host.loaded == "first"
        for times in ("soon", "5 m", "", True, [], "1h-5m"):
            refused = post(hosted.url, "/api/chat", asked | {"keep_alive": times})
            assert refused.status_code == 400 and "keep_alive" in refused.json()["error"], times
        post(hosted.url, "/admin/pin", {"pinned": True})
        post(hosted.url, "/api/chat", asked | {"keep_alive": 0})
        time.sleep(0.2)
        assert hosted.host.loaded == "first", "a pin is stronger"


def test_a_model_is_measured_while_nobody_else_is_answered() -> None:
    with hosting(SLOW) as hosted, ThreadPoolExecutor(2) as pool:
        refused = post(hosted.url, "/admin/calibrate", {})
        assert refused.status_code == 409 and refused.json()["error"]["code"] == "unsteady"
        with open_stream(hosted.url, chat_body(stream=True)) as response:
            lines = response.iter_lines()
            next(lines)
            measured = pool.submit(post, hosted.url, "/admin/calibrate", {"force": True})
            time.sleep(0.05)
            later = pool.submit(chat, hosted.url)
            assert [line for line in lines if line][-1] == "data: [DONE]"
        told = measured.result(5).json()
        assert told["model"] == "first" and told["target"] == {"0": {"1": 5.0, "3": 7.0}}
        assert named(later.result(5)) == "first"
        engine = hosted.engines[0]
        assert [isinstance(job.work, Calibrate) for job in engine.jobs] == [False, False]
        assert len(engine.ended) == 3 and not engine.ended[1].timings.output_tokens, "in this order"
        with pytest.raises(Exception, match="timed out"):
            post(hosted.url, "/admin/calibrate", {"force": True}, timeout=0.08)
        assert chat(hosted.url), "a client that leaves ends it"


def test_without_any_idle_time_each_request_has_its_load() -> None:
    with hosting(Script(), keep_alive_s=0) as hosted:
        for _ in range(3):
            wait_for(lambda: hosted.host.loaded is None)
            assert named(chat(hosted.url)) == "first"
        assert len(hosted.engines) <= 5


@pytest.mark.parametrize(
    ("text", "seconds"), [("5m", 300), ("1h30m", 5400), ("1.5s", 1.5), ("-1m", -60), ("300", 300), (-1, -1), (7.5, 7.5)]
)
def test_times_as_ollamas_clients_write_them(text: object, seconds: float) -> None:
    assert read_time(Fields({"keep_alive": text}), "keep_alive") == seconds


def test_an_answer_longer_than_the_idle_time_is_not_cut() -> None:
    with hosting(Script(pieces=("word ",) * 30, round_s=0.01), keep_alive_s=0.05) as hosted:
        assert chat(hosted.url)["choices"][0]["message"]["content"].split() == ["word"] * 30


def test_p13_restart_gives_up_a_stuck_engine_and_the_next_request_succeeds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(model_host, "HUNG_END_S", 0.1)
    with hosting(Script(pieces=("a", "b"), blocks_after=1)) as hosted, caplog.at_level(logging.WARNING):
        with open_stream(hosted.url, chat_body(stream=True)) as response:
            lines = response.iter_lines()
            next(lines)
            wait_for(lambda: hosted.engines[0].jobs)
            with ThreadPoolExecutor(1) as pool:
                restarted = pool.submit(post, hosted.url, "/admin/restart", {})
                assert [line for line in lines if line][-1].startswith('data: {"error":')
                assert restarted.result(5).json() == {"ok": True}
        assert "left behind" in caplog.text
        hosted.engines[1].script = Script()
        assert chat(hosted.url)["choices"][0]["message"]["content"] == "Hello world"
        hosted.engines[0].released.set()
        wait_for(lambda: threading.active_count() < 10)


def test_an_engine_that_broke_is_loaded_again_by_the_next_request(caplog: pytest.LogCaptureFixture) -> None:
    with hosting(Script(pieces=("a", "b"), breaks_after=1)) as hosted:
        broken = post(hosted.url, "/v1/chat/completions", chat_body())
        assert broken.status_code == 503 and broken.json()["error"]["code"] == "engine_faulted"
        with ThreadPoolExecutor(1) as pool:
            again = pool.submit(post, hosted.url, "/v1/chat/completions", chat_body())
            wait_for(lambda: len(hosted.engines) == 2)
            assert again.result(5).status_code in (200, 503)
        hosted.engines[-1].script = Script()
    assert "the forward pass broke" in caplog.text


def test_many_requests_and_loads_at_once_lose_nothing() -> None:
    with hosting(Script(pieces=("x",) * 3, round_s=0.002)) as hosted, ThreadPoolExecutor(12) as pool:
        asked = [
            pool.submit(post, hosted.url, "/v1/chat/completions", chat_body() | {"model": model})
            for model in ("first", "second", "other", "first", "second") * 6
        ]
        answers = [each.result(20) for each in asked]
        assert {answer.status_code for answer in answers} == {200}
        assert {answer.json()["choices"][0]["message"]["content"] for answer in answers} == {"xxx"}
        assert hosted.most_open == 1


def test_the_tokeniser_is_there_before_the_model_is_ready() -> None:
    opened: list[str] = []
    backend = Backend(Inbox(), open_tokeniser=lambda info: opened.append(info.name) or FakeTokeniser())
    host = ModelHost(backend, lambda name, _: FakeEngine(info=replace(INFO, name=name)), "first")
    try:
        asyncio.run(host.load_default())
        assert backend.is_loaded and opened == ["first"]
    finally:
        host.close()
        backend.close()
    assert opened == ["first"]
