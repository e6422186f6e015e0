"""Several answers to one request, each a job of its own, side by side."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import ExitStack, aclosing

from slipstream.prompt.output import OutputParser, Part
from slipstream.server.backend import Backend
from slipstream.server.reply import Chosen, Finished, Usage, reply
from slipstream.server.stream import FIRST_WORD_S, Stream
from slipstream.types import MAX_SEED, Request

MAX_CHOICES = 8

Item = Part | Chosen | Finished
Numbered = tuple[int, Item]


def with_seeds(request: Request, count: int) -> list[Request]:
    """The request as often as asked, each with a seed of its own."""
    options = request.options
    seeds = [(options.seed + index) % (MAX_SEED + 1) for index in range(count)]
    return [dataclasses.replace(request, options=dataclasses.replace(options, seed=seed)) for seed in seeds]


class Choices:
    """The streams behind one answer. `cancel` them when the client leaves."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self.streams = streams

    @classmethod
    async def open(cls, backend: Backend, requests: Iterable[Request]) -> Choices:
        """Queue all, or none. Raises what the engine says about the first within a moment."""
        streams: list[Stream] = []
        with ExitStack() as on_failure:
            for request in requests:
                stream = await Stream.open(backend, request)
                on_failure.callback(stream.cancel)
                streams.append(stream)
            await streams[0].first(FIRST_WORD_S)
            on_failure.pop_all()
        return cls(streams)

    def cancel(self) -> None:
        for stream in self.streams:
            stream.cancel()

    async def items(self, parsers: Sequence[OutputParser | None]) -> AsyncGenerator[Numbered, None]:
        """Parts of all answers as they come, each with its answer's number. Raises the first error of any."""
        replies = [reply(stream, parser) for stream, parser in zip(self.streams, parsers, strict=True)]
        if len(replies) == 1:
            async with aclosing(replies[0]) as only:
                async for item in only:
                    yield 0, item
            return
        arrived: asyncio.Queue[Numbered | int] = asyncio.Queue()  # a number alone: that answer has ended

        async def pump(index: int) -> None:
            try:
                async with aclosing(replies[index]) as one:
                    async for item in one:
                        arrived.put_nowait((index, item))
            finally:
                arrived.put_nowait(index)

        tasks = [asyncio.create_task(pump(index)) for index in range(len(replies))]
        try:
            running = len(tasks)
            while running:
                got = await arrived.get()
                if isinstance(got, int):
                    await tasks[got]  # raises what it ended with
                    running -= 1
                else:
                    yield got
        finally:
            self.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def total(usages: Iterable[Usage]) -> Usage:
    """One prompt, however many answers."""
    listed = list(usages)
    first = listed[0]
    completion = sum(usage.completion for usage in listed)
    return Usage(first.prompt, first.cached, completion, sum(usage.reasoning for usage in listed))
