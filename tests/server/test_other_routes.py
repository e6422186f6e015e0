"""Plain completions, Ollama's routes, figures, health and the API's description."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic import Anthropic

from fakes import FakeTokeniser, Script, Served, serving
from server.requests import WEATHER, chat, chat_body, chunks, client, get, post, streamed
from slipstream.agents.config import ModelCard, ServerAddress, served_models
from slipstream.errors import ModelNotFound
from slipstream.events import Empty, Faulted, Loading, Timings
from slipstream.jobs import Inbox
from slipstream.server.admin import Hooks
from slipstream.server.backend import Backend
from slipstream.server.errors import NotReady
from slipstream.server.metrics import extras

CALL = '<tool_call>{"name": "weather", "arguments": {"place": "Oslo"}}</tool_call>'


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# Plain completions.


def test_completions_take_text_ids_and_lists_of_either(served: Served) -> None:
    for prompt, tokens in (("abc", 3), (["ab", "c"], 3), ([97, 98], 2), ([[97], [98, 99]], 3)):
        answer = post(served.url, "/v1/completions", {"model": "m", "prompt": prompt}).json()
        assert answer["object"] == "text_completion" and answer["usage"]["prompt_tokens"] == tokens
        assert {choice["text"] for choice in answer["choices"]} == {"Hello world"}


def test_completions_stream_with_logprobs_and_usage(served: Served) -> None:
    body = {
        "model": "m",
        "prompt": "x",
        "stream": True,
        "logprobs": 1,
        "stream_options": {"include_usage": True},
        "n": 2,
    }
    response = post(served.url, "/v1/completions", body)
    pieces = chunks(response.text)
    texts = ["", ""]
    for piece in pieces[:-1]:
        (choice,) = piece["choices"]
        assert choice["logprobs"] is None or "".join(choice["logprobs"]["tokens"]) == choice["text"]
        texts[choice["index"]] += choice["text"]
    assert texts == ["Hello world"] * 2
    assert pieces[-1]["usage"]["prompt_tokens"] == 1 and response.text.endswith("[DONE]\n\n")


@pytest.mark.parametrize(
    "body",
    [{}, {"prompt": 5}, {"prompt": []}, {"prompt": [-1]}, {"prompt": ["a", 1]}, {"prompt": "a", "suffix": "b"},
     {"prompt": "a", "echo": True}, {"prompt": ["a"] * 9}, {"prompt": ""}, {"prompt": [[2**40]]}],
)  # fmt: skip
def test_wrong_completions_are_400(served: Served, body: dict[str, Any]) -> None:
    assert post(served.url, "/v1/completions", {"model": "m"} | body).status_code == 400


# Ollama.


def test_ollama_chat_streams_lines_and_ends_with_figures(served: Served) -> None:
    response = post(served.url, "/api/chat", chat_body())
    assert response.headers["content-type"] == "application/x-ndjson"
    said = lines(response.text)
    assert "".join(line["message"]["content"] for line in said) == "Hello world"
    assert [line["done"] for line in said] == [False, False, True]
    assert said[-1]["eval_count"] == 11 and said[-1]["done_reason"] == "stop" and said[-1]["total_duration"] > 0


def test_ollama_chat_has_tools_thoughts_and_options() -> None:
    with serving(Script(pieces=("<think>hm</think>", CALL))) as served:
        body = chat_body(tools=[WEATHER], stream=False, options={"num_predict": -1, "top_k": 4, "seed": 1, "x": 1})
        message = post(served.url, "/api/chat", body).json()["message"]
        options = served.engine.jobs[0].request.options
    assert message["thinking"] == "hm" and message["content"] == ""
    assert message["tool_calls"][0]["function"] == {"index": 0, "name": "weather", "arguments": {"place": "Oslo"}}
    assert options.top_k == 4 and options.seed == 1


def test_ollama_generate_with_and_without_a_template() -> None:
    with serving() as served:
        said = lines(post(served.url, "/api/generate", {"prompt": "hi", "system": "be brief"}).text)
        raw = post(served.url, "/api/generate", {"prompt": "hi", "raw": True, "stream": False}).json()
        prompts = [FakeTokeniser.text_of(job) for job in served.engine.jobs]
        assert post(served.url, "/api/generate", {"model": "m"}).json()["done_reason"] == "load"
    assert "".join(line["response"] for line in said) == raw["response"] == "Hello world"
    assert prompts == ["[system]be brief[user]hi[assistant]", "hi"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"template": "{{ .Prompt }}"}, "template"), ({"context": [1, 2]}, "context"), ({"suffix": "x"}, "suffix"),
        ({"images": ["AA=="]}, "images"), ({"logprobs": True}, "logprobs"), ({"model": 7}, "model"),
        ({"options": {"mirostat": 2}}, "options.mirostat"), ({"options": {"typical_p": 0.5}}, "options.typical_p"),
    ],
)  # fmt: skip
def test_what_ollama_has_and_we_have_not_is_refused_by_name(served: Served, fields: dict[str, Any], named: str) -> None:
    response = post(served.url, "/api/generate", {"prompt": "hi"} | fields)
    assert response.status_code == 400 and response.json()["error"].startswith(named)


def test_what_says_nothing_here_is_no_error_and_what_is_off_is_off() -> None:
    more = {"num_ctx": 2048, "num_gpu": 1, "mirostat": 0, "typical_p": 1.0, "repeat_penalty": 1.5, "repeat_last_n": 0}
    with serving() as served:
        body = {"prompt": "hi", "options": more, "context": [], "template": "", "stream": False}
        assert post(served.url, "/api/generate", body).status_code == 200
        assert served.engine.jobs[0].request.options.repetition_penalty == 1.0


def test_fields_of_openai_that_cannot_be_honoured_are_refused_by_name(served: Served) -> None:
    searched = post(served.url, "/v1/chat/completions", chat_body(web_search_options={}))
    assert searched.status_code == 400 and searched.json()["error"]["param"] == "web_search_options"
    best = post(served.url, "/v1/completions", {"model": "m", "prompt": "hi", "best_of": 3})
    assert best.status_code == 400 and best.json()["error"]["param"] == "best_of"
    assert post(served.url, "/v1/completions", {"model": "m", "prompt": "hi", "best_of": 1}).status_code == 200


def test_what_editors_ask_before_they_chat(served: Served) -> None:
    assert get(served.url, "/api/version").json()["version"]
    (model,) = get(served.url, "/api/tags").json()["models"]
    shown = post(served.url, "/api/show", {"model": model["name"]}).json()
    assert {"completion", "tools", "thinking"} == set(shown["capabilities"])
    assert shown["model_info"]["slipstream.context_length"] == 8192


def test_ollama_errors(served: Served) -> None:
    image = post(served.url, "/api/chat", {"messages": [{"role": "user", "content": "x", "images": ["AA=="]}]})
    assert image.status_code == 400 and "messages[0].images" in image.json()["error"]
    assert post(served.url, "/api/generate", {"prompt": "x" * 9000}).status_code == 400
    with serving(Script(pieces=("a", "b"), breaks_after=1)) as broken:
        said = lines(post(broken.url, "/api/chat", chat_body()).text)
    assert "the model failed" in said[-1]["error"]


# Models, health, figures.


def test_models_lists_the_loaded_one_and_its_aliases() -> None:
    with serving(aliases=("local-model",)) as served:
        listing = get(served.url, "/v1/models?limit=1000").json()
        assert [model["id"] for model in listing["data"]] == ["fake-model", "local-model"]
        assert listing["object"] == "list" and listing["has_more"] is False
        assert get(served.url, "/v1/models/local-model").json()["type"] == "model"
        assert get(served.url, "/v1/models/other/name").status_code == 404


def test_models_say_what_agents_must_know_of_them() -> None:
    with serving() as served:
        (model,) = get(served.url, "/v1/models").json()["data"]
        assert model["context_window"] == model["max_input_tokens"] == model["max_tokens"] == 8192
        can = {name: value["supported"] for name, value in model["capabilities"].items()}
        assert can["thinking"] and can["tool_use"] and not can["image_input"] and not can["effort"]
        info = Anthropic(base_url=served.url, api_key="x").models.retrieve("fake-model")
        assert info.capabilities is not None and info.capabilities.thinking.types.disabled.supported
        assert served_models(ServerAddress(served.url)) == [ModelCard("fake-model", 8192, title="fake-model")]


def test_root_answers_head_and_get(served: Served) -> None:
    with client(served.url) as one:
        assert one.head("/").status_code == 200 and one.get("/").json()["name"] == "Slipstream"
        assert one.put("/v1/models").status_code == 405


def test_p22_one_number_one_meaning() -> None:
    cold = Timings(0.0, 0.0, 0.6, 1.4, 791, 0, 101, 40)
    warm = Timings(0.0, 0.0, 0.05, 0.85, 791, 780, 101, 40)
    with serving(Script(timings=cold)) as served:
        answer = chat(served.url)
        ending = streamed(served.url)[-1]["slipstream"]
        ollama = post(served.url, "/api/chat", chat_body(stream=False)).json()
        served.engine.script = Script(timings=warm)
        cached = chat(served.url)["slipstream"]
        prometheus = get(served.url, "/metrics").text
        figures = get(served.url, "/metrics.json").json()
    said = answer["slipstream"]
    assert said == ending == ollama["slipstream"] == extras(cold)
    assert (said["ttft_s"], said["prefill_tps"], said["decode_tps"]) == (0.6, 1318.3, 125.0)
    assert (said["tokens_per_round"], said["rounds"]) == (2.5, 40), "with its denominator"
    assert cached["ttft_cached_s"] == 0.05 and "ttft_s" not in cached
    assert answer["usage"]["prompt_tokens"] == 791 and ollama["eval_count"] == 101
    assert "slipstream_ttft_seconds_count 3" in prometheus and "slipstream_ttft_cached_seconds_count 1" in prometheus
    assert "slipstream_decode_tokens_per_second_sum 500" in prometheus
    assert figures["output_tokens"] == 404 and figures["reused_tokens"] == 780


def test_events_tell_of_rounds_and_of_no_text() -> None:
    with serving(Script(pieces=("secret", " words"))) as served, client(served.url) as one:
        with one.stream("GET", "/events") as response:
            reading = response.iter_lines()
            next(reading)
            chat(served.url, "hidden")
            told: list[str] = []
            while not told or '"type":"done"' not in told[-1]:
                told.append(next(reading))
        names = [line.removeprefix("event: ") for line in told if line.startswith("event: ")]
    assert names == ["queued", "prefill", "prefill", "unverified", "round", "done"]
    assert '"accepted":5' in "".join(told) and '"drafted":6' in "".join(told)
    assert "secret" not in "".join(told) and "words" not in "".join(told)


def test_health_and_answers_without_a_model() -> None:
    with serving() as served:
        for status, name in (
            (Empty(), "empty"),
            (Loading("big"), "loading"),
            (Loading("big", 3 * 10**9, 18 * 10**9), "loading"),
            (Faulted(ModelNotFound("gone")), "faulted"),
        ):
            served.backend.note(status)
            health = get(served.url, "/health")
            assert health.status_code == 503 and health.json()["status"] == name
            answer = post(served.url, "/v1/chat/completions", chat_body())
            assert answer.status_code == 503 and answer.headers["Retry-After"]
            assert answer.json()["error"]["code"] == "not_ready"
            assert get(served.url, "/v1/models").json()["data"] == []
            assert get(served.url, "/admin/status").json()["model"] is None


def test_backend_without_a_model_raises() -> None:
    backend = Backend(Inbox())
    with pytest.raises(NotReady, match="no model is loaded"):
        backend.info()
    backend.close()


def test_admin_routes_exist_where_something_is_behind_them() -> None:
    loaded: list[str] = []

    async def load(name: str) -> None:
        if name == "gone":
            raise ModelNotFound("there is no model named gone")
        loaded.append(name)

    async def calibrate(force: bool) -> dict[str, object]:
        return {"force": force}

    with serving(hooks=Hooks(load=load, calibrate=calibrate)) as served:
        assert post(served.url, "/admin/calibrate", {"force": True}).json() == {"force": True}
        assert post(served.url, "/admin/calibrate", {}).json() == {"force": False}
        assert post(served.url, "/admin/calibrate", {"force": "yes"}).status_code == 400
        assert post(served.url, "/admin/load", {"model": "new"}).json() == {"ok": True}
        assert post(served.url, "/admin/load", {}).status_code == 400
        assert post(served.url, "/admin/unload", {}).status_code == 404
        described = get(served.url, "/openapi.json").json()["paths"]
    assert loaded == ["new"] and "/admin/load" in described and "/admin/unload" not in described


def test_the_description_names_every_route_and_the_body_of_every_post(served: Served) -> None:
    document = get(served.url, "/openapi.json").json()
    for path, operations in document["paths"].items():
        if "post" in operations and "{id}" not in path:
            schema = operations["post"]["requestBody"]["content"]["application/json"]["schema"]
            assert schema["type"] == "object", path
    assert {"/v1/chat/completions", "/v1/models/{id}", "/health", "/api/chat"} <= set(document["paths"])
