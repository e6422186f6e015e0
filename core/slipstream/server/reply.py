"""An answer before a dialect gives it a shape: parts as they come, then how it ended and what it cost."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from slipstream.events import Choice, Delta, Done, Failed, Finish, Timings
from slipstream.prompt.output import Content, OutputParser, Part, ToolCall, ToolEnd
from slipstream.prompt.reasoning import ReasoningCounter
from slipstream.server.stream import Stream


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens. `cached` is part of `prompt`, `reasoning` part of `completion`."""

    prompt: int
    cached: int
    completion: int
    reasoning: int

    @property
    def total(self) -> int:
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True)
class Chosen:
    """Tokens as the model chose them, for requests that ask for log-probabilities. No others get this."""

    tokens: tuple[int, ...]
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    reason: Finish
    stop: str | None  # the stop string that matched
    usage: Usage
    timings: Timings
    prompt_ids: tuple[int, ...]
    called: bool = False  # whether at least one tool call is complete


async def reply(stream: Stream, parser: OutputParser | None) -> AsyncGenerator[Part | Chosen | Finished, None]:
    """The parts of an answer, Finished last. Without a parser all text is Content.

    Raises the error of a job that fails. Cancels the job when its reader stops early: close it (`aclosing`).
    """
    wants_choices = stream.request.options.logprobs is not None
    counter = ReasoningCounter()
    answer: list[int] = []
    first_call: ToolCall | None = None

    def remember(part: Part) -> None:
        nonlocal first_call
        if isinstance(part, ToolEnd):
            first_call = first_call or part.call
            stream.backend.remember(part.call)

    async with stream:
        async for event in stream:
            match event:
                case Delta(text=text, tokens=tokens):
                    if wants_choices and tokens:
                        yield Chosen(tokens, event.logprobs)
                    answer += tokens
                    parts = _parse(parser, text)
                    counter.add(len(tokens), parts)
                    for part in parts:
                        remember(part)
                        yield part
                    if parser is not None and parser.is_over:
                        stream.cancel()
                case Done() as done:
                    if parser is not None and parser.is_over:
                        done = dataclasses.replace(done, reason=Finish.STOP, stop=None)
                    parts = parser.finish(done.was_cut) if parser else []
                    counter.add(0, parts)
                    for part in parts:
                        remember(part)
                        yield part
                    if first_call is not None:
                        stream.backend.remember(dataclasses.replace(first_call, answer=tuple(answer)))
                    yield _finished(done, counter.finish(), parser is not None and parser.called)
                case Failed(error):
                    raise error
                case _:
                    pass


def _parse(parser: OutputParser | None, text: str) -> list[Part]:
    if not text:
        return []
    return parser.feed(text) if parser else [Content(text)]


def _finished(done: Done, reasoning: int, called: bool) -> Finished:
    timings = done.timings
    usage = Usage(timings.prompt_tokens, timings.reused_tokens, timings.output_tokens, reasoning)
    return Finished(done.reason, done.stop, usage, timings, done.prompt_ids, called)
