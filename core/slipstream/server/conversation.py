"""A request of any dialect in one form, and the way from there to a job and a parser for its answer.

Messages and tools have the neutral form of `prompt/chat.py`.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from slipstream.errors import ContextFull, InvalidRequest
from slipstream.prompt import chat
from slipstream.prompt.grammar import Thoughts, answer_grammar, written_style
from slipstream.prompt.output import OutputParser, OutputStyle
from slipstream.prompt.thinking import prompt_opens_thinking
from slipstream.server.backend import Backend, ServerTokeniser
from slipstream.server.prompt_limit import PromptLimit, drop_oldest, room_for_prompt
from slipstream.server.request_log import current
from slipstream.types import Grammar, Options, Request, Text, Tokens

logger = logging.getLogger(__name__)

Message = Mapping[str, Any]  # Any: a JSON object, as above

AS_MUCH_AS_FITS = 2**31  # for `Options.max_tokens`, when a client names no limit
THINK_TAIL = 32  # tokens at the end of a prompt in which a template may have opened a thought


@dataclass(frozen=True, slots=True)
class Named:
    """The tool that must be called."""

    name: str


ToolChoice = Literal["auto", "none", "required"] | Named


@dataclass(frozen=True, slots=True)
class Conversation:
    messages: tuple[Message, ...]
    tools: tuple[Message, ...] = ()
    tool_choice: ToolChoice = "auto"
    thinking: bool | None = None  # None: as the template has it
    effort: str | None = None
    options: Options = field(default_factory=Options)
    template: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the client's own template variables
    parallel: bool | None = None  # several calls in one answer; None: as the model likes, one where it is forced
    stream: bool = False
    limit: PromptLimit | None = None  # None: as the server has it

    @property
    def offered_tools(self) -> tuple[Message, ...]:
        return () if self.tool_choice == "none" else self.tools


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt as the model gets it."""

    ids: tuple[int, ...]
    opens_in_thinking: bool = False


async def render(backend: Backend, conversation: Conversation) -> Rendered:
    """The prompt alone, for counting. Waits for the tokeniser's thread, never for the engine."""
    return await backend.tokenise(lambda tokeniser: _render(tokeniser, backend, conversation))


async def prepare(backend: Backend, conversation: Conversation) -> tuple[Request, OutputParser]:
    """What to ask the engine, and how to read its answer. Raises ContextFull, InvalidRequest or NotReady."""
    request, parsers = await prepare_many(backend, conversation, 1)
    return request, parsers[0]


async def prepare_many(backend: Backend, conversation: Conversation, count: int) -> tuple[Request, list[OutputParser]]:
    """The same for several answers: one prompt, and a parser for each."""
    context = backend.info().context
    limit = conversation.limit or backend.prompt_limit

    def work(tokeniser: ServerTokeniser) -> tuple[Request, list[OutputParser], int]:
        rendered, dropped = _render_within(tokeniser, backend, conversation, context, limit)
        style = tokeniser.style
        grammar = _grammar(conversation, style, rendered.opens_in_thinking)
        options = dataclasses.replace(conversation.options, grammar=grammar)
        request = _request(rendered.ids, options, context)
        if grammar is not None:
            style = dataclasses.replace(style, tools=written_style(style.tools))
        tools, is_single = conversation.offered_tools, conversation.parallel is False
        opens = rendered.opens_in_thinking
        return request, [OutputParser(style, tools, opens, is_single=is_single) for _ in range(count)], dropped

    request, parsers, dropped = await backend.tokenise(work)
    if dropped:
        logger.info("a prompt did not fit: its %d oldest messages were left out", dropped)
        if (entry := current.get()) is not None:
            entry.drop(dropped)
    return request, parsers


def _grammar(conversation: Conversation, style: OutputStyle, opens_in_thinking: bool) -> Grammar | None:
    """What the answer must be. It begins behind the thoughts of a model that thinks, unless thinking is off."""
    form = conversation.options.grammar
    choice = conversation.tool_choice
    tools = tuple(tool for tool in conversation.offered_tools if not tool.get("defer_loading"))
    if isinstance(choice, Named):
        tools = tuple(tool for tool in conversation.offered_tools if tool["function"]["name"] == choice.name)
    is_forced = choice == "required" or isinstance(choice, Named)
    thoughts = None
    if style.think and (opens_in_thinking or conversation.thinking is not False):
        thoughts = Thoughts(style.think.start, style.think.end, opens_in_thinking)
    grammar = answer_grammar(
        None if form is None else json.loads(form.text),
        tools,
        choice.name if isinstance(choice, Named) else "required" if is_forced else "auto",
        style.tools,
        parallel=conversation.parallel is True if is_forced else conversation.parallel is not False,
        thoughts=thoughts,
    )
    if grammar is not None and conversation.messages and conversation.messages[-1].get("prefix"):
        message = "messages: an answer that is begun already cannot be kept to a schema or a tool; end with a user's"
        raise InvalidRequest(message, path="messages")
    return grammar


async def prepare_text(backend: Backend, prompt: Text | Tokens, options: Options) -> Request:
    """The same for a prompt that has no messages."""
    context = backend.info().context
    return await backend.tokenise(lambda tokeniser: _request(tuple(tokeniser.encode(prompt)), options, context))


def _request(ids: tuple[int, ...], options: Options, context: int) -> Request:
    """Agents ask for more tokens than fit; that is no error, a prompt that does not fit is one."""
    room = context - len(ids)
    if room <= 0:
        raise ContextFull(len(ids), context)
    return Request(Tokens(ids), dataclasses.replace(options, max_tokens=min(options.max_tokens, room)))


def _render_within(
    tokeniser: ServerTokeniser, backend: Backend, conversation: Conversation, context: int, limit: PromptLimit
) -> tuple[Rendered, int]:
    """The prompt, and how many messages had to be left out of it."""
    whole = _render(tokeniser, backend, conversation)
    if len(whole.ids) < context or limit is PromptLimit.REFUSE:
        return whole, 0

    def rendered(messages: Sequence[Message]) -> Rendered:
        return _render(tokeniser, backend, dataclasses.replace(conversation, messages=tuple(messages)))

    for room in (room_for_prompt(context, conversation.options.max_tokens), context - 1):
        kept = drop_oldest(conversation.messages, lambda some, room=room: len(rendered(some).ids) <= room)
        if kept is not None:
            return rendered(kept), len(conversation.messages) - len(kept)
    return whole, 0


def _render(tokeniser: ServerTokeniser, backend: Backend, conversation: Conversation) -> Rendered:
    ids = chat.render(
        tokeniser,
        conversation.messages,
        conversation.offered_tools,
        thinking=conversation.thinking,
        effort=conversation.effort,
        variables=conversation.template,
        recall=backend.recall,
    )
    tail = tokeniser.spell(ids[-THINK_TAIL:])
    return Rendered(tuple(ids), prompt_opens_thinking(tail, tokeniser.style.think))
