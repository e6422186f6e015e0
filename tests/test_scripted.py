"""The scripted model: what a script says comes out of the normal engine, whoever drafts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from slipstream.commands.scripted import Script, Turn, open_scripted, read_script
from slipstream.engine.engine import MlxEngine
from slipstream.errors import InvalidRequest
from slipstream.events import Delta, Done, Event, Finish
from slipstream.jobs import Job
from slipstream.prompt import chat
from slipstream.prompt.output import OutputParser, ToolCall, ToolEnd
from slipstream.server.tokenising import FolderTokeniser
from slipstream.store import demo
from slipstream.types import CacheLimits, Mode, Options, Request, Text, Tokens

SCRIPT = """
context = 4096

[[turn]]
after = "tool"
when = 'word is (?P<word>\\w+)'
says = "It is ${word}, is it not? ${word}, ${word}."

[[turn]]
after = "user"
when = '"name": "read".*read (/\\S+)'
says = "I will read it."
calls = [{ name = "read", arguments = { path = "${1}", lines = [1, 2], note = "${none}" } }]

[[turn]]
says = "Hello."
"""
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
ASKED = {"role": "user", "content": "Please read /tmp/a.txt"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> MlxEngine:
    file = tmp_path_factory.mktemp("script") / "script.toml"
    file.write_text(SCRIPT, "utf-8")
    return open_scripted(read_script(file), demo.target(), "scripted")


def ask(engine: MlxEngine, messages: list[dict[str, Any]], *, tools: bool = True, **options: Any) -> tuple[str, Done]:
    assert isinstance(engine.tokeniser, FolderTokeniser)
    ids = chat.render(engine.tokeniser, messages, [TOOL] if tools else [])
    return run(engine, Tokens(tuple(ids)), Options(**options))


def run(engine: MlxEngine, prompt: Text | Tokens, options: Options) -> tuple[str, Done]:
    events: list[Event] = list(engine.run(Job(Request(prompt, options), lambda _: None)))
    done = events[-1]
    assert isinstance(done, Done)
    return "".join(event.text for event in events if isinstance(event, Delta)), done


def called(text: str) -> list[ToolCall]:
    parser = OutputParser(demo_style(), [TOOL])
    return [part.call for part in [*parser.feed(text), *parser.finish()] if isinstance(part, ToolEnd)]


def demo_style() -> Any:
    return FolderTokeniser(demo.target()).style


@pytest.mark.parametrize("mode", [Mode.BASELINE, Mode.LOOKUP, Mode.AUTO])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_turns_follow_the_conversation(engine: MlxEngine, mode: Mode, temperature: float) -> None:
    how: dict[str, Any] = {"mode": mode, "temperature": temperature}
    text, done = ask(engine, [ASKED], **how)
    assert done.reason is Finish.STOP and text.startswith("I will read it.\n<tool_call>")
    (call,) = called(text)
    assert call.name == "read"
    assert call.arguments_json == '{"path": "/tmp/a.txt", "lines": [1, 2], "note": "${none}"}'
    function = {"name": "read", "arguments": {"path": "/tmp/a.txt"}}
    answer = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": function}]}
    result = {"role": "tool", "tool_call_id": "1", "content": "The word is frog."}
    text, done = ask(engine, [ASKED, answer, result], **how)
    assert text == "It is frog, is it not? frog, frog." and done.reason is Finish.STOP
    said = {"role": "assistant", "content": text}
    again = [ASKED, answer, result, said, {"role": "user", "content": "Thanks"}]
    assert ask(engine, again, tools=False, **how)[0] == "Hello."


def test_lookup_drafts_and_the_target_takes_what_is_right(engine: MlxEngine) -> None:
    _, plain = ask(engine, [ASKED], mode=Mode.BASELINE)
    _, drafted = ask(engine, [ASKED], mode=Mode.LOOKUP)
    assert drafted.timings.output_tokens == plain.timings.output_tokens
    assert drafted.timings.rounds < plain.timings.rounds


def test_a_second_turn_begins_where_the_first_ended(tmp_path: Path) -> None:
    limits = CacheLimits(2**24, 0, str(tmp_path))
    keeping = open_scripted(Script((Turn("Hello."),)), demo.target(), "scripted", limits=limits)
    text, first = ask(keeping, [ASKED])
    again = [ASKED, {"role": "assistant", "content": text}, {"role": "user", "content": "Thanks"}]
    assert ask(keeping, again)[1].timings.reused_tokens >= len(first.prompt_ids)


def test_limits_stops_and_prompts_without_a_template(engine: MlxEngine) -> None:
    text, done = ask(engine, [ASKED], max_tokens=3)
    assert done.reason is Finish.LENGTH and "I will read it.".startswith(text)
    assert ask(engine, [ASKED], stop=("read",))[0] == "I will "
    assert run(engine, Text("Once upon a time"), Options())[0] == ""


def test_a_script_may_have_nothing_to_say() -> None:
    silent = open_scripted(Script((Turn("Hello.", after="tool"),)), demo.target(), "scripted")
    text, done = ask(silent, [ASKED])
    assert (text, done.reason, done.timings.output_tokens) == ("", Finish.STOP, 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "at least one"),
        ("[[turn]]\nsay = 'x'", "unknown key 'say'"),
        ("foo = 1\n[[turn]]\nsays = 'x'", "unknown key 'foo'"),
        ("[[turn]]\nwhen = '('", "no regular expression"),
        ("[[turn]]\nafter = 'system'", "after must be"),
        ("[[turn]]\nsays = 1", "must be strings"),
        ("[[turn]]\ncalls = 'x'", "must be a list"),
        ("[[turn]]\ncalls = [{ name = 'x', arguments = 'y' }]", "must be a table"),
        ("[[turn]]\ncalls = [{ arguments = {} }]", "a call has a name"),
        ("context = true\n[[turn]]\nsays = 'x'", "context must be"),
        ("turn = 1", "at least one"),
        ("turn = [1]", "no table"),
        ("[[turn", "cannot be read as TOML"),
    ],
)
def test_what_is_wrong_with_a_script_is_said(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "script.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(InvalidRequest, match=says):
        read_script(file)


def test_the_example_for_agents_can_be_read() -> None:
    assert len(read_script(Path(__file__).parent / "data/scripts/agents.toml").turns) > 5


def test_the_next_prompt_has_the_sampled_tokens_also_where_the_text_has_others(engine: MlxEngine) -> None:
    """With the built-in model's own tokeniser: each character a token, as no tokeniser would cut it."""
    tokeniser = engine.tokeniser
    assert isinstance(tokeniser, FolderTokeniser)
    text, done = ask(engine, [ASKED])
    (call,) = called(text)
    encode = tokeniser.huggingface.encode
    sampled = [id_ for letter in text for id_ in encode(letter, add_special_tokens=False)] + [min(engine.info.end_ids)]
    kept = dataclasses.replace(call, answer=tuple(sampled))
    function = {"name": call.name, "arguments": {}}
    answer = {"role": "assistant", "content": "I will read it."}
    answer |= {"tool_calls": [{"id": call.id, "type": "function", "function": function}]}
    messages = [ASKED, answer, {"role": "tool", "tool_call_id": call.id, "content": "ä"}]
    ids = chat.render(tokeniser, messages, [TOOL], recall={call.id: kept}.get)
    plain = chat.render(tokeniser, messages, [TOOL], recall={call.id: call}.get)
    assert ids[: len(done.prompt_ids) + len(sampled)] == [*done.prompt_ids, *sampled]
    assert tokeniser.spell(ids) == tokeniser.spell(plain) and ids != plain
