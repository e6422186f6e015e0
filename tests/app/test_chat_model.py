"""The chat without its widgets: what is asked, kept, branched, stopped, continued and verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot
from pytestqt.wait_signal import SignalBlocker

from chat_support import Desk, desk
from fakes import FakeTokeniser, Script
from slipstream.errors import SlipstreamError
from slipstream.events import Faulted
from slipstream.jobs import Job
from slipstream.measure.verdict import Comparison, Verdict
from slipstream.types import Mode
from slipstream_app.history import open_history
from slipstream_app.messages import Attachment, State
from slipstream_app.models.chat_parameters import Parameters, parse_schema, parse_tools
from slipstream_app.models.chat_prompt import Count, Shortened
from slipstream_app.models.chat_reply import Progress
from slipstream_app.models.chat_speed import Cause, Source, explain

Open = Callable[..., Desk]


@pytest.fixture
def make(qtbot: QtBot, tmp_path: Path) -> Iterator[Open]:
    opened: list[AbstractContextManager[Desk]] = []

    def start(script: Script | Callable[[Job], Script] | None = None, tokeniser: FakeTokeniser | None = None) -> Desk:
        context = desk(qtbot, tmp_path, script or Script(), tokeniser)
        opened.append(context)
        return context.__enter__()

    yield start
    for context in opened:
        context.__exit__(None, None, None)


def test_a_question_is_answered_and_kept(make: Open, tmp_path: Path) -> None:
    one = make()
    assert one.chats.send("Say hello\nplease", [Attachment("a.py", "x = 1")])
    assert one.wait_for_answer() == "Hello world"
    assert one.prompts() == ['[user]<file name="a.py">\nx = 1\n</file>\n\nSay hello\nplease[assistant]']
    other = open_history(tmp_path / "chats.db")
    row = other.chats()[0]
    assert row.title == "Say hello"
    asked, answer = other.messages(row.id)
    assert (asked.role, answer.role, answer.text, answer.state) == ("user", "assistant", "Hello world", State.DONE)
    assert row.leaf == answer.id
    assert answer.facts["model"] == "fake-model"
    assert answer.facts["timings"]["output_tokens"] == len("Hello world")
    assert answer.facts["reason"] == "stop"
    other.close()


def test_figures_are_those_of_the_api(make: Open) -> None:
    """P22: one function computes tok/s for the chat and for the API."""
    one = make(Script(pieces=("a", "bcd", "efg"), round_s=0.01))
    one.chats.send("x")
    one.wait_for_answer()
    timings = one.engine.ended[0].timings
    kept = one.chats.path[-1].facts["timings"]
    assert kept["decode_tps"] == timings.decode_tps
    assert kept["ttft_s"] == timings.ttft_s
    assert kept["tokens_per_round"] == timings.tokens_per_round


def test_the_next_question_extends_the_prompt_without_earlier_thoughts(make: Open) -> None:
    one = make(Script(pieces=("<think>hm, ", "well</think>", "Yes")))
    one.chats.send("first")
    assert one.wait_for_answer() == "Yes"
    answer = one.chats.path[-1]
    assert answer.thinking == "hm, well"
    assert answer.facts["thought_tokens"] > 0
    one.chats.send("second")
    one.wait_for_answer()
    assert one.prompts()[1] == "[user]first[assistant]Yes[user]second[assistant]"


def test_edit_and_regenerate_make_siblings_and_overwrite_nothing(make: Open) -> None:
    answers = iter(("one", "two", "three"))
    one = make(lambda job: Script(pieces=(next(answers),)))
    one.chats.send("q")
    one.wait_for_answer()
    asked, first = one.chats.path
    one.chats.regenerate(first.id, mode=Mode.BASELINE)
    one.wait_for_answer()
    second = one.chats.path[-1]
    assert one.engine.jobs[1].request.options.mode is Mode.BASELINE
    one.chats.edit(asked.id, "other q")
    one.wait_for_answer()
    assert [message.text for message in one.chats.path] == ["other q", "three"]
    assert one.chats.tree.place(one.chats.path[0].id) == (2, 2)
    one.chats.walk(one.chats.path[0].id, -1)
    assert [message.text for message in one.chats.path] == ["q", "two"]
    assert one.chats.tree.place(second.id) == (2, 2)
    one.chats.walk(second.id, -1)
    assert [message.text for message in one.chats.path] == ["q", "one"]
    chat = one.chats.chat
    assert chat is not None
    one.chats.new()
    one.chats.open(chat)
    assert [message.text for message in one.chats.path] == ["q", "one"]
    one.chats.branch(first.id)
    assert one.chats.chat != chat
    assert [message.text for message in one.chats.path] == ["q", "one"]


def test_stop_keeps_the_text_and_continue_goes_on_from_the_same_tokens(make: Open) -> None:
    one = make(
        lambda job: Script(pieces=tuple("abcdefgh"), round_s=0.02) if len(one.engine.jobs) == 1 else Script(("ij",))
    )
    one.chats.send("q")
    one.wait(lambda: one.chats.reply is not None and len(one.chats.reply.text) >= 3)
    one.chats.stop()
    kept = one.wait_for_answer()
    stopped = one.chats.path[-1]
    assert stopped.state is State.STOPPED
    assert "abcdefgh".startswith(kept)
    assert one.chats.resume(stopped.id)
    assert one.wait_for_answer() == kept + "ij"
    first, second = one.engine.jobs
    assert FakeTokeniser.text_of(second) == FakeTokeniser.text_of(first) + kept
    assert second.request.options.seed == first.request.options.seed
    trace = one.history.trace(stopped.id)
    assert trace is not None
    assert [token for segment in trace["segments"] for token in segment["tokens"]] == [ord(c) for c in kept + "ij"]


def test_continue_without_tokens_goes_on_from_the_text(make: Open) -> None:
    one = make(Script((" more",)))
    chat = one.history.create_chat("t")
    asked = one.history.add(chat, None, "user", "q")
    half = one.history.add(chat, asked.id, "assistant", "half an answer", state=State.INTERRUPTED)
    one.chats.open(chat)
    assert one.chats.resume(half.id)
    assert one.wait_for_answer() == "half an answer more"
    assert one.prompts() == ["[user]q[assistant]half an answer"]


def test_stop_in_a_prefill_and_before_it(make: Open) -> None:
    one = make(Script(prefill_chunks=500, prefill_s=0.005))
    one.chats.send("q" * 1000)
    one.wait(lambda: one.chats.reply is not None and one.chats.reply.progress.done > 0)
    one.chats.stop()
    assert one.wait_for_answer() == ""
    assert one.chats.path[-1].state is State.STOPPED
    one.chats.regenerate(one.chats.path[-1].id)
    one.chats.stop()
    assert one.chats.reply is None
    assert one.chats.path[-1].state is State.STOPPED


def test_an_engine_that_is_lost_leaves_the_text(make: Open) -> None:
    one = make(Script(pieces=("some ", "text"), breaks_after=1))
    one.chats.send("q")
    assert one.wait_for_answer() == "some "
    answer = one.chats.path[-1]
    assert answer.state is State.FAILED
    assert answer.facts["error"]["code"] == "engine_faulted"
    one.wait(lambda: isinstance(one.session.status, Faulted))
    assert not one.chats.send("again")
    one.session.reload()
    one.wait(lambda: one.session.info is not None)
    one.engine.script = Script(pieces=("more",))
    assert one.chats.resume(answer.id)
    assert one.wait_for_answer() == "some more"


def test_tool_calls_are_kept_and_go_on_with_their_results(make: Open) -> None:
    call = '<tool_call>{"name": "look", "arguments": {"at": "x"}}</tool_call>'
    one = make(lambda job: Script(pieces=(call,) if len(one.engine.jobs) == 1 else ("It is y",)))
    tools = '[{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]'
    one.chats.set_parameters(replace(one.chats.parameters, tools=tools))
    one.chats.send("what is at x?")
    one.wait_for_answer()
    answer = one.chats.path[-1]
    assert [(made.name, made.arguments) for made in answer.calls] == [("look", '{"at": "x"}')]
    one.chats.add_result(answer.id, answer.calls[0].id, "y")
    assert one.wait_for_answer() == "It is y"
    assert [message.role for message in one.chats.path] == ["user", "assistant", "tool", "assistant"]


def test_answers_go_on_in_a_chat_that_is_not_shown(make: Open) -> None:
    one = make(Script(pieces=tuple("abcdef"), round_s=0.02))
    one.chats.send("q")
    first = one.chats.chat
    one.chats.new()
    assert one.chats.reply is None
    one.wait(lambda: first is not None and not one.chats.is_running(first))
    assert first is not None
    one.chats.open(first)
    assert one.chats.path[-1].text == "abcdef"


def outcome(said: SignalBlocker) -> object:
    """Of a verification."""
    assert said.args is not None
    return said.args[1]


def test_verify_says_identical_and_keeps_the_verdict(make: Open) -> None:
    one = make(Script(pieces=("abc", "def")))
    one.chats.set_parameters(replace(one.chats.parameters, temperature=1.0))
    one.chats.send("q")
    one.wait_for_answer()
    answer = one.chats.path[-1]
    with one.qtbot.waitSignal(one.chats.verified, timeout=5000) as said:
        assert one.chats.verify(answer.id)
    verdict = outcome(said)
    assert isinstance(verdict, Comparison)
    assert verdict.verdict is Verdict.IDENTICAL
    asked, replayed = one.engine.jobs
    assert replayed.request.prompt == asked.request.prompt
    options = replayed.request.options
    assert (options.mode, options.seed, options.temperature) == (Mode.BASELINE, asked.request.options.seed, 1.0)
    assert one.history.message(answer.id).facts["verdict"]["verdict"] == "identical"
    assert one.chats.path[-1].facts["verdict"]["tokens"] == 6


def test_verify_finds_an_answer_that_ended_too_early(make: Open) -> None:
    """All its tokens are right, but the model alone goes on."""
    one = make(lambda job: Script(pieces=("abc", "def") if job.request.options.mode is Mode.BASELINE else ("abc",)))
    one.chats.send("q")
    one.wait_for_answer()
    with one.qtbot.waitSignal(one.chats.verified, timeout=5000) as said:
        assert one.chats.verify(one.chats.path[-1].id)
    verdict = outcome(said)
    assert isinstance(verdict, Comparison)
    assert verdict.verdict is Verdict.DIFFERENT


def test_verify_refuses_a_prompt_that_is_no_longer_the_same(make: Open) -> None:
    one = make()
    one.chats.send("q")
    one.wait_for_answer()
    one.tokeniser._opens_thinking = True  # another template
    with one.qtbot.waitSignal(one.chats.verified, timeout=5000) as said:
        one.chats.verify(one.chats.path[-1].id)
    error = outcome(said)
    assert isinstance(error, SlipstreamError)
    assert "prompt" in error.message
    assert len(one.engine.jobs) == 1


def test_tokens_are_counted_and_turns_dropped_only_when_asked(make: Open) -> None:
    one = make(Script(pieces=("a" * 3000,)))
    for number in range(3):
        one.chats.send(f"question {number}")
        one.wait_for_answer()
    with one.qtbot.waitSignal(one.chats.counted, timeout=5000) as counted:
        one.chats.count(one.chats.draft("x", ()))
    assert counted.args is not None
    count = counted.args[0]
    assert isinstance(count, Count)
    assert count.tokens > count.context == 8192
    one.chats.send("too long")
    one.wait_for_answer()
    failed = one.chats.path[-1]
    assert failed.facts["error"]["code"] == "context_full"
    with one.qtbot.waitSignal(one.chats.shortened, timeout=5000) as found:
        one.chats.preview_drop()
    assert found.args is not None
    shortened = found.args[0]
    assert isinstance(shortened, Shortened)
    assert shortened.dropped == tuple(message.id for message in one.chats.path[:2])
    assert shortened.tokens <= 8192 * 3 // 4
    one.chats.drop(shortened)
    one.chats.regenerate(failed.id)
    one.wait_for_answer()
    assert one.chats.path[-1].state is State.DONE
    assert one.prompts()[-1].startswith("[user]question 1")
    assert len(one.chats.path) == 8
    one.chats.send_all()
    assert one.chats.first_sent is None


def test_parameters_are_kept_with_the_chat_and_as_defaults_of_the_model(make: Open) -> None:
    one = make()
    cold = replace(one.chats.parameters, temperature=0.0, system="Be brief", seed=7, mode=Mode.LOOKUP)
    one.chats.set_parameters(cold)
    one.chats.send("q")
    one.wait_for_answer()
    chat = one.chats.chat
    assert chat is not None
    one.chats.new()
    assert one.chats.parameters == Parameters()
    one.chats.open(chat)
    assert one.chats.parameters == cold
    assert one.prompts() == ["[system]Be brief[user]q[assistant]"]
    options = one.engine.jobs[0].request.options
    assert (options.temperature, options.seed, options.mode) == (0.0, 7, Mode.LOOKUP)
    one.chats.save_defaults()
    one.chats.new()
    assert one.chats.parameters == cold


def test_parameters_of_other_versions_are_read_as_far_as_they_make_sense() -> None:
    values = {"temperature": 1, "mode": "warp", "seed": "x", "new": 1, "top_k": 5, "thinking": False}
    assert Parameters().with_json(values) == Parameters(temperature=1, top_k=5, thinking=False)


def test_delete_is_undone_within_its_time_and_stops_an_answer(make: Open) -> None:
    one = make(Script(pieces=tuple("abcdef"), round_s=0.05))
    one.chats.send("q")
    chat = one.chats.chat
    assert chat is not None
    one.chats.delete(chat)
    assert one.chats.chat is None
    assert one.history.chats() == []
    one.wait(lambda: not one.chats.is_running(chat))
    one.chats.undo_delete()
    assert one.chats.chat == chat
    one.chats.delete(chat)
    one.chats._trash.settle()
    one.chats.undo_delete()
    assert one.history.messages(chat) == []


def test_schemas_and_tools_are_checked_with_a_reason() -> None:
    assert parse_schema(" ") is None
    assert parse_schema('{"type": "object"}') == {"type": "object"}
    for text, says in (("{", "no JSON"), ("[]", "object"), ('{"type": "strange"}', "type")):
        with pytest.raises(SlipstreamError, match=says):
            parse_schema(text)
    assert parse_tools('[{"name": "f"}]')[0]["function"]["name"] == "f"
    for text, says in (("{}", "list"), ('[{"x": 1}]', "name")):
        with pytest.raises(SlipstreamError, match=says):
            parse_tools(text)


def trace(*steps: tuple[str, int, int, int], prompt: int = 100) -> dict[str, object]:
    return {"segments": [{"prompt_tokens": prompt, "steps": steps}], "raw": ""}


def test_why_this_speed_names_who_made_each_token_and_one_cause() -> None:
    easy = explain(trace(("", 0, 0, 1), *[("dspark", 4, 4, 5)] * 4, ("lookup", 3, 1, 2)), "auto", ["dspark"])
    assert "".join(easy.sources) == "M" + "DDDDM" * 4 + "NM"
    assert easy.rounds == 5
    assert easy.tokens_per_round == 22 / 5
    assert easy.cause is Cause.EASY
    assert easy.counts[Source.NGRAM] == 1
    plain = [("plain", 0, 0, 1)] * 20
    assert explain(trace(*plain), "baseline", ["dspark"]).cause is Cause.CHOSEN_PLAIN
    assert explain(trace(*plain), "auto", []).cause is Cause.NO_DRAFTER
    assert explain(trace(*plain[:3]), "auto", []).cause is Cause.SHORT
    assert explain(trace(*[("dspark", 6, 1, 2)] * 20), "auto", ["dspark"]).cause is Cause.HARD
    assert explain(trace(*[("lookup", 6, 5, 6)] * 20), "auto", []).cause is Cause.REPEATS
    parked = explain(trace(("", 0, 0, 1), *[("dspark", 4, 4, 5)] * 4, *plain), "auto", ["dspark"])
    assert (parked.cause, parked.position) == (Cause.PARKED, 100 + 1 + 20)


def test_a_token_that_ends_the_answer_inside_the_drafts_is_counted_once() -> None:
    cut = explain(trace(("", 0, 0, 1), ("dspark", 6, 3, 3)), "auto", ["dspark"])
    assert "".join(cut.sources) == "MDDD"


def test_what_is_left_of_a_prompt_is_the_engines_estimate_where_it_gives_one() -> None:
    progress = Progress(done=100, total=400, reused=0, began_s=10.0)
    assert progress.left_s(12.0) == 6.0  # by this prompt's own pace
    progress.told = (9.0, 12.0)
    assert progress.left_s(12.0) == 9.0
    assert progress.left_s(14.0) == 7.0
    assert progress.left_s(99.0) == 0.0
