"""A conversation longer than the context: refused unless dropping was asked for, and then said in every place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from fakes import FakeTokeniser, Served, serving
from server.requests import chat, chunks, post
from slipstream.jobs import Inbox
from slipstream.server.backend import Backend
from slipstream.server.prompt_limit import PromptLimit, drop_oldest, room_for_prompt

Json = dict[str, Any]

LONG = "x" * 3500
TURNS: list[Json] = [
    {"role": "system", "content": "RULES"},
    *(
        turn
        for name in ("one", "two", "three")
        for turn in ({"role": "user", "content": name + LONG}, {"role": "assistant", "content": f"answer {name}"})
    ),
    {"role": "user", "content": "the last question"},
]
DROPS: Json = {"slipstream": {"prompt_limit": "drop_oldest"}}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as one:
        chat(one.url)
        yield one


def ask(served: Served, *, path: str = "/v1/chat/completions", **more: Any) -> Any:
    return post(served.url, path, {"model": "m", "messages": TURNS, **more})


def prompt(served: Served) -> str:
    return FakeTokeniser.text_of(served.engine.jobs[-1])


def test_without_a_word_it_is_refused_with_its_length(served: Served) -> None:
    before = len(served.engine.jobs)
    asked: list[Json] = [{}, {"slipstream": {"prompt_limit": "refuse"}}]
    for more in asked:
        answer = ask(served, **more)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert len(served.engine.jobs) == before
    assert ask(served, slipstream={"prompt_limit": "cut"}).status_code == 400


def test_the_oldest_turns_go_and_everybody_is_told(served: Served) -> None:
    answer = ask(served, **DROPS, max_tokens=100)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-slipstream-dropped-messages"] == "2"
    assert answer.json()["slipstream"]["dropped_messages"] == 2
    told = prompt(served)
    assert told.startswith("[system]RULES[user]two")
    assert "the last question" in told
    assert "one" not in told
    assert served.backend.requests.records[-1].dropped == 2


def test_a_stream_is_told_before_its_first_piece_and_at_its_end(served: Served) -> None:
    answer = ask(served, **DROPS, stream=True)
    assert answer.headers["x-slipstream-dropped-messages"] == "4"  # a quarter of the context is for the answer
    assert chunks(answer.text)[-1]["slipstream"]["dropped_messages"] == 4


def test_a_prompt_that_fits_is_never_touched(served: Served) -> None:
    answer = post(served.url, "/v1/chat/completions", {"model": "m", "messages": TURNS[:3], **DROPS})
    assert "x-slipstream-dropped-messages" not in answer.headers
    assert "dropped_messages" not in answer.json()["slipstream"]
    assert "one" in prompt(served)


def test_a_last_turn_that_alone_is_too_long_is_refused(served: Served) -> None:
    messages = [*TURNS, {"role": "assistant", "content": "it was"}, {"role": "user", "content": "y" * 9000}]
    answer = post(served.url, "/v1/chat/completions", {"model": "m", "messages": messages, **DROPS})
    assert answer.status_code == 400
    assert "tokens > 8192 maximum" in answer.json()["error"]["message"]
    messages[-1] = {"role": "user", "content": "y" * 8150}  # it fits, with little room for an answer
    answer = post(served.url, "/v1/chat/completions", {"model": "m", "messages": messages, **DROPS})
    assert answer.json()["slipstream"]["dropped_messages"] == 8


def test_each_dialect_has_its_own_word_for_it(served: Served) -> None:
    responses = post(served.url, "/v1/responses", {"model": "m", "input": TURNS, "truncation": "auto"})
    assert responses.status_code == 200, responses.text
    assert responses.json()["truncation"] == "auto"
    assert responses.json()["slipstream"]["dropped_messages"] == 4
    both: Json = {"model": "m", "input": TURNS, "truncation": "disabled"}
    assert post(served.url, "/v1/responses", {**both, **DROPS}).json()["truncation"] == "auto"
    wrong = post(served.url, "/v1/responses", {**both, "slipstream": {"prompt_limit": "cut"}})
    assert "prompt_limit" in wrong.json()["error"]["message"]
    ollama = ask(served, path="/api/chat", truncate=True, stream=False)
    assert ollama.json()["slipstream"]["dropped_messages"] == 4
    assert "x-slipstream-ignored" not in ollama.headers
    anthropic = ask(served, path="/v1/messages", **DROPS, max_tokens=50, messages=TURNS[1:], system="RULES")
    assert anthropic.json()["slipstream"]["dropped_messages"] == 2
    assert prompt(served).startswith("[system]RULES[user]two")
    plain = post(served.url, "/v1/completions", {"model": "m", "prompt": "hi", **DROPS})
    assert plain.status_code == 400
    assert "turns" in plain.json()["error"]["message"]


def test_a_request_wins_over_the_server() -> None:
    with serving() as served:
        served.backend.prompt_limit = PromptLimit.DROP_OLDEST
        assert ask(served).json()["slipstream"]["dropped_messages"] == 4
        assert ask(served, slipstream={"prompt_limit": "refuse"}).status_code == 400
        assert ask(served, path="/api/chat", truncate=False, stream=False).status_code == 400
        refused = post(served.url, "/v1/responses", {"model": "m", "input": TURNS, "truncation": "disabled"})
        assert refused.status_code == 400
        assert post(served.url, "/v1/responses", {"model": "m", "input": TURNS}).json()["truncation"] == "auto"


def test_the_servers_own_default_is_to_refuse() -> None:
    backend = Backend(Inbox())
    assert backend.prompt_limit is PromptLimit.REFUSE
    backend.close()


# Where a cut may be.


def kept(messages: Sequence[Json], most: int) -> Sequence[Any] | None:
    return drop_oldest(messages, lambda some: len(some) <= most)


def call(number: str) -> Json:
    return {"role": "assistant", "content": "", "tool_calls": [{"id": number}]}


def result(number: str) -> Json:
    return {"role": "tool", "tool_call_id": number, "content": ""}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def test_instructions_and_the_last_turn_stay_and_as_much_as_fits() -> None:
    rules = [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}]
    turns = [user("1"), {"role": "assistant"}, user("2"), {"role": "assistant"}, user("3")]
    assert kept([*rules, *turns], 5) == [*rules, *turns[2:]]
    assert kept([*rules, *turns], 4) == [*rules, *turns[4:]]
    assert kept([*rules, *turns], 2) is None
    assert kept([*rules, user("only")], 2) is None


def test_instructions_that_came_later_stay_too() -> None:
    rule, later = {"role": "system", "content": "a"}, {"role": "system", "content": "b"}
    messages = [rule, user("1"), {"role": "assistant"}, later, user("2"), {"role": "assistant"}, user("3")]
    assert kept(messages, 3) == [rule, later, user("3")]
    assert kept(messages, 5) == [rule, later, *messages[4:]]


def test_what_a_user_says_in_several_messages_is_one_turn() -> None:
    messages = [user("1"), {"role": "assistant"}, user("a file"), user("the question")]
    assert kept(messages, 3) == messages[2:]
    assert kept(messages, 1) is None


def test_no_result_is_kept_without_its_call() -> None:
    answer = {"role": "assistant", "content": ""}
    messages = [user("1"), call("a"), user("meanwhile"), result("a"), answer, user("2")]
    assert kept(messages, 4) == [user("2")]  # not from "meanwhile", which has the answer to a call before it
    whole = [user("1"), answer, user("2"), call("a"), result("a"), answer, user("3")]
    assert kept(whole, 5) == whole[2:]
    assert kept(whole, 4) == [user("3")]


def test_a_reminder_behind_a_tools_result_does_not_push_the_task_out() -> None:
    rounds = [each for name in "abc" for each in (call(name), result(name), user("<system-reminder>"))]
    task = [user("0"), {"role": "assistant"}, user("do it"), *rounds]
    assert kept(task, len(task) - 1) == task[2:]
    assert kept(task, len(task) - 3) is None


def test_a_single_turn_of_many_tool_rounds_is_not_cut() -> None:
    assert kept([user("go"), call("a"), result("a"), call("b"), result("b")], 3) is None


def test_a_quarter_of_the_context_is_left_for_the_answer_or_what_was_asked_for() -> None:
    assert room_for_prompt(8192, 2**31) == 6144
    assert room_for_prompt(8192, 100) == 8092
