"""What is remembered of requests, and what is not."""

from __future__ import annotations

import time

import pytest

from fakes import Script, Served, serving
from server.requests import chat, chat_body, client, get, open_stream, post
from slipstream.errors import InvalidRequest
from slipstream.server.request_log import KEPT, RequestRecord, client_name


def last(served: Served) -> RequestRecord:
    return served.backend.requests.records[-1]


def settled(served: Served) -> RequestRecord:
    """The last record, once its request is over."""
    deadline = time.monotonic() + 5
    while last(served).seconds is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return last(served)


def test_a_request_has_its_figures_and_no_text() -> None:
    with serving(Script(reused=2)) as served:
        told = chat(served.url, "a secret", headers={}, user="u")  # two fields that nobody reads
        record = settled(served)
        assert (record.method, record.path, record.status) == ("POST", "/v1/chat/completions", 200)
        assert record.timings is not None
        assert record.timings.prompt_tokens == told["usage"]["prompt_tokens"]
        assert record.cached_share == pytest.approx(2 / told["usage"]["prompt_tokens"])
        assert record.reason == "stop"
        assert "headers" in record.ignored
        assert len(record.jobs) == 1
        assert record.text is None
        assert "secret" not in repr(record)


def test_texts_are_kept_only_on_demand() -> None:
    with serving() as served:
        served.backend.requests.keeps_text = True
        chat(served.url, "a secret")
        assert "a secret" in (settled(served).text or "")


def test_what_is_turned_away_is_counted_with_its_address() -> None:
    with serving(key="slip-sesame-open") as served:
        assert get(served.url, "/v1/models").status_code == 401
        assert settled(served).status == 401
        assert served.backend.requests.unauthorised == 1
        assert served.backend.requests.last_refused == "127.0.0.1"


def test_a_refused_request_has_its_status_and_a_failed_one_its_reason() -> None:
    with serving(Script(refuses=InvalidRequest("no such thing"))) as served:
        assert post(served.url, "/v1/chat/completions", {"messages": 3}).status_code == 400
        assert settled(served).jobs == ()
        post(served.url, "/v1/chat/completions", chat_body())
        record = settled(served)
        assert (record.status, record.reason, record.error) == (400, "invalid_request", "no such thing")


def test_a_client_that_leaves_is_a_cancelled_request() -> None:
    with serving(Script(pieces=("word ",) * 500, round_s=0.01)) as served:
        with open_stream(served.url, chat_body(stream=True)) as response:
            next(response.iter_lines())
        deadline = time.monotonic() + 5
        while last(served).reason != "cancelled":
            assert time.monotonic() < deadline
            time.sleep(0.005)


def test_only_the_last_requests_are_kept_and_changes_are_told() -> None:
    with serving() as served:
        told: list[RequestRecord] = []
        served.backend.requests.follow = told.append
        with client(served.url) as one:
            for _ in range(KEPT + 3):
                one.get("/health")
        settled(served)
        numbers = [record.number for record in served.backend.requests.records]
        assert numbers == list(range(4, KEPT + 4))
        assert {record.number for record in told if record.seconds is not None} == set(range(1, KEPT + 4))


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude-cli/2.1.0 (external, cli)", "claude-code"),
        ("codex_cli_rs/0.120.0 (Mac OS 26.1)", "codex"),
        ("opencode/1.3.0", "opencode"),
        ("pi/1.6.0", "pi"),
        ("OpenAI/Python 3.57.0", "OpenAI"),
        ("curl/8.7.1", "curl"),
        ("", "?"),
    ],
)
def test_clients_are_known_by_their_user_agent(agent: str, name: str) -> None:
    assert client_name(agent) == name
