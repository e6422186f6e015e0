"""What broken and hostile clients send: the right status, and a server that answers the next one."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Generator
from contextlib import closing

import pytest

from fakes import Script, Served, serving
from server.requests import chat, chat_body, client, get

POSTS = (
    *("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"),
    *("/api/chat", "/api/generate"),
)
LIMIT_S = 5.0


@pytest.fixture(autouse=True)
def lives(served: Served) -> Generator[None]:
    """After each of these the server is as it was."""
    yield
    assert chat(served.url)["choices"][0]["message"]["content"] == "Hello world"
    assert get(served.url, "/health").json()["active"] == 0


def raw(served: Served, data: bytes, *, ends: bool = False) -> tuple[int, bytes]:
    """Status and the rest of what comes back; status 0: the connection was closed without a word."""
    with closing(socket.create_connection(("127.0.0.1", served.server.port), timeout=LIMIT_S)) as connection:
        connection.sendall(data)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        got = b""
        while b"\r\n\r\n" not in got and (piece := connection.recv(65536)):
            got += piece
    head, _, rest = got.partition(b"\r\n")
    return (int(head.split()[1]), rest) if head else (0, b"")


def posted(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


HI = b'{"model":"m","messages":[{"role":"user","content":"x"}],"input":"x","prompt":"x",'
BODIES = [
    *(b"", b"{", b"null", b"[]", b'"x"', b"1", b"{}", b"\x00", b"\xff\xfe", b'{"model": "\xff"}'),
    *(b"[" * 100_000, b'{"a":' * 50_000, b'{"model": NaN}', b'{"model": 1e999}'),
    b'{"model":"m","messages":"x","prompt":{},"input":1}',
    b'{"model":[],"messages":[{}],"prompt":[[]],"input":[{}]}',
    b'{"model":"m","messages":[[]],"prompt":[1e400],"input":[[]]}',
    b'{"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}],"input":[{"type":"x"}],"prompt":[-1]}',
    HI + b'"max_tokens":"many","options":[],"max_output_tokens":1.5}',
    HI + b'"stream":"yes"}',
    HI + b'"prompt":3,"tools":[{"type":7}],"think":7}',
]


@pytest.mark.parametrize("path", POSTS)
def test_malformed_bodies_and_wrong_types_are_400(served: Served, path: str) -> None:
    for body in BODIES:
        status, _ = raw(served, posted(path, body))
        loads_model = path in ("/api/chat", "/api/generate") and body == b"{}"  # Ollama's way to load a model
        # Counting ignores how long an answer may be; the others' fields are not all each other's.
        assert status == 400 or (status == 200 and (loads_model or b'"x"' in body)), (path, body[:60], status)


def test_a_model_that_is_no_name_is_400(served: Served) -> None:
    for value in (7, [], {}, True):
        body = json.dumps(chat_body() | {"model": value, "max_tokens": 1}).encode()
        for path in ("/v1/chat/completions", "/v1/messages"):
            assert raw(served, posted(path, body))[0] == 400


@pytest.mark.parametrize(
    ("data", "statuses"),
    [
        (b"GET /health HTTP/1.0\r\n\r\n", {200}),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", {200}),
        (b"GET /health HTTP/1.1\r\n\r\n", {400}),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", {400, 403}),
        (b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n", {200, 400, 505}),
        (b"HEAD /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n", {200}),
        (b"HEAD /v1/messages HTTP/1.1\r\nHost: localhost\r\n\r\n", {405}),
        (b"OPTIONS /v1/messages HTTP/1.1\r\nHost: localhost\r\n\r\n", {405}),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", {404}),
        (b"BREW /health HTTP/1.1\r\nHost: localhost\r\n\r\n", {405}),
        (b"PUT /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", {405}),
        (b"CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", {400, 404, 405}),
        (b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n", {200, 400, 404}),
        (b"GET //health HTTP/1.1\r\nHost: localhost\r\n\r\n", {404}),
        (b"GET /v1/models/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", {404}),
        (b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", {404}),
        (b"GET /v1/models/%00%ff HTTP/1.1\r\nHost: localhost\r\n\r\n", {404}),
        (b"GET /health?" + b"a=1&" * 10_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", {200}),
        (b"GET /health\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n", {400}),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", {400, 431}),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 40_000 + b"\r\n", {400, 431}),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nNo colon\r\n\r\n", {400}),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", {400}),  # TLS
        (b"hello\r\n\r\n", {400}),
        (posted("/v1/messages", b"{}", "Content-Length: 5"), {400}),
        (posted("/v1/messages", b"{}\r\n", "Transfer-Encoding: chunked"), {400}),
        (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", {400}),
        (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n", {400}),
        (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\nZZ\r\n", {400, 501}),
        (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", {413}),
        (posted("/health", b"{}"), {405}),
        (posted("/v1/messages", b"{}", "Content-Encoding: gzip"), {400, 415}),
        (posted("/admin/load", b"{}"), {404}),
    ],
)  # fmt: skip
def test_strange_requests_get_their_status(served: Served, data: bytes, statuses: set[int]) -> None:
    status, rest = raw(served, data)
    assert status in statuses, (data[:80], status, rest[-200:])


def test_options_of_a_foreign_page_are_refused_and_say_nothing(served: Served) -> None:
    ask = b"Origin: null\r\nAccess-Control-Request-Method: POST\r\n\r\n"
    status, rest = raw(served, b"OPTIONS /v1/messages HTTP/1.1\r\nHost: localhost\r\n" + ask)
    assert status == 403 and b"access-control" not in rest.lower()


def test_requests_behind_each_other_are_all_answered(served: Served) -> None:
    """HTTP's pipelining, which nobody uses and nobody forbids."""
    one = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with closing(socket.create_connection(("127.0.0.1", served.server.port), timeout=LIMIT_S)) as connection:
        connection.sendall(one * 4 + last)
        got = b""
        while piece := connection.recv(65536):
            got += piece
    assert got.count(b"HTTP/1.1 200") == 5


