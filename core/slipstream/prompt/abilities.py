"""What a model's chat template can show, found out by rendering small conversations with it.

A template is a program of the model's author. Reading it says less than trying it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from slipstream.errors import InvalidRequest
from slipstream.prompt.output import OutputStyle
from slipstream.prompt.respell import Located
from slipstream.types import Chat, Prompt

Message = Mapping[str, Any]  # Any: a JSON object


class Templated(Protocol):
    """A tokeniser with a chat template."""

    def encode(self, prompt: Prompt) -> list[int]: ...

    def spell(self, ids: Sequence[int]) -> str:
        """The text with special tokens in it."""
        ...

    def locate(self, chat: Chat) -> Located | None:
        """Ids as `encode` gives them, and where they stand in the text. None where this tokeniser cannot say."""
        ...

    @property
    def chat_template(self) -> str: ...

    @property
    def style(self) -> OutputStyle: ...


@dataclass(frozen=True, slots=True)
class Abilities:
    """What may be given to the template as it is. What may not is said in another way."""

    system: bool = False
    late_system: bool = False  # a system message between the others, shown where it stands
    repeated_user: bool = False  # two user messages in a row
    repeated_assistant: bool = False
    tools: bool = False
    calls: bool = False
    parallel_calls: bool = False
    arguments_as_text: bool = False
    results: bool = False
    user_after_result: bool = False
    exact_calls: bool = False  # a call as the answer's text, at the place where the model wrote it
    thought_key: str | None = None  # the message's field for thoughts
    efforts: tuple[str, ...] = ()  # values of `reasoning_effort`, weakest first


PLAIN = Abilities()  # user and assistant by turns: what every template takes

_known: WeakKeyDictionary[Templated, Abilities] = WeakKeyDictionary()


def abilities_of(tokeniser: Templated) -> Abilities:
    """Some twenty tiny renderings, once for each tokeniser."""
    found = _known.get(tokeniser)
    if found is None:
        found = _known[tokeniser] = _Probe(tokeniser).abilities()
    return found


# Words that templates do not contain and tokenisers give back as they were.
_RULE, _ASK, _NOTE, _SAY, _MORE, _FOUND = "zebra", "quince", "otter", "walnut", "ferret", "radish"
_CALL_ID = "call00000"


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _assistant(text: str, *calls: Message) -> Message:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def _system(text: str) -> Message:
    return {"role": "system", "content": text}


_RESULT: Message = {"role": "tool", "content": _FOUND, "tool_call_id": _CALL_ID, "name": "lynx"}
_TOOL: Message = {
    "type": "function",
    "function": {
        "name": "lynx",
        "description": "Finds one.",
        "parameters": {"type": "object", "properties": {"where": {"type": "string", "description": "A place."}}},
    },
}


class _Probe:
    def __init__(self, tokeniser: Templated) -> None:
        self._tokeniser = tokeniser
        self._template = tokeniser.chat_template

    def abilities(self) -> Abilities:
        user, said = _user(_ASK), _assistant(_SAY)
        as_text = not self._shows([user, _call(), _RESULT, said, _user(_MORE)], "badger") and self._shows(
            [user, _call(as_text=True), _RESULT, said, _user(_MORE)], "badger"
        )
        call, other = _call(as_text), _call(as_text, "call00001")
        more = {**_RESULT, "content": _NOTE, "tool_call_id": "call00001"}
        both = _assistant("", *call["tool_calls"], *other["tool_calls"])
        # A template that does not describe tools has no place for their calls and results either, even where it prints
        # any role it is given: the model was never shown that.
        tools = self._shows([user], "lynx", tools=[_TOOL])
        replayed = [user, said, _RESULT, _assistant(_NOTE), _user(_MORE)]
        return Abilities(
            system=self._shows([_system(_RULE), user], _RULE, _ASK),
            late_system=self._shows([user, _system(_NOTE), said, _user(_MORE)], _ASK, _NOTE, _SAY, _MORE),
            repeated_user=self._shows([user, _user(_NOTE), said], _ASK, _NOTE, _SAY),
            repeated_assistant=self._shows([user, _assistant(_NOTE), said, _user(_MORE)], _ASK, _NOTE, _SAY, _MORE),
            tools=tools,
            calls=tools and self._shows([user, call, _RESULT, said, _user(_MORE)], _ASK, "badger", _SAY),
            parallel_calls=tools and self._shows([user, both, _RESULT, more, said], "badger", "badger", _SAY),
            arguments_as_text=as_text,
            results=tools and self._shows([user, call, _RESULT, said, _user(_MORE)], _ASK, _FOUND, _SAY),
            user_after_result=self._shows([user, call, _RESULT, _user(_MORE)], _FOUND, _MORE),
            exact_calls=self._is_bare() and (not tools or self._shows(replayed, _ASK, _SAY, _FOUND, _NOTE, _MORE)),
            thought_key=_thought_key(self._template),
            efforts=_efforts(self._template),
        )

    def _shows(self, messages: Sequence[Message], *words: str, tools: Sequence[Message] = ()) -> bool:
        """Whether the words are there, in this order."""
        text = self._render(messages, tools)
        at = 0
        for word in words:
            at = text.find(word, at) + 1
            if not at:
                return False
        return True

    def _render(self, messages: Sequence[Message], tools: Sequence[Message] = ()) -> str:
        """Empty when the template refuses."""
        try:
            return self._tokeniser.spell(self._tokeniser.encode(Chat(tuple(messages), tuple(tools))))
        except InvalidRequest:
            return ""

    def _is_bare(self) -> bool:
        """Whether an answer's text stands where the model began to write: no marker of a channel before it."""
        asked = self._render([_user(_ASK)])
        text = self._render([_user(_ASK), _assistant(_SAY), _user(_MORE)])
        at = text.find(_SAY)
        if at < 0:
            return False
        begins = next((n for n, (a, b) in enumerate(zip(asked, text, strict=False)) if a != b), len(asked))
        between = text[begins:at]
        if think := self._tokeniser.style.think:
            between = between.replace(think.start, "").replace(think.end, "")
        return not between.strip()


def _call(as_text: bool = False, call_id: str = _CALL_ID) -> Message:
    arguments: Any = '{"where": "badger"}' if as_text else {"where": "badger"}
    call = {"id": call_id, "type": "function", "function": {"name": "lynx", "arguments": arguments}}
    return _assistant("", call)


def _thought_key(template: str) -> str | None:
    for key in ("reasoning_content", "reasoning", "thinking"):
        if re.search(rf"""(\.|\[['"]|['"]){key}\b(?!_)""", template):
            return key
    return None


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")  # names that clients send, weakest first


def _efforts(template: str) -> tuple[str, ...]:
    if "reasoning_effort" not in template:
        return ()
    named = tuple(effort for effort in EFFORTS if re.search(rf"""['"]{effort}['"]""", template))
    # gpt-oss prints the word without looking at it; its model card knows three.
    return named if len(named) > 1 else ("low", "medium", "high")


def nearest_effort(effort: str, known: Sequence[str]) -> str | None:
    """The known effort that is nearest to a name; a name nobody knows counts as high. None when none is known."""
    thinking = [name for name in known if name != "none"] if effort != "none" else known
    wanted = EFFORTS.index(effort if effort in EFFORTS else "high")
    return min(thinking or known, key=lambda name: abs(EFFORTS.index(name) - wanted), default=None)
