"""What real clients sent: each request is answered in the order that its client needs, and prompts only grow."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from fakes import INFO, FakeTokeniser, Script, Served, serving
from prompt.templates import SMOLLM2, STRICT, TAGGED, TemplateTokeniser
from server.events import Json, read_events, types
from server.requests import chunks, client
from slipstream.prompt.output import OutputStyle
from slipstream.prompt.thinking import ThinkTags
from slipstream.types import Tokens

FOLDER = Path(__file__).parent.parent / "data" / "clients"
NAMES = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.glob("*/*.json"))

# Each must extend the one before it (shared/clients/README.md).
SEQUENCES: dict[str, tuple[str, ...]] = {
    "claude-code": ("04", "05", "06", "07", "08"),
    "claude-code tools": ("10", "11", "12", "13"),
    "codex": ("01", "02", "03", "04"),
    "pi chat": ("01", "02", "03", "04"),
    "pi messages": ("07", "08"),
    "pi responses": ("10", "11"),
    "opencode": ("02", "03", "04"),
}
# Images that a user sends, or that agents send in a user's name. The others are results of tools, which get a note.
WITH_IMAGES = ("pi/05-chat-image-result", "opencode/05-chat-image-result")

ANSWER = ("<think>hm", "</think>", "I look", " it up.")


class Tokeniser(TemplateTokeniser, FakeTokeniser):
    def __init__(self, template: str) -> None:
        super().__init__(template)
        self.style = OutputStyle(self.style.tools, ThinkTags("<think>", "</think>"))


@contextmanager
def answering(template: str) -> Generator[tuple[Served, httpx2.Client]]:
    info = replace(INFO, context=2**20)
    with serving(Script(ANSWER), info=info, tokeniser=Tokeniser(template)) as one, client(one.url) as http:
        http.post("/v1/responses", json={"model": "m", "input": "hi"})  # its threads are all there now
        yield one, http


@pytest.fixture(scope="module")
def tagged() -> Iterator[tuple[Served, httpx2.Client]]:
    with answering(TAGGED) as both:
        yield both


@pytest.fixture(scope="module", params=[SMOLLM2, TAGGED, STRICT], ids=["smollm2", "tagged", "strict"])
def captured(request: pytest.FixtureRequest) -> Iterator[tuple[Served, httpx2.Client]]:
    with answering(request.param) as both:
        yield both


def load(name: str) -> Json:
    return json.loads((FOLDER / f"{name}.json").read_text())


def send(http: httpx2.Client, asked: Json) -> httpx2.Response:
    headers = {name: value for name, value in asked["headers"].items() if name.lower() != "content-type"}
    if asked["method"] != "POST":
        return http.request(asked["method"], asked["path"], headers=headers)
    return http.post(asked["path"], json=asked["body"], headers=headers)


def test_all_are_here() -> None:
    assert len(NAMES) == 86


@pytest.mark.parametrize("name", NAMES)
def test_a_request_is_answered_as_its_client_needs(tagged: tuple[Served, httpx2.Client], name: str) -> None:
    asked = load(name)
    path = asked["path"].partition("?")[0]
    if asked["method"] == "GET" and path == "/v1/responses":
        asked["headers"] |= {"Upgrade": "websocket", "Connection": "Upgrade"}
        assert send(tagged[1], asked).status_code == 426
        return
    response = send(tagged[1], asked)
    if name in WITH_IMAGES:
        assert response.status_code == 400 and "image" in response.json()["error"]["message"]
        return
    assert response.status_code == 200, response.text
    if name == "claude-code/03-title-small-model":
        grammar = tagged[0].engine.jobs[-1].request.options.grammar
        assert grammar is not None and '"title"' in grammar.text
    is_stream = bool(asked["body"] and asked["body"].get("stream"))
    match path:
        case "/v1/messages":
            check_messages(response, is_stream)
        case "/v1/responses":
            check_responses(response, is_stream)
        case "/v1/chat/completions":
            check_chat(response, asked["body"], is_stream)
        case "/v1/messages/count_tokens":
            assert response.json()["input_tokens"] > 0
        case "/v1/models":
            assert response.json()["data"][0]["id"] == INFO.name
        case _:
            assert asked["method"] == "HEAD"


def check_messages(response: httpx2.Response, is_stream: bool) -> None:
    if not is_stream:
        answer = response.json()
        assert [block["type"] for block in answer["content"]] == ["thinking", "text"]
        assert answer["stop_reason"] == "end_turn"
        return
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert types(read_events(response.text)) == [
        "message_start",
        "ping",
        *block,
        *block,
        "message_delta",
        "message_stop",
    ]


def check_responses(response: httpx2.Response, is_stream: bool) -> None:
    if not is_stream:
        assert response.json()["object"] == "response"
        return
    kinds = types(read_events(response.text))
    assert kinds[:2] == ["response.created", "response.in_progress"] and kinds[-1] == "response.completed"
    assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done") == 2
    assert "[DONE]" not in response.text


def check_chat(response: httpx2.Response, body: Json, is_stream: bool) -> None:
    if not is_stream:
        assert response.json()["choices"][0]["finish_reason"] in ("stop", "length")
        return
    assert response.text.endswith("data: [DONE]\n\n")
    pieces = chunks(response.text)
    reasons = [choice["finish_reason"] for piece in pieces for choice in piece["choices"]]
    assert reasons[-1] in ("stop", "length") and not any(reasons[:-1])
    assert pieces[0]["choices"][0]["delta"]["role"] == "assistant"
    wants_usage = (body.get("stream_options") or {}).get("include_usage")
    assert bool(pieces[-1].get("usage")) == bool(wants_usage)


def prompt_of(captured: tuple[Served, httpx2.Client], name: str) -> str:
    served, http = captured
    response = send(http, load(name))
    assert response.status_code == 200, response.text
    prompt = served.engine.jobs[-1].request.prompt
    assert isinstance(prompt, Tokens)
    return "".join(map(chr, prompt.ids))


def named(title: str) -> list[str]:
    folder, _, _ = title.partition(" ")
    return [name for number in SEQUENCES[title] for name in NAMES if name.startswith(f"{folder}/{number}-")]


@pytest.mark.parametrize("title", SEQUENCES)
def test_a_conversation_only_grows(captured: tuple[Served, httpx2.Client], title: str) -> None:
    names = named(title)
    assert len(names) == len(SEQUENCES[title])
    before = prompt_of(captured, names[0])
    for name in names[1:]:
        prompt = prompt_of(captured, name)
        assert prompt.startswith(before) and len(prompt) > len(before), name
        before = prompt


def test_a_new_conversation_shares_its_head(captured: tuple[Served, httpx2.Client]) -> None:
    """Tools and system text are the same, once what names the conversation is dropped."""
    one = prompt_of(captured, "claude-code/04-first-turn")
    two = prompt_of(captured, "claude-code/09-new-conversation-first-turn")
    system = load("claude-code/04-first-turn")["body"]["system"][-1]["text"]
    shared = next(at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
    assert shared > one.index(system.strip()) + len(system.strip())
    assert "x-anthropic-billing-header" not in one and "cc_version" not in two


def test_deferred_tools_appear_where_they_are_referred_to(captured: tuple[Served, httpx2.Client]) -> None:
    before = prompt_of(captured, "claude-code/12-tool-errors")
    after = prompt_of(captured, "claude-code/13-tool-search-result")
    added = after.removeprefix(before)
    for name in ("WebFetch", "TaskStop"):
        assert f'"name": "{name}"' in added and f'"name": "{name}"' not in before


def test_nothing_that_names_a_session_is_in_a_prompt(captured: tuple[Served, httpx2.Client]) -> None:
    secrets = ("toolu_0", "call_0", "msg_0", "rs_0", "fc_0", "ses_0", "00000000-0000-4000")
    for name in ("claude-code/08-parallel-tool-results", "codex/04-many-results", "pi/11-responses-tool-result"):
        prompt = prompt_of(captured, name)
        assert not [secret for secret in secrets if secret in prompt]
