"""Conversations as prompts: what templates refuse is said otherwise, and each turn extends the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from prompt.templates import CHANNELS, SINGLE, SMOLLM2, STRICT, TAGGED, TemplateTokeniser
from slipstream.errors import InvalidRequest
from slipstream.prompt.abilities import EFFORTS, Abilities, abilities_of, nearest_effort
from slipstream.prompt.chat import count, render
from slipstream.prompt.output import OutputParser, ToolEnd
from slipstream.prompt.parts import ToolCall

Json = dict[str, Any]

ALL = {"smollm2": SMOLLM2, "tagged": TAGGED, "strict": STRICT, "single": SINGLE, "channels": CHANNELS}


def tool(name: str, **more: Any) -> Json:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": schema}, **more}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def system(text: str) -> Json:
    return {"role": "system", "content": text}


def assistant(text: str, *calls: tuple[str, str, Any], **more: Any) -> Json:
    made = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {}), **more}


def result(call_id: str, text: str, **more: Any) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": text, **more}


READ, WRITE = tool("read"), tool("write")
CONVERSATION = [
    system("Be brief."),
    user("What is in a and b?"),
    system("It is Monday."),
    assistant("I look.", ("x1", "read", {"path": "a"}), ("x2", "read", {"path": "b"}), reasoning_content="Two files."),
    result("x1", "apple"),
    result("x2", "berry"),
    system("Hurry."),
    assistant("Apple and berry."),
    user("Thanks."),
    user("And c?"),
]


def text_of(template: str, messages: Sequence[Json], tools: Sequence[Json] = (), **more: Any) -> str:
    tokeniser = TemplateTokeniser(template)
    return tokeniser.spell(render(tokeniser, messages, tools, **more))


def test_abilities_are_found_by_trying() -> None:
    smollm2 = abilities_of(TemplateTokeniser(SMOLLM2))
    assert smollm2 == Abilities(
        system=True,
        late_system=True,
        repeated_user=True,
        repeated_assistant=True,
        user_after_result=True,
        exact_calls=True,
    )
    tagged = abilities_of(TemplateTokeniser(TAGGED))
    assert tagged.tools and tagged.calls and tagged.parallel_calls and tagged.results and tagged.exact_calls
    assert tagged.thought_key == "reasoning_content" and not tagged.late_system
    assert abilities_of(TemplateTokeniser(STRICT)) == Abilities(exact_calls=True)
    single = abilities_of(TemplateTokeniser(SINGLE))
    assert single.calls and not single.parallel_calls
    channels = abilities_of(TemplateTokeniser(CHANNELS))
    assert not channels.exact_calls and channels.calls and channels.thought_key == "thinking"


@pytest.mark.parametrize("name", ALL)
def test_every_turn_is_shown_in_order_and_extends_the_one_before(name: str) -> None:
    words = "Be brief.", "a and b?", "Monday", "I look.", "apple", "berry", "Hurry", "Apple and", "Thanks", "And c?"
    if name in ("single", "channels"):  # such templates drop the text beside a call
        words = tuple(word for word in words if word != "I look.")
    whole = text_of(ALL[name], CONVERSATION, [READ, WRITE])
    at = [whole.index(word) for word in words]
    assert at == sorted(at)
    before = text_of(ALL[name], CONVERSATION[:3], [READ, WRITE])
    later = text_of(ALL[name], CONVERSATION[:7], [READ, WRITE])
    assert later.startswith(before) and whole.startswith(later)


@pytest.mark.parametrize("name", ALL)
def test_no_id_of_the_client_is_in_the_prompt(name: str) -> None:
    other = [{**m} for m in CONVERSATION]
    other[3] = assistant(
        "I look.", ("y1", "read", {"path": "a"}), ("y2", "read", {"path": "b"}), reasoning_content="Two files."
    )
    other[4], other[5] = result("y1", "apple"), result("y2", "berry")
    assert text_of(ALL[name], other, [READ]) == text_of(ALL[name], CONVERSATION, [READ])


@pytest.mark.parametrize("name", ["smollm2", "tagged", "strict"])
@pytest.mark.parametrize("gap", ["\n", ""])
def test_calls_come_back_as_they_were_sampled(name: str, gap: str) -> None:
    """Clients reorder arguments and add defaults; the prompt has the model's own text (clients/README, 6)."""
    sampled = "I look." + gap + '<tool_call>{"name":"read",  "arguments": {"path":"a"}}</tool_call>'
    tokeniser = TemplateTokeniser(ALL[name])
    parser = OutputParser(tokeniser.style, [READ], new_id=lambda: "x1")
    kept = {part.call.id: part.call for part in parser.feed(sampled) + parser.finish() if isinstance(part, ToolEnd)}
    first = [user("What is in a?")]
    then = [*first, assistant("I look.", ("x1", "read", {"limit": 10, "path": "a"})), result("x1", "apple")]
    prompt = tokeniser.spell(render(tokeniser, first, [READ], recall=kept.get))
    following = tokeniser.spell(render(tokeniser, then, [READ], recall=kept.get))
    assert following.startswith(prompt + sampled)
    assert sampled not in tokeniser.spell(render(tokeniser, then, [READ])), "nobody kept it: as the template writes it"


