"""Who is let in (P17), and how much at once."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator

import pytest

from fakes import Served, serving
from server.requests import chat, chat_body, client, get, post
from slipstream.server import app, auth
from slipstream.server.app import HttpServer
from slipstream.server.auth import Access, check_origins
from slipstream.server.errors import CannotListen

KEY = "slip-sesame-open"
PAGE = "https://chat.example"


@pytest.fixture(scope="module")
def keyed() -> Iterator[Served]:
    with serving(key=KEY, origins=(PAGE,)) as one:
        post(one.url, "/v1/chat/completions", chat_body(), headers={"x-api-key": KEY})
        yield one


def test_p17_another_name_of_this_machine_is_refused(served: Served) -> None:
    for host in ("evil.example:8080", "evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "[bad"):
        for path in ("/health", "/v1/models", "/v1/messages"):
            response = get(served.url, path, headers={"Host": host})
            assert response.status_code == 403, (host, path)
    for host in ("localhost:1", "127.0.0.1", "[::1]:8765", "LOCALHOST"):
        assert get(served.url, "/v1/models", headers={"Host": host}).status_code == 200


def test_p17_a_foreign_page_gets_nothing_and_no_permission(served: Served) -> None:
    foreign = {"Origin": "https://evil.example"}
    response = post(served.url, "/v1/chat/completions", chat_body(), headers=foreign)
    assert response.status_code == 403
    ask = {**foreign, "Access-Control-Request-Method": "POST"}
    with client(served.url) as one:
        flight = one.options("/v1/chat/completions", headers=ask)
    assert flight.status_code == 403
    for answer in (response, flight):
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert get(served.url, "/v1/models", headers={"Origin": "null"}).status_code == 403


def test_p17_a_program_without_origin_and_the_servers_own_page_are_let_in(served: Served) -> None:
    assert get(served.url, "/v1/models").status_code == 200
    assert get(served.url, "/v1/models", headers={"Origin": served.url}).status_code == 200


def test_p17_wide_without_a_key_is_refused() -> None:
    with serving() as served, pytest.raises(CannotListen, match="set a key first"):
        HttpServer(served.backend, "0.0.0.0", 0)


def test_p17_without_the_key_nothing_is_answered_and_nobody_learns_it(
    keyed: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for path in ("/admin/status", "/v1/models", "/metrics", "/events", "/openapi.json", "/api/tags"):
            for headers in ({}, {"Authorization": f"Bearer {KEY}x"}, {"x-api-key": "ключ".encode()}):
                response = get(keyed.url, path, headers=headers)
                assert response.status_code == 401 and KEY not in response.text
        assert get(keyed.url, "/health").status_code == 200
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    "headers", [{"Authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}, {"authorization": f"bearer {KEY}"}]
)
def test_the_key_is_taken_in_both_forms(keyed: Served, headers: dict[str, str]) -> None:
    assert get(keyed.url, "/v1/models", headers=headers).status_code == 200


def test_an_error_has_the_body_of_its_dialect(keyed: Served) -> None:
    assert get(keyed.url, "/v1/models").json()["error"]["type"] == "authentication_error"
    anthropic = post(keyed.url, "/v1/messages", {}).json()
    assert anthropic["type"] == "error" and anthropic["error"]["type"] == "authentication_error"
    assert isinstance(post(keyed.url, "/api/chat", {}).json()["error"], str)


def test_an_allowed_page_may_ask_and_is_told_so(keyed: Served) -> None:
    ask = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    with client(keyed.url) as one:
        flight = one.options("/v1/chat/completions", headers=ask)
        answer = one.post(
            "/v1/chat/completions", json=chat_body(), headers={"Origin": PAGE, "Authorization": f"Bearer {KEY}"}
        )
    assert flight.status_code == 204 and flight.headers["access-control-allow-headers"] == "authorization"
    for response in (flight, answer):
        assert response.headers["access-control-allow-origin"] == PAGE and "Origin" in response.headers["vary"]
    assert answer.status_code == 200


def test_a_star_is_not_an_origin() -> None:
    for origin in ("*", "chat.example", "https://chat.example/page"):
        with pytest.raises(ValueError, match="is not an origin"):
            check_origins([origin])
    assert check_origins(["HTTPS://Chat.example"]) == ("https://chat.example",)


def test_wide_open_answers_to_addresses_and_own_names_only() -> None:
    access = Access("0.0.0.0", KEY)
    assert access.allows_host("192.168.1.7:8765") and access.allows_host(socket.gethostname())
    assert not access.allows_host("evil.example")


def test_a_body_of_33_mb_is_413_said_or_chunked_and_the_server_lives(served: Served) -> None:
    piece = b"x" * 2**20
    with client(served.url) as one:
        said = one.post("/v1/chat/completions", content=piece * 33)
        chunked = one.post("/v1/chat/completions", content=(piece for _ in range(33)))
    assert said.status_code == chunked.status_code == 413
    assert said.json()["error"]["code"] == "request_too_large"
    chat(served.url)


def test_a_chunked_body_is_read(served: Served) -> None:
    pieces = (piece.encode() for piece in ('{"model":"m","messages":[{"role":"user",', '"content":"hi"}]}'))
    with client(served.url) as one:
        assert one.post("/v1/chat/completions", content=pieces).status_code == 200


def test_a_body_that_does_not_come_is_408(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth.Limits.__init__, "__kwdefaults__", {"body_limit": auth.BODY_LIMIT, "body_s": 0.2})
    with serving() as served, _connect(served) as slow:
        slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert slow.recv(4096).startswith(b"HTTP/1.1 408")
        chat(served.url)


def test_a_head_that_does_not_come_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "HEADER_S", 0.2)
    with serving() as served, _connect(served) as slow:
        slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: local")
        began = time.monotonic()
        assert slow.recv(4096) == b""
        assert time.monotonic() - began < 2


def test_a_head_that_is_too_large_is_400(served: Served) -> None:
    with _connect(served) as sender:
        sender.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * (auth.HEADER_LIMIT + 1))
        assert sender.recv(4096).startswith(b"HTTP/1.1 400")


def _connect(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.server.port), timeout=5)
