"""A model server without a model: it lists one model, asks for one file to be read, and says what was in it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from slipstream.agents.config import ModelCard, Place, ServerAddress

MODEL = "org/local-model"
CONTEXT = 131_072
Event = tuple[str, dict[str, Any]]


@dataclass
class Scripted:
    """The server's address, and the requests that it got: method, path, headers in lower case, body."""

    address: ServerAddress
    requests: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    card: ModelCard = field(default_factory=lambda: ModelCard(MODEL, CONTEXT))
    reads_files: bool = True  # False: it answers without using a tool, as a small model may

    def posted(self, path: str) -> list[Any]:
        return [body for method, where, _, body in self.requests if method == "POST" and where.split("?")[0] == path]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    home = tmp_path / "home"
    home.mkdir()
    return Place.at(home)


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    yield from _serve(None)


@pytest.fixture
def locked() -> Iterator[Scripted]:
    """The same behind a key, with letters that some clients would read as a command or a variable."""
    yield from _serve("!sk-$HOME-0123456789abcdef")


def _serve(key: str | None) -> Iterator[Scripted]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    scripted = Scripted(ServerAddress(f"http://127.0.0.1:{server.server_address[1]}", key))
    _Handler.of[server.server_address[1]] = scripted
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield scripted
    server.shutdown()
    thread.join()
    server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    of: ClassVar[dict[int, Scripted]] = {}  # by port

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    @property
    def _scripted(self) -> Scripted:
        return self.of[self.server.server_address[1]]  # type: ignore[index]

    def do_HEAD(self) -> None:
        self._answer(200, None)

    def do_GET(self) -> None:
        self._note(None)
        if not self._is_let_in():
            return
        item = {"id": MODEL, "object": "model", "created": 0, "owned_by": "test", "context_window": CONTEXT}
        self._answer(200 if self.path.startswith("/v1/models") else 404, {"object": "list", "data": [item]})

    def do_POST(self) -> None:
        if "chunked" in self.headers.get("transfer-encoding", ""):
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.loads(raw or b"{}")
        self._note(body)
        if not self._is_let_in():
            return
        path = self.path.split("?")[0]
        dialects = {
            "/v1/chat/completions": _chat,
            "/v1/messages": _messages,
            "/v1/responses": _responses,
        }
        if path == "/v1/messages/count_tokens":
            self._answer(200, {"input_tokens": 10})
        elif path in dialects:
            text, call = _script(body, self._scripted.reads_files)
            self._stream(dialects[path](text, call))
        else:
            self._answer(404, {"error": {"message": f"no route {path}"}})

    def _note(self, body: Any) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._scripted.requests.append((self.command, self.path, headers, body))

    def _is_let_in(self) -> bool:
        key = self._scripted.address.key
        if key is None or key in (self.headers.get("x-api-key"), self.headers.get("authorization", "")[7:]):
            return True
        self._answer(401, {"error": {"message": "wrong key", "type": "authentication_error"}})
        return False

    def _answer(self, status: int, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: list[Event]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            self.wfile.write(f"{head}data: {json.dumps(data)}\n\n".encode())
            self.wfile.flush()
        if events[0][0] == "":
            self.wfile.write(b"data: [DONE]\n\n")


# ------------------------------------------------------------------ the script

Call = tuple[str, dict[str, Any]]


def _script(body: dict[str, Any], reads_files: bool) -> tuple[str, Call | None]:
    """Read the file that the last user text names; when a code word has come back, say it."""
    texts = json.dumps(body.get("messages") or body.get("input"), ensure_ascii=False)
    asked = texts.rfind("Use a tool to read the file")
    found = re.findall(r"CODE-[0-9a-f]+", texts[asked:]) if asked >= 0 else []
    if found:
        return f"The code word is {found[-1]}.", None
    path = re.search(r"Use a tool to read the file (/\S+?\.txt)", texts)
    tools = [_named(tool) for tool in body.get("tools") or ()]
    if path and tools and reads_files:
        return "I will read it.", _reading(tools, path.group(1))
    return "Hello from the server.", None


def _named(tool: dict[str, Any]) -> tuple[str, set[str]]:
    inner = tool.get("function") or tool
    schema = inner.get("input_schema") or inner.get("parameters") or {}
    return str(inner.get("name")), set(schema.get("properties") or ())


def _reading(tools: list[tuple[str, set[str]]], path: str) -> Call:
    for name, keys in tools:
        argument = keys & {"file_path", "filePath", "path"}
        if name.lower() == "read" and argument:
            return name, {argument.pop(): path}
    name = next(name for name, keys in tools if "cmd" in keys)
    return name, {"cmd": f"cat {path}"}


def _chat(text: str, call: Call | None) -> list[Event]:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return "", {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": MODEL, "choices": [choice]}

    events = [chunk({"role": "assistant", "content": text})]
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        events.append(chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}))
    events.append(chunk({}, "tool_calls" if call else "stop"))
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    last = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": MODEL, "choices": [], "usage": usage}
    return [*events, ("", last)]


def _messages(text: str, call: Call | None) -> list[Event]:
    usage = {"input_tokens": 100, "output_tokens": 10}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": MODEL, "content": [], "usage": usage}
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"type": "text", "text": ""}, {"type": "text_delta", "text": text})
    ]
    if call:
        start = {"type": "tool_use", "id": "toolu_1", "name": call[0], "input": {}}
        blocks.append((start, {"type": "input_json_delta", "partial_json": json.dumps(call[1])}))
    events: list[Event] = [("message_start", {"message": {**message, "stop_reason": None}})]
    for index, (start, delta) in enumerate(blocks):
        events.append(("content_block_start", {"index": index, "content_block": start}))
        events.append(("content_block_delta", {"index": index, "delta": delta}))
        events.append(("content_block_stop", {"index": index}))
    stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    events += [("message_delta", {"delta": stop, "usage": usage}), ("message_stop", {})]
    return [(name, {"type": name, **data}) for name, data in events]


def _responses(text: str, call: Call | None) -> list[Event]:
    response: dict[str, Any] = {"id": "r1", "object": "response", "created_at": 0, "model": MODEL, "output": []}
    content = {"type": "output_text", "text": text, "annotations": []}
    items: list[dict[str, Any]] = [
        {"id": "i0", "type": "message", "role": "assistant", "status": "completed", "content": [content]}
    ]
    if call:
        arguments = json.dumps(call[1])
        item = {"id": "i1", "type": "function_call", "call_id": "call_1", "name": call[0], "arguments": arguments}
        items.append({**item, "status": "completed"})
    events: list[Event] = [("response.created", {"response": {**response, "status": "in_progress"}})]
    for index, item in enumerate(items):
        events.append(("response.output_item.added", {"output_index": index, "item": item}))
        events.append(("response.output_item.done", {"output_index": index, "item": item}))
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, **details}
    done = {**response, "status": "completed", "output": items, "usage": usage}
    events.append(("response.completed", {"response": done}))
    return [(name, {"type": name, "sequence_number": n, **data}) for n, (name, data) in enumerate(events)]