def test_a_template_with_channels_gets_no_raw_calls() -> None:
    kept = ToolCall("x1", "read", "{}", "<raw>")
    messages = [user("?"), assistant("", ("x1", "read", {})), result("x1", "apple")]
    assert "<raw>" not in text_of(CHANNELS, messages, [READ], recall={"x1": kept}.get)


def test_half_known_calls_are_rendered_by_the_template() -> None:
    kept = ToolCall("x1", "read", "{}", "<raw>")
    assert "<raw>" not in text_of(TAGGED, CONVERSATION, [READ], recall={"x1": kept}.get)


def test_a_template_without_tools_gets_them_in_its_system_prompt_and_the_parser_reads_its_calls() -> None:
    whole = text_of(SMOLLM2, CONVERSATION, [READ])
    head = whole[: whole.index("a and b?")]
    assert head.startswith("<|im_start|>system\nBe brief.\n\n# Tools") and '"name": "read"' in head
    call = '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>'
    assert call in whole
    assert "<|im_start|>user\n<tool_response>\napple\n</tool_response>\n<tool_response>\nberry" in whole
    style = TemplateTokeniser(SMOLLM2).style
    parts = OutputParser(style, [READ]).feed(call)
    assert [part.call.arguments_json for part in parts if isinstance(part, ToolEnd)] == ['{"path": "a"}']


def test_without_tools_the_prompt_is_the_templates_own() -> None:
    assert text_of(SMOLLM2, [user("hi")]).startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")


def test_a_late_system_message_stands_in_place_or_becomes_a_reminder() -> None:
    messages = [system("Rule."), user("One"), system("Note."), assistant("Two"), user("Three")]
    assert "One<|im_end|>\n<|im_start|>system\nNote.<|im_end|>" in text_of(SMOLLM2, messages)
    assert "[user]One[/][user]<system-reminder>\nNote.\n</system-reminder>[/]" in text_of(TAGGED, messages)
    assert "One\n\n<system-reminder>\nNote.\n</system-reminder></><assistant>Two" in text_of(STRICT, messages)
    reminder = "<system-reminder>x</system-reminder>"
    assert text_of(TAGGED, [user("One"), system(reminder)]).count("<system-reminder>") == 1


def test_leading_system_messages_are_one() -> None:
    messages = [system("A."), system("B."), user("One")]
    assert text_of(TAGGED, messages).startswith("[sys]A.\n\nB.[/][user]One")
    assert text_of(STRICT, messages).startswith("<user>A.\n\nB.\n\nOne</>")