def test_a_body_that_ends_early_is_nobodys(served: Served) -> None:
    before = len(served.engine.jobs)
    data = posted("/v1/chat/completions", json.dumps(chat_body()).encode()).replace(
        b"Content-Length: ", b"Content-Length: 9"
    )
    assert raw(served, data, ends=True)[0] in (0, 400)
    assert len(served.engine.jobs) == before


def test_many_connections_that_say_nothing_keep_nobody_out(served: Served) -> None:
    idle = [socket.create_connection(("127.0.0.1", served.server.port), timeout=LIMIT_S) for _ in range(200)]
    try:
        began = time.monotonic()
        assert chat(served.url)
        assert time.monotonic() - began < LIMIT_S
    finally:
        for connection in idle:
            connection.close()


def test_a_reader_that_does_not_read_holds_up_nobody(served: Served) -> None:
    """Its answer waits in the server, and ends with it; others get theirs."""
    with serving(Script(pieces=("x" * 100_000,) * 40, round_s=0.001)) as big:
        body = json.dumps(chat_body(stream=True, max_tokens=8000)).encode()
        with closing(socket.create_connection(("127.0.0.1", big.server.port), timeout=LIMIT_S)) as deaf:
            deaf.sendall(posted("/v1/chat/completions", body))
            with client(big.url) as one:
                assert one.get("/health", timeout=LIMIT_S).status_code == 200
                assert (
                    one.post("/v1/chat/completions", json=chat_body(max_tokens=1), timeout=LIMIT_S).status_code == 200
                )
        assert chat(served.url)


def test_forty_clients_at_once_of_which_half_hang_up(served: Served) -> None:
    wrong: list[object] = []

    def one(number: int) -> None:
        try:
            if number % 2:
                body = json.dumps(chat_body(stream=True)).encode()
                with closing(
                    socket.create_connection(("127.0.0.1", served.server.port), timeout=LIMIT_S)
                ) as connection:
                    connection.sendall(posted("/v1/chat/completions", body)[: 20 * number])
            else:
                assert chat(served.url)["choices"]
        except Exception as error:  # whatever it is, it is what we look for
            wrong.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong
