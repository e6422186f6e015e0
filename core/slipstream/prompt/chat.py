"""A conversation as prompt ids, by the model's own chat template, so that the next turn's prompt extends this one's.

Messages are neutral: `role` (system, user, assistant, tool), `content` (text), and where they apply

- `reasoning_content`: the thoughts of an assistant;
- `tool_calls`: each with `id` and `function` (`name`, `arguments` as an object, or as text when it is none);
- `tool_call_id` of a tool's result, and `tool_references`: names of deferred tools that it makes known;
- `prefix`: the last message is the beginning of the answer.

Tools have OpenAI's form. One with `defer_loading` stays out of the head of the prompt, so that the head does not
change: it is described by the result that refers to it.
What a template refuses is said in another way (`Abilities`); ids of the client never reach the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slipstream.errors import InvalidRequest
from slipstream.prompt import generic
from slipstream.prompt.abilities import PLAIN, Abilities, Message, Templated, abilities_of, nearest_effort
from slipstream.prompt.parts import ToolCall
from slipstream.prompt.respell import Sampled, respell
from slipstream.types import Chat, Text

Recall = Callable[[str], ToolCall | None]  # the exact text of a call, by its id
Made = dict[str, Any]  # a message as it is being made


def forget(_: str) -> None:
    """For conversations whose calls nobody kept."""


def render(
    tokeniser: Templated,
    messages: Sequence[Message],
    tools: Sequence[Message] = (),
    *,
    thinking: bool | None = None,
    effort: str | None = None,
    variables: Mapping[str, Any] | None = None,  # the client's own, for the template: they win
    recall: Recall = forget,
) -> list[int]:
    """The prompt. Raises InvalidRequest when even user and assistant by turns do not fit the template."""
    abilities = abilities_of(tokeniser)
    given = {**switches(tokeniser.chat_template, abilities, thinking, effort), **(variables or {})}
    last = messages[-1] if messages else {}
    prefix = str(last["content"]) if last.get("prefix") else ""
    if last.get("prefix"):
        messages = messages[:-1]
    known = tuple({"type": "function", "function": tool["function"]} for tool in tools if not tool.get("defer_loading"))

    def encode(abilities: Abilities) -> list[int]:
        shaper = _Shaper(abilities, tokeniser.chat_template, tools, recall)
        chat = Chat(tuple(shaper.shape(messages, known)), known if abilities.tools else (), given)
        if shaper.sampled and (located := tokeniser.locate(chat)) is not None:
            return respell(located, shaper.sampled, tokeniser.spell)
        return tokeniser.encode(chat)

    try:
        ids = encode(abilities)
    except InvalidRequest as refusal:
        if abilities == PLAIN:
            raise
        try:
            ids = encode(PLAIN)
        except InvalidRequest:
            raise refusal from None
    return ids + _continuation(tokeniser, prefix)


def count(tokeniser: Templated, messages: Sequence[Message], tools: Sequence[Message] = (), **how: Any) -> int:
    """Tokens of the prompt; takes what `render` takes."""
    return len(render(tokeniser, messages, tools, **how))


def switches(template: str, abilities: Abilities, thinking: bool | None, effort: str | None) -> Made:
    """Template variables for whether to think, and how hard. Only those that the template reads."""
    made: Made = {}
    if thinking is not None:
        made |= {name: thinking for name in ("enable_thinking", "thinking") if re.search(rf"\b{name}\b", template)}
    if thinking is False and "none" in abilities.efforts:
        effort = "none"
    if effort is not None and (known := nearest_effort(effort, abilities.efforts)):
        made["reasoning_effort"] = known
    return made


def _continuation(tokeniser: Templated, text: str) -> list[int]:
    """Ids of text that goes on: without the token with which this tokeniser begins every text."""
    if not text:
        return []
    try:
        begin = tokeniser.encode(Text(""))
    except InvalidRequest:
        begin = []
    ids = tokeniser.encode(Text(text))
    return ids[len(begin) :] if ids[: len(begin)] == begin else ids


class _Shaper:
    """Messages as one template takes them."""

    def __init__(self, abilities: Abilities, template: str, tools: Sequence[Message], recall: Recall) -> None:
        self._can = abilities
        self._tools = {tool["function"]["name"]: tool for tool in tools}
        self._recall = recall
        self._has_long_ids = "functions." in template  # Kimi K2 was shown calls by such names
        self._calls: dict[str, tuple[str, str]] = {}  # a client's call id: the id in the prompt, and the tool's name
        self.sampled: list[Sampled] = []  # answers whose calls are given as the model wrote them
        self._made: list[Made] = []
        self._results: Made | None = None  # the user message that holds the latest results, where that is their place

    def shape(self, messages: Sequence[Message], known: Sequence[Message]) -> list[Made]:
        head = 0
        while head < len(messages) and messages[head]["role"] == "system":
            head += 1
        rules = [str(message["content"]) for message in messages[:head] if message["content"]]
        if known and not self._can.tools:
            rules.append(generic.instructions(known))
        rule = "\n\n".join(rules)
        if rule and self._can.system:
            self._made.append({"role": "system", "content": rule})
        elif rule:
            self._add_user(rule)
        for message in self._one_call_at_a_time(messages[head:]):
            self._add(message)
        return self._made

    def _add(self, message: Message) -> None:
        text = str(message["content"] or "")
        match message["role"]:
            case "system" if self._can.late_system:
                self._made.append({"role": "system", "content": text})
            case "system":
                self._add_user(generic.reminder_text(text))
            case "assistant":
                self._add_assistant(message, text)
            case "tool":
                self._add_result(message, text)
            case _:
                self._add_user(text)

    def _add_user(self, text: str) -> None:
        last = self._made[-1] if self._made else None
        stands_alone = {"tool": self._can.user_after_result, "user": self._can.repeated_user}
        if last is None or stands_alone.get(last["role"], True):
            self._made.append({"role": "user", "content": text})
        else:
            last["content"] = _join(last["content"], text)

    def _add_assistant(self, message: Message, text: str) -> None:
        calls: Sequence[Message] = message.get("tool_calls") or ()
        made: Made = {"role": "assistant", "content": text}
        if self._can.thought_key and (thought := message.get("reasoning_content")):
            made[self._can.thought_key] = thought
        for call in calls:
            self._name(call)
        if calls and (exact := self._exact(message)) is not None:
            made["content"] = text + exact
            first = self._recall(str(calls[0].get("id") or ""))
            if first is not None and first.answer:
                self.sampled.append(Sampled(first.answer, first.raw))
        elif calls and self._can.calls:
            made["tool_calls"] = [self._call(call) for call in calls]
            if "thinking" in made and text:  # gpt-oss takes one of both beside a call
                made |= {"thinking": _join(made["thinking"], text), "content": ""}
        elif calls:
            written = [generic.call_text(call["function"]) for call in calls]
            made["content"] = "\n".join([*([text] if text else []), *written])
        last = self._made[-1] if self._made else None
        if last and last["role"] == "assistant" and not self._can.repeated_assistant:
            _merge(last, made)
            return
        if not self._can.repeated_user and (last is None or last["role"] == "system"):
            self._add_user("")  # a template of strict turns lets nobody else begin
        self._made.append(made)

    def _exact(self, message: Message) -> str | None:
        """The calls of a message as the model wrote them; None when they cannot be given so."""
        if not self._can.exact_calls:
            return None
        found = [self._recall(str(call.get("id") or "")) for call in message.get("tool_calls") or ()]
        kept = [call for call in found if call is not None]
        return "".join(call.lead + call.raw for call in kept) if kept and len(kept) == len(found) else None

    def _name(self, call: Message) -> None:
        """An id for the prompt: the same in each turn, whatever the client's is. Mistral wants nine characters."""
        name, number = call["function"]["name"], len(self._calls)
        own = f"functions.{name}:{number}" if self._has_long_ids else f"call{number:05d}"
        self._calls[str(call.get("id") or f"#{number}")] = (own, name)

    def _call(self, call: Message) -> Made:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if self._can.arguments_as_text:
            arguments = arguments if isinstance(arguments, str) else generic.dump(arguments)
        elif isinstance(arguments, str):  # broken when it was sampled, and templates walk through objects
            arguments = {"input": arguments}
        own, _ = self._calls[str(call.get("id") or f"#{len(self._calls) - 1}")]
        return {"id": own, "type": "function", "function": {"name": name, "arguments": arguments}}

    def _add_result(self, message: Message, text: str) -> None:
        text = self._with_references(message, text)
        own, name = self._calls.get(str(message.get("tool_call_id") or ""), ("", str(message.get("name") or "")))
        if not own and self._calls:
            own, name = list(self._calls.values())[-1]
        if self._can.results:
            self._made.append({"role": "tool", "content": text, "tool_call_id": own, "name": name})
            return
        text = generic.result_text(text)
        last = self._made[-1] if self._made else None
        if last is not None and last is self._results:  # results of one answer are one message, as they came at once
            last["content"] = f"{last['content']}\n{text}"
            return
        self._add_user(text)
        self._results = self._made[-1]

    def _with_references(self, message: Message, text: str) -> str:
        names: Sequence[str] = message.get("tool_references") or ()
        if not names:
            return text
        found = [self._tools[name] for name in names if name in self._tools]
        described = [generic.describe(found)] if found else [f"no such tool: {', '.join(names)}"]
        return "\n".join([*([text] if text else []), "These tools can be called now:", *described])

    def _one_call_at_a_time(self, messages: Sequence[Message]) -> Sequence[Message]:
        """For templates that take a single call in a message: each call followed by its own result."""
        if self._can.parallel_calls or not self._can.calls:
            return messages
        made: list[Message] = []
        at = 0
        while at < len(messages):
            message = messages[at]
            at += 1
            calls: Sequence[Message] = message.get("tool_calls") or ()
            if len(calls) < 2 or self._exact(message) is not None:
                made.append(message)
                continue
            results: list[Message] = []
            while at < len(messages) and messages[at]["role"] == "tool":
                results.append(messages[at])
                at += 1
            for call in calls:
                made.append({**message, "tool_calls": [call]})
                made += [result for result in results if result.get("tool_call_id") == call.get("id")]
                message = {"role": "assistant", "content": ""}
            ids = {call.get("id") for call in calls}
            made += [result for result in results if result.get("tool_call_id") not in ids]
        return made


def _join(first: str, second: str) -> str:
    return f"{first}\n\n{second}" if first and second else first or second


def _merge(first: Made, second: Made) -> None:
    """Two answers in a row as one."""
    for key, value in second.items():
        if key == "tool_calls":
            first[key] = [*first.get(key, ()), *value]
        elif key != "role":
            first[key] = _join(first.get(key, ""), value)