def test_a_deferred_tool_is_described_where_a_result_refers_to_it() -> None:
    """The head must not change when a tool becomes known (clients/README, 5)."""
    before = [user("Search."), assistant("", ("x1", "search", {"q": "web"}))]
    tools = [READ, tool("fetch", defer_loading=True), WRITE]
    prompt = text_of(TAGGED, before[:1], [READ, WRITE])
    after = text_of(TAGGED, [*before, result("x1", "", tool_references=["fetch", "gone"])], tools)
    assert after.startswith(prompt)
    assert '"name": "fetch"' in after[len(prompt) :] and '"name": "fetch"' not in prompt
    unknown = text_of(TAGGED, [*before, result("x1", "", tool_references=["gone"])], tools)
    assert "no such tool: gone" in unknown


def test_single_calls_are_paired_with_their_results() -> None:
    whole = text_of(SINGLE, CONVERSATION, [READ])
    order = ['"path": "a"', "apple", '"path": "b"', "berry"]
    at = [whole.index(word) for word in order]
    assert at == sorted(at)


def test_broken_arguments_do_not_break_the_template() -> None:
    messages = [user("?"), assistant("", ("x1", "read", '{"path": ')), result("x1", "bad JSON")]
    for template in ALL.values():
        assert "path" in text_of(template, messages, [READ])


def test_thoughts_go_where_the_template_reads_them() -> None:
    messages = [user("?"), assistant("Yes.", reasoning_content="Hm."), user("Sure?")]
    assert "<think>Hm.</think>Yes." in text_of(TAGGED, messages)
    assert "Hm." not in text_of(SMOLLM2, messages)
    called = [user("?"), assistant("I look.", ("x1", "read", {}), reasoning_content="Hm."), result("x1", "apple")]
    assert "<assistant:analysis>Hm.\n\nI look.</>" in text_of(CHANNELS, called, [READ])


def test_thinking_and_effort_reach_templates_that_read_them() -> None:
    assert text_of(TAGGED, [user("hi")], thinking=False).endswith("<think></think>")
    assert text_of(TAGGED, [user("hi")], thinking=True).endswith("[assistant]")
    for asked, said in (("high", "high"), ("max", "high"), ("minimal", "low"), ("ludicrous", "high")):
        assert f"reasoning: {said}" in text_of(CHANNELS, [user("hi")], effort=asked)
    own = text_of(CHANNELS, [user("hi")], effort="low", variables={"reasoning_effort": "own"})
    assert "reasoning: own" in own, "the client's own variable wins"


def test_p16_an_unknown_effort_becomes_the_nearest_known() -> None:
    assert nearest_effort("high", ("low", "medium")) == "medium"
    assert nearest_effort("low", ("none", "high")) == "high", "none would mean not to think at all"
    assert nearest_effort("none", ("low", "high")) == "low"
    assert nearest_effort("low", ()) is None
    assert all(nearest_effort(name, EFFORTS) == name for name in EFFORTS)


def test_the_beginning_of_an_answer_is_gone_on_with() -> None:
    messages = [user("Count."), {**assistant("One, two"), "prefix": True}]
    assert text_of(SMOLLM2, messages).endswith("<|im_start|>assistant\nOne, two")


@pytest.mark.parametrize("name", ALL)
def test_odd_orders_do_not_fail(name: str) -> None:
    odd: list[list[Json]] = [
        [assistant("Hello."), user("hi")],
        [user("a"), user("b"), assistant("c"), assistant("d"), user("e")],
        [result("nobody", "apple"), user("hi")],
        [system("Only rules.")],
        [user("")],
        [user("a"), assistant("", ("x1", "gone", {"z": 1})), user("never mind")],
    ]
    for messages in odd:
        assert text_of(ALL[name], messages, [READ])


def test_a_template_that_refuses_everything_says_why() -> None:
    with pytest.raises(InvalidRequest, match="refuses these messages: never"):
        text_of("{{ raise_exception('never') }}", [user("hi")])


def test_count_is_the_length_of_the_prompt() -> None:
    tokeniser = TemplateTokeniser(TAGGED)
    assert count(tokeniser, CONVERSATION, [READ]) == len(render(tokeniser, CONVERSATION, [READ]))
