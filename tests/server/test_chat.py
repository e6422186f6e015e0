"""Chat Completions: shapes, streaming and not, usage, what is accepted and what is refused."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from fakes import FakeTokeniser, Script, Served, serving
from server.requests import FIND_TEXT, WEATHER, chat, chat_body, chunks, client, joined, post, streamed
from slipstream.errors import EngineFaulted
from slipstream.types import Mode

CALL = '<tool_call>{"name": "weather", "arguments": {"place": "Oslo"}}</tool_call>'


def test_whole_answer_has_every_field_of_the_specification(served: Served) -> None:
    answer = chat(served.url)
    assert answer["object"] == "chat.completion"
    assert answer["id"].startswith("chatcmpl-")
    assert answer["model"] == "fake-model", "the loaded model answers and is named"
    (choice,) = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Hello world", "refusal": None, "annotations": []}
    assert choice["finish_reason"] == "stop" and choice["logprobs"] is None
    assert answer["usage"]["completion_tokens"] == 11
    assert answer["slipstream"]["tokens_per_round"] == 10


def test_stream_is_role_then_content_then_reason_then_done(served: Served) -> None:
    pieces = streamed(served.url)
    assert pieces[0]["choices"][0]["delta"]["role"] == "assistant"
    assert joined(pieces) == "Hello world"
    assert [piece["choices"][0]["finish_reason"] for piece in pieces] == [None, None, None, "stop"]
    assert len({(piece["id"], piece["created"], piece["model"]) for piece in pieces}) == 1
    assert "slipstream" in pieces[-1]
    assert not any(piece.get("usage") for piece in pieces)


def test_p14_shape_of_the_last_chunk() -> None:
    thought = "t" * 32  # and eight more for its end tag, which belongs to it
    with serving(
        Script(pieces=(thought[:20], thought[20:], "</think>", "a" * 5, "a" * 5), reused=64),
        tokeniser=FakeTokeniser(opens_thinking=True),
    ) as served:
        prompt = "x" * (65 - len("[user][assistant]<think>"))
        pieces = streamed(served.url, prompt, stream_options={"include_usage": True})
        whole = chat(served.url, prompt)
        plain = streamed(served.url, prompt)
    with_usage = [piece for piece in pieces if piece.get("usage")]
    assert with_usage == [pieces[-1]] and pieces[-1]["choices"] == []
    for usage in (pieces[-1]["usage"], whole["usage"]):
        assert usage["prompt_tokens"] == 65
        assert usage["completion_tokens"] == 50
        assert usage["total_tokens"] == 115
        assert usage["prompt_tokens_details"]["cached_tokens"] == 64
        assert usage["completion_tokens_details"]["reasoning_tokens"] == 40
    assert joined(pieces, "reasoning_content") == thought and joined(pieces) == "a" * 10
    assert not any(piece.get("usage") for piece in plain)


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(("ending", "content", "reason"), [("", "", "length"), ("</think>42", "42", "stop")])
def test_p08_thoughts_stay_thoughts(is_stream: bool, ending: str, content: str, reason: str) -> None:
    script = Script(pieces=tuple("let me see" + ending))
    limit: dict[str, Any] = {} if ending else {"max_tokens": 10}
    with serving(script, tokeniser=FakeTokeniser(opens_thinking=True)) as served:
        if is_stream:
            pieces = streamed(served.url, **limit)
            got = joined(pieces, "reasoning_content"), joined(pieces), pieces[-1]["choices"][0]["finish_reason"]
        else:
            choice = chat(served.url, **limit)["choices"][0]
            message = choice["message"]
            got = message["reasoning_content"], message["content"], choice["finish_reason"]
    assert got == ("let me see", content, reason)


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (r'<tool_call>{"name":"find_text","arguments":{"pattern":"\d+","max":3}}</tool_call>', r"\d+"),
        ('<function=find_text><parameter=pattern>a, "b"</parameter><parameter=max>3</parameter></function>', 'a, "b"'),
    ],
)
def test_p07_tool_calls_as_models_write_them(text: str, pattern: str, is_stream: bool) -> None:
    with serving(Script(pieces=tuple(text))) as served:
        if is_stream:
            pieces = streamed(served.url, tools=[FIND_TEXT])
            calls = [call for p in pieces for call in p["choices"][0]["delta"].get("tool_calls", ())]
            assert calls[0]["id"] and calls[0]["type"] == "function" and calls[0]["index"] == 0
            name, arguments = calls[0]["function"]["name"], "".join(c["function"]["arguments"] for c in calls)
            content, reason = joined(pieces), pieces[-1]["choices"][0]["finish_reason"]
        else:
            choice = chat(served.url, tools=[FIND_TEXT])["choices"][0]
            (call,) = choice["message"]["tool_calls"]
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            content, reason = choice["message"]["content"] or "", choice["finish_reason"]
    assert (name, json.loads(arguments)) == ("find_text", {"pattern": pattern, "max": 3})
    assert content == "" and reason == "tool_calls"


@pytest.mark.parametrize("is_stream", [False, True])
def test_p07_a_call_cut_off_ends_with_length_and_prose_is_kept(is_stream: bool) -> None:
    cut = "<function=find_text><parameter=pattern>a, "
    prose = "Models write <function> tags, I think."

    def read(url: str, **more: Any) -> tuple[str, str]:
        if is_stream:
            pieces = streamed(url, tools=[FIND_TEXT], **more)
            return joined(pieces), pieces[-1]["choices"][0]["finish_reason"]
        choice = chat(url, tools=[FIND_TEXT], **more)["choices"][0]
        return choice["message"]["content"] or "", choice["finish_reason"]

    with serving(Script(pieces=tuple(cut + "b</parameter></function>"))) as served:
        assert read(served.url, max_tokens=len(cut))[1] == "length"
    with serving(Script(pieces=tuple(prose))) as served:
        assert read(served.url) == (prose, "stop")


def test_tool_choice_none_offers_no_tool() -> None:
    with serving(Script(pieces=(CALL,))) as served:
        choice = chat(served.url, tools=[WEATHER], tool_choice="none")["choices"][0]
        assert "tool_calls" not in choice["message"] and choice["message"]["content"] == CALL
        (job,) = served.engine.jobs
    assert "[tool" not in FakeTokeniser.text_of(job)


def test_calls_are_remembered_in_the_models_own_words() -> None:
    with serving(Script(pieces=("Well. ", CALL))) as served:
        (call,) = chat(served.url, tools=[WEATHER])["choices"][0]["message"]["tool_calls"]
        remembered = served.backend.recall(call["id"])
    assert remembered is not None and remembered.raw == CALL
    assert remembered.answer == tuple(map(ord, "Well. " + CALL)), "the tokens as they were sampled"


def test_every_role_and_content_form_is_taken() -> None:
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{bro"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {"role": "system", "content": "still here"},
    ]
    with serving() as served:
        chat(served.url, messages=messages, tools=[WEATHER | {"strict": True}], store=False, parallel_tool_calls=True)
        text = FakeTokeniser.text_of(served.engine.jobs[0])
    assert text.startswith("[tool weather][system]Be brief.[user]one\ntwo[assistant]")
    assert '"{bro"' in text, "what the model broke is shown to it as it was"
    assert text.endswith("[tool]rain[system]still here[assistant]"), "a note stays at its place"


def test_options_reach_the_engine() -> None:
    with serving() as served:
        chat(
            served.url,
            temperature=0.5,
            top_p=0.9,
            top_k=5,
            min_p=0.1,
            seed=-1,
            max_completion_tokens=7,
            stop=["x", "y"],
            logit_bias={"65": -100},
            presence_penalty=1,
            slipstream={"mode": "baseline", "max_draft": 2},
        )
        options = served.engine.jobs[0].request.options
    assert (options.temperature, options.top_p, options.top_k, options.min_p) == (0.5, 0.9, 5, 0.1)
    assert options.seed == 2**64 - 1 and options.max_tokens == 7 and options.stop == ("x", "y")
    assert options.logit_bias == {65: -100.0} and options.presence_penalty == 1
    assert options.mode is Mode.BASELINE and options.max_draft == 2


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"max_tokens": 7, "messages": [{"role": "user", "content": "Hi"}]}),
        ("/v1/responses", {"max_output_tokens": 7, "input": "Hi"}),
        ("/v1/completions", {"max_tokens": 7, "prompt": "Hi"}),
    ],
)
def test_a_seed_and_its_like_hold_in_every_dialect(path: str, body: dict[str, Any]) -> None:
    """The same text for the same seed is promised whichever API asks, also where that API has no name for it."""
    asked: dict[str, Any] = {
        "seed": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 5,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
    }
    asked |= {"presence_penalty": 1, "frequency_penalty": -1, "slipstream": {"mode": "lookup"}}
    with serving() as served:
        answer = post(served.url, path, {"model": "any", **body, **asked})
        options = served.engine.jobs[0].request.options
    assert answer.status_code == 200 and "x-slipstream-ignored" not in answer.headers
    assert options.mode is Mode.LOOKUP
    assert {name: getattr(options, name) for name in asked.keys() - {"slipstream"}} == {
        name: value for name, value in asked.items() if name != "slipstream"
    }


@pytest.mark.parametrize("asked", [{}, {"max_tokens": 32000}, {"max_tokens": 128000}])
def test_max_tokens_is_clamped_to_the_room_left(asked: dict[str, Any]) -> None:
    with serving() as served:
        answer = chat(served.url, **asked)
        options = served.engine.jobs[0].request.options
    assert options.max_tokens == 8192 - answer["usage"]["prompt_tokens"]


def test_reasoning_effort_is_the_templates_switch() -> None:
    with serving(tokeniser=FakeTokeniser(opens_thinking=True)) as served:
        for effort in ("none", "low"):
            chat(served.url, reasoning_effort=effort)
        chat(served.url, chat_template_kwargs={"enable_thinking": False})
        prompts = [FakeTokeniser.text_of(job) for job in served.engine.jobs]
    assert [prompt.endswith("<think>") for prompt in prompts] == [False, True, False]


@pytest.mark.parametrize("is_stream", [False, True])
def test_logprobs_are_those_of_every_token_of_every_round(served: Served, is_stream: bool) -> None:
    if is_stream:
        pieces = streamed(served.url, logprobs=True, top_logprobs=1)
        parts = [piece["choices"][0]["logprobs"] for piece in pieces if piece["choices"]]
        entries = [entry for part in parts if part for entry in part["content"]]
    else:
        entries = chat(served.url, logprobs=True, top_logprobs=1)["choices"][0]["logprobs"]["content"]
    assert "".join(entry["token"] for entry in entries) == "Hello world"
    assert entries[0] == {
        "token": "H",
        "logprob": -0.5,
        "bytes": [72],
        "top_logprobs": [{"token": "H", "logprob": -0.5, "bytes": [72]}],
    }


@pytest.mark.parametrize("is_stream", [False, True])
def test_n_answers_have_seeds_and_indexes_of_their_own(is_stream: bool) -> None:
    with serving() as served:
        if is_stream:
            pieces = streamed(served.url, n=3, seed=5, stream_options={"include_usage": True})
            last = [piece["choices"][0]["index"] for piece in pieces[:-1] if piece["choices"][0]["finish_reason"]]
            usage = pieces[-1]["usage"]
        else:
            answer = chat(served.url, n=3, seed=5)
            last, usage = [choice["index"] for choice in answer["choices"]], answer["usage"]
        seeds = sorted(job.request.options.seed for job in served.engine.jobs)
    assert sorted(last) == [0, 1, 2] and seeds == [5, 6, 7]
    assert usage["completion_tokens"] == 33 and usage["prompt_tokens"] == 19


def test_stop_strings_and_length_give_their_reasons() -> None:
    with serving(Script(pieces=("one two", " three"))) as served:
        assert chat(served.url, stop="two")["choices"][0]["message"]["content"] == "one "
        choice = chat(served.url, max_tokens=3)["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("one", "length")


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "robot", "content": "hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0]"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": 10**400}, "temperature"),
        ({"model": None}, "model"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"n": 100}, "n"),
        ({"stop": [1]}, "stop"),
        ({"stop": [""]}, "stop"),
        ({"logit_bias": {"x": 1}}, "logit_bias.x"),
        ({"tools": [{"type": "custom"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "no"}}, "tools": [WEATHER]}, "tool_choice"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"chat_template_kwargs": {"tokenize": False}}, "chat_template_kwargs"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"stream": "yes"}, "stream"),
        ({"slipstream": {"mode": "warp"}}, "slipstream.mode"),
    ],
)
def test_wrong_values_are_400_naming_the_path(served: Served, wrong: dict[str, Any], path: str) -> None:
    response = post(served.url, "/v1/chat/completions", chat_body() | wrong)
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert error["param"] == path and error["type"] == "invalid_request_error"
    assert path in error["message"]


@pytest.mark.parametrize(
    ("mode", "shown"),
    [("warp", "'warp'"), ("a secret of two words", "a string"), ("x" * 25, "a string"), (7, "7"), ([], "a list")],
)
def test_a_word_that_is_none_of_the_choice_is_shown_and_no_text_is(served: Served, mode: object, shown: str) -> None:
    response = post(served.url, "/v1/chat/completions", chat_body() | {"slipstream": {"mode": mode}})
    assert response.status_code == 400
    assert response.json()["error"]["message"].endswith(f"'lookup' or 'baseline', not {shown}")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b'{"a":NaN}',
    ],
)
def test_malformed_bodies_are_400(served: Served, body: bytes) -> None:
    with client(served.url) as one:
        response = one.post("/v1/chat/completions", content=body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["code"] == "invalid_request"
    chat(served.url)


def test_half_an_emoji_is_no_error(served: Served) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"cut \\ud83d"}],"x":"\\ud83d"}'
    with client(served.url) as one:
        assert one.post("/v1/chat/completions", content=body).status_code == 200


def test_unknown_fields_are_named_once_in_the_log_without_their_values(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "slipstream"), serving() as served:
        chat(served.url, foo="a secret", bar=1)
    lines = [record.getMessage() for record in caplog.records if "ignored" in record.getMessage()]
    assert lines == ["/v1/chat/completions: ignored 'foo', 'bar'"]
    assert "secret" not in caplog.text


def test_unknown_fields_are_named_to_the_client() -> None:
    with serving() as served:
        whole = post(served.url, "/v1/chat/completions", chat_body(tempreture=1, slipstream={"max_draft": 2, "mod": 1}))
        assert whole.headers["x-slipstream-ignored"] == "slipstream.mod, tempreture"
        assert whole.json()["slipstream"]["ignored"] == ["slipstream.mod", "tempreture"]
        streamed = post(served.url, "/v1/chat/completions", chat_body(tempreture=1, stream=True))
        assert streamed.headers["x-slipstream-ignored"] == "tempreture"
        assert '"ignored":["tempreture"]' in streamed.text
        many = post(served.url, "/v1/chat/completions", chat_body("hi", **{f"f{n}\n": n for n in range(12)}))
        assert many.headers["x-slipstream-ignored"].endswith("f9\\n, and 2 more")
        known = post(served.url, "/v1/chat/completions", chat_body(slipstream={"max_draft": 2}))
        assert "x-slipstream-ignored" not in known.headers and "ignored" not in known.json()["slipstream"]
        message = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "tempreture": 1}
        anthropic = post(served.url, "/v1/messages", message)
        assert anthropic.headers["x-slipstream-ignored"] == "tempreture"
        assert anthropic.json()["slipstream"]["ignored"] == ["tempreture"]


def test_p15_too_long_is_an_error() -> None:
    with serving() as served:
        prompt = "password" + "x" * (9000 - len("[user][assistant]") - len("password"))
        for is_stream in (False, True):
            response = post(served.url, "/v1/chat/completions", chat_body(prompt, stream=is_stream))
            assert response.status_code == 400
            error = response.json()["error"]
            assert error["message"].startswith("prompt is too long: 9000 tokens > 8192 maximum")
            assert error["code"] == "context_length_exceeded"
        assert not served.engine.jobs, "the engine was not asked"


def test_an_error_after_the_first_piece_is_an_event() -> None:
    with serving(Script(pieces=("one", "two"), breaks_after=1)) as served:
        response = post(served.url, "/v1/chat/completions", chat_body(stream=True))
        after = post(served.url, "/v1/chat/completions", chat_body())
    assert response.status_code == 200
    pieces = chunks(response.text)
    assert joined([piece for piece in pieces if "choices" in piece]) == "one"
    assert pieces[-1]["error"]["code"] == "engine_faulted" and "[DONE]" not in response.text
    assert after.status_code == 503 and "Retry-After" in after.headers


def test_an_error_before_the_first_piece_is_a_status() -> None:
    with serving(Script(refuses=EngineFaulted("no"))) as served:
        for is_stream in (False, True):
            response = post(served.url, "/v1/chat/completions", chat_body(stream=is_stream))
            assert response.status_code == 503 and response.json()["error"]["type"] == "overloaded_error"
