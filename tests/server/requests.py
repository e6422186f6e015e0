"""Requests as clients send them, and their streams read back."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx2

Json = dict[str, Any]

WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}
FIND_TEXT: Json = {
    "type": "function",
    "function": {
        "name": "find_text",
        "parameters": {"type": "object", "properties": {"pattern": {"type": "string"}, "max": {"type": "integer"}}},
    },
}


def chat_body(content: str = "hi", **more: Any) -> Json:
    return {"model": "any-model", "messages": [{"role": "user", "content": content}], **more}


def client(url: str = "", **more: Any) -> httpx2.Client:
    """Without what TLS needs, which takes longer to load than a test to run."""
    return httpx2.Client(base_url=url, timeout=10, verify=False, trust_env=False, **more)


def post(url: str, path: str, body: Any, **more: Any) -> httpx2.Response:
    with client(url) as one:
        return one.post(path, json=body, **more)


def get(url: str, path: str, **more: Any) -> httpx2.Response:
    with client(url) as one:
        return one.get(path, **more)


def chat(url: str, content: str = "hi", **more: Any) -> Json:
    response = post(url, "/v1/chat/completions", chat_body(content, **more))
    assert response.status_code == 200, response.text
    return response.json()


def chunks(text: str) -> list[Json]:
    """The data of a stream, without its ending."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def streamed(url: str, content: str = "hi", **more: Any) -> list[Json]:
    response = post(url, "/v1/chat/completions", chat_body(content, stream=True, **more))
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text.endswith("data: [DONE]\n\n")
    return chunks(response.text)


def joined(pieces: list[Json], name: str = "content") -> str:
    return "".join(piece["choices"][0]["delta"].get(name) or "" for piece in pieces if piece["choices"])


@contextmanager
def open_stream(url: str, body: Json, path: str = "/v1/chat/completions") -> Generator[httpx2.Response]:
    with client(url) as one, one.stream("POST", path, json=body) as response:
        yield response
