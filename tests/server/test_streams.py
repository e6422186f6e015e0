"""Clients that leave, engines that hang, queues that fill, and servers that stop."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from fakes import INFO, FakeTokeniser, Script, serving
from server.requests import chat, chat_body, client, get, open_stream, post
from slipstream.errors import InvalidRequest
from slipstream.events import Done, Finish
from slipstream.jobs import Job
from slipstream.server import backend as backend_module
from slipstream.server import sse
from slipstream.server.app import HttpServer
from slipstream.server.errors import CannotListen
from slipstream.server.stream import Stream
from slipstream.types import Request, Tokens

LONG = Script(pieces=("word ",) * 2000, round_s=0.005)


def wait_for(condition: Callable[[], object], within_s: float = 3.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.002)


def test_a_client_that_leaves_a_stream_cancels_its_job(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), serving(LONG) as served:
        with open_stream(served.url, chat_body(stream=True)) as response:
            next(response.iter_lines())
        left = time.monotonic()
        wait_for(lambda: served.engine.ended)
        assert time.monotonic() - left < 0.15
        assert served.engine.ended[0].reason is Finish.CANCELLED
        wait_for(lambda: not served.backend.streams)
    assert [record.getMessage() for record in caplog.records].count("client left") == 1
    assert not [record for record in caplog.records if record.exc_info]


def test_a_client_that_leaves_a_whole_answer_cancels_its_job() -> None:
    with serving(LONG) as served:
        with client(served.url) as one, pytest.raises(Exception, match="timed out"):
            one.post("/v1/chat/completions", json=chat_body(n=2), timeout=0.2)
        wait_for(lambda: len(served.engine.ended) == 2)
        assert {done.reason for done in served.engine.ended} == {Finish.CANCELLED}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", chat_body()), ("/v1/chat/completions", chat_body(n=2)),
        ("/v1/completions", {"model": "any", "prompt": "hi"}), ("/v1/responses", {"model": "any", "input": "hi"}),
        ("/v1/messages", chat_body(max_tokens=9)), ("/api/chat", chat_body()), ("/api/generate", {"prompt": "hi"}),
    ],
)  # fmt: skip
def test_a_client_that_leaves_before_the_engine_has_said_a_word(
    path: str, body: dict[str, object], stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = Script(blocks_after=0)
    with caplog.at_level(logging.INFO), serving(blocked, max_active=1, limit=3) as served:
        waits = body.get("n", 1)
        with open_stream(served.url, chat_body("x" * 2000, stream=True)):
            wait_for(lambda: served.engine.jobs)
            with _send(served.server.port, path, body | {"stream": stream}):
                wait_for(lambda: len(served.inbox) == waits)
                jobs = list(served.inbox._jobs)
            wait_for(lambda: all(job.is_cancelled for job in jobs))
            served.engine.released.set()
            wait_for(lambda: len(served.inbox) == 0)
        wait_for(lambda: not served.backend.streams)
    assert not [record for record in caplog.records if record.exc_info]
    assert "client left" in caplog.text


def _send(port: int, path: str, body: dict[str, object]) -> socket.socket:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n"
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(head.encode() + content)
    return connection


def test_a_client_that_leaves_while_its_prompt_is_tokenised_is_not_queued() -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow(FakeTokeniser):
        def encode(self, prompt: Any) -> list[int]:
            entered.set()
            assert leave.wait(10)
            return super().encode(prompt)

    with serving(tokeniser=Slow()) as served:
        with _send(served.server.port, "/v1/chat/completions", chat_body()):
            assert entered.wait(10)
        time.sleep(0.1)
        leave.set()
        time.sleep(0.1)
        assert served.engine.jobs == [] and chat(served.url)


def test_p12_a_client_that_leaves_during_the_prompt(caplog: pytest.LogCaptureFixture) -> None:
    """The same as the case, with chunks of 20 ms and 30 rounds; 200 rounds are in the slow suite."""
    _leave_during_the_prompt(30, caplog)


@pytest.mark.slow
def test_p12_two_hundred_times(caplog: pytest.LogCaptureFixture) -> None:
    _leave_during_the_prompt(200, caplog)


def _leave_during_the_prompt(times: int, caplog: pytest.LogCaptureFixture) -> None:
    def script(job: Job) -> Script:
        assert isinstance(job.request.prompt, Tokens)
        is_long = len(job.request.prompt.ids) > 1000
        return Script(prefill_chunks=500 if is_long else 1, prefill_s=0.02 if is_long else 0)

    tool = {"type": "function", "function": {"name": "f"}}
    with caplog.at_level(logging.INFO), serving(script, info=replace(INFO, context=32768)) as served:
        threads = threading.active_count()
        for _ in range(times):
            with open_stream(served.url, chat_body("x" * 20_000, stream=True, tools=[tool])) as response:
                next(response.iter_lines())
            left = time.monotonic()
            chat(served.url)
            assert time.monotonic() - left < 1
        wait_for(lambda: len(served.engine.ended) == 2 * times)
        wait_for(lambda: not served.backend.streams)
        assert len(served.inbox) == 0 and threading.active_count() <= threads + 1  # the tokeniser's, made on first use
        assert served.engine.prefilled < 10 * times, "work stops at the next chunk"
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count("client left") == times
    assert not [record for record in caplog.records if record.exc_info]


def test_headers_and_the_first_event_come_before_the_prompt_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.1)
    with serving(Script(prefill_chunks=5, prefill_s=0.1)) as served:
        began = time.monotonic()
        with open_stream(served.url, chat_body(stream=True)) as response:
            lines = response.iter_lines()
            assert "assistant" in next(lines)
            assert time.monotonic() - began < 0.3
            rest = list(lines)
        assert rest.count(": still working") >= 2 and rest[-2:] == ["data: [DONE]", ""]


def test_a_stuck_queue_does_not_hold_back_the_headers() -> None:
    with serving(Script(blocks_after=0), max_active=1) as served, open_stream(served.url, chat_body(stream=True)):
        wait_for(lambda: served.engine.jobs)
        began = time.monotonic()
        with open_stream(served.url, chat_body(stream=True)) as waiting:
            assert waiting.status_code == 200 and "assistant" in next(waiting.iter_lines())
        assert time.monotonic() - began < 2
        served.engine.released.set()


def test_p13_a_stuck_engine_is_visible() -> None:
    now = [0.0]
    with serving(Script(pieces=("token ",) * 12, blocks_after=10), clock=lambda: now[0]) as served:
        assert get(served.url, "/health").json()["status"] == "ok"
        with open_stream(served.url, chat_body(stream=True)) as response:
            lines = response.iter_lines()
            for _ in range(11 * 2):  # the role, ten tokens, and an empty line after each
                next(lines)
            now[0] += 29
            assert get(served.url, "/health").status_code == 200
            now[0] += 2
            stuck = get(served.url, "/health")
            assert stuck.status_code == 503 and stuck.json()["status"] == "stalled"
            assert stuck.json()["seconds_since_progress"] == 31
            assert get(served.url, "/admin/status").json()["status"] == "stalled"
            served.engine.released.set()
            assert list(lines)[-2] == "data: [DONE]"
        assert get(served.url, "/health").json()["status"] == "ok"
        assert backend_module.STALLED_AFTER_S == 30
        chat(served.url)


def test_an_idle_server_is_healthy_however_long() -> None:
    now = [0.0]
    with serving(clock=lambda: now[0]) as served:
        chat(served.url)
        now[0] += 10_000
        assert get(served.url, "/health").json()["status"] == "ok"


def test_a_full_queue_is_503_with_retry_after() -> None:
    with serving(Script(blocks_after=0), max_active=1, limit=1) as served:
        with open_stream(served.url, chat_body(stream=True)):
            wait_for(lambda: served.engine.jobs)
            with open_stream(served.url, chat_body(stream=True)):
                full = post(served.url, "/v1/chat/completions", chat_body())
                assert full.status_code == 503 and full.headers["Retry-After"] == "1"
                assert full.json()["error"]["code"] == "busy"
                too_many = post(served.url, "/v1/chat/completions", chat_body(n=2, stream=True))
                assert too_many.status_code == 503
                served.engine.released.set()
        wait_for(lambda: not served.backend.streams)


def test_stopping_with_open_streams_is_quick_and_tells_them() -> None:
    with serving(LONG) as served, open_stream(served.url, chat_body(stream=True)) as response:
        lines = response.iter_lines()
        next(lines)
        with open_stream_of_events(served.url) as events:
            began = time.monotonic()
            served.server.stop()
            assert time.monotonic() - began < 2
            assert [line for line in lines if line][-1].startswith('data: {"error":')
            assert list(events)[-1] == ""


@contextmanager
def open_stream_of_events(url: str) -> Generator[Iterator[str]]:
    with client(url) as one, one.stream("GET", "/events") as response:
        lines = response.iter_lines()
        next(lines)
        yield lines


def test_stopping_with_a_stuck_engine_is_quick() -> None:
    with serving(Script(blocks_after=0)) as served:
        with open_stream(served.url, chat_body(stream=True)) as response:
            lines = response.iter_lines()
            next(lines)
            began = time.monotonic()
            served.server.stop()
            assert time.monotonic() - began < 1
            assert [line for line in lines if line][-1].startswith('data: {"error":')
        served.engine.released.set()


def test_a_taken_port_is_a_clear_error() -> None:
    with serving() as served, pytest.raises(CannotListen, match=f"port {served.server.port} on 127.0.0.1 cannot be"):
        HttpServer(served.backend, port=served.server.port)


@pytest.mark.parametrize("host", ["a..b", "a" * 70, "no.such.host.invalid"])
def test_a_host_that_can_be_none_is_a_clear_error(host: str) -> None:
    with serving() as served, pytest.raises(CannotListen, match="is not an address of this machine; choose one"):
        HttpServer(served.backend, host=host, key="a key of its own", port=0)


def test_a_server_can_be_stopped_without_being_started_and_its_port_is_free_again() -> None:
    with serving() as served:
        first = HttpServer(served.backend, port=0)
        first.stop()
        second = HttpServer(served.backend, port=first.port)
        second.start()
        assert get(second.url, "/health").status_code == 200
        second.stop()


def test_eight_clients_at_once() -> None:
    with serving(Script(pieces=("a",) * 20, round_s=0.001)) as served:
        answers: list[str] = []

        def ask(number: int) -> None:
            answers.extend(chat(served.url, str(number))["choices"][0]["message"]["content"] for _ in range(5))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == ["a" * 20] * 40
        wait_for(lambda: not served.backend.streams)


def test_a_reader_that_leaves_early_cancels_even_if_nothing_was_read() -> None:
    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"never"

    async def run() -> bool:
        closed: list[bool] = []
        stream = sse.EventStream(pieces(), on_close=lambda: closed.append(True))

        async def receive() -> dict[str, str]:
            return {"type": "http.disconnect"}

        async def send(_: object) -> None:
            await asyncio.sleep(10)

        await stream({"type": "http"}, receive, send)
        return closed == [True]

    assert asyncio.run(run())


def test_the_first_event_of_a_stream_stays_to_be_read_and_a_refusal_is_raised() -> None:
    with serving() as served:

        async def run() -> list[str]:
            stream = await Stream.open(served.backend, Request(Tokens((1, 2, 3))))
            first = await stream.first()
            names = [type(first).__name__]
            async with stream:
                names += [type(event).__name__ async for event in stream]
            assert stream.has_ended
            served.engine.script = Script(refuses=InvalidRequest("no"))
            refused = await Stream.open(served.backend, Request(Tokens((1,))))
            with pytest.raises(InvalidRequest, match="no"):
                await refused.first()
            return names

        assert asyncio.run(run()) == ["Prefill", "Queued", "Prefill", "Prefill", "Delta", "Delta", "Done"]


def test_an_event_for_a_loop_that_has_closed_cancels_its_job() -> None:
    with serving(LONG) as served:

        async def leave() -> Stream:
            stream = await Stream.open(served.backend, Request(Tokens((1,))))
            await stream.first()
            return stream

        stream = asyncio.run(leave())
        wait_for(lambda: served.engine.ended)
        assert stream.job.is_cancelled and isinstance(served.engine.ended[0], Done)
        served.backend.streams.clear()


def test_the_tokeniser_is_used_on_one_thread_alone() -> None:
    names: set[str] = set()

    class Watched(FakeTokeniser):
        def encode(self, prompt: object) -> list[int]:
            names.add(threading.current_thread().name)
            return super().encode(prompt)  # type: ignore[arg-type]

    with serving(tokeniser=Watched()) as served:
        for _ in range(3):
            chat(served.url)
    assert names == {"slipstream-tokeniser_0"}
