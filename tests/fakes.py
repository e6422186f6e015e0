"""An engine without a model that speaks real events, and the server around it, on real threads and a real socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from slipstream import service
from slipstream.errors import InvalidRequest, SlipstreamError
from slipstream.events import Choice, Delta, Done, Event, Finish, Prefill, Round, Timings
from slipstream.jobs import Inbox, Job
from slipstream.prompt.output import OutputStyle
from slipstream.prompt.respell import Located
from slipstream.prompt.thinking import ThinkTags
from slipstream.server.app import HttpServer
from slipstream.server.backend import Backend
from slipstream.types import Calibrate, Chat, Mode, ModelInfo, Prompt, Text, Tokens

INFO = ModelInfo(
    name="fake-model",
    path="/nowhere/fake-model",
    context=8192,
    vocabulary=0x110000,
    drafters=(Mode.DSPARK,),
    dtype="float32",
    quantisation="none",
    end_ids=(0,),
)


class FakeTokeniser:
    """A character is a token, and its code point the id. Id 0 ends an answer."""

    def __init__(self, *, opens_thinking: bool = False) -> None:
        self._opens_thinking = opens_thinking
        self.chat_template = "a template that knows tools, enable_thinking and <think></think>"
        self.style = OutputStyle("json_tools", ThinkTags("<think>", "</think>"))

    def encode(self, prompt: Prompt) -> list[int]:
        match prompt:
            case Tokens(ids):
                out = list(ids)
            case Text(text):
                out = [ord(character) for character in text]
            case Chat():
                out = [ord(character) for character in self._render(prompt)]
        if not out:
            raise InvalidRequest("the prompt is empty")
        return out

    def locate(self, chat: Chat) -> Located:
        text = self._render(chat)
        return Located(text, self.encode(chat), [(at, at + 1) for at in range(len(text))])

    def _render(self, chat: Chat) -> str:
        head = "".join(f"[tool {tool['function']['name']}]" for tool in chat.tools)
        body = "".join(f"[{message['role']}]{message.get('content') or ''}" for message in chat.messages)
        thinks = chat.template.get("enable_thinking", self._opens_thinking)
        return f"{head}{body}[assistant]" + ("<think>" if thinks else "")

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(chr(token) for token in ids if token)

    def spell(self, ids: Sequence[int]) -> str:
        return "".join(chr(token) for token in ids)

    @staticmethod
    def text_of(job: Job) -> str:
        """A job's prompt."""
        assert isinstance(job.request.prompt, Tokens), "the server sends ids"
        return "".join(chr(token) for token in job.request.prompt.ids)


@dataclass(frozen=True)
class Script:
    """What the engine answers, in rounds."""

    pieces: tuple[str, ...] = ("Hello", " world")
    reused: int = 0
    prefill_chunks: int = 1
    prefill_s: float = 0.0  # for each chunk
    round_s: float = 0.0
    refuses: SlipstreamError | None = None  # instead of an answer
    breaks_after: int | None = None  # pieces, then the forward pass fails
    fails_after: tuple[int, SlipstreamError] | None = None  # pieces, then this
    blocks_after: int | None = None  # pieces, then it hangs until `FakeEngine.release`
    timings: Timings | None = None  # instead of the clock's


@dataclass
class FakeEngine:
    """`script` may depend on the job. Counts what was asked of it."""

    script: Script | Callable[[Job], Script] = field(default_factory=Script)
    info: ModelInfo = INFO
    jobs: list[Job] = field(default_factory=list[Job])
    ended: list[Done] = field(default_factory=list[Done])
    prefilled: int = 0  # chunks
    released: threading.Event = field(default_factory=threading.Event)

    def run(self, job: Job) -> Iterator[Event]:
        if isinstance(job.work, Calibrate):  # it has nothing to measure
            now = time.monotonic()
            yield Done(Finish.STOP, Timings(job.queued_s, now, now, now, 0, 0, 0, 0), ())
            return
        self.jobs.append(job)
        script = self.script if isinstance(self.script, Script) else self.script(job)
        for event in self._events(job, script):
            if isinstance(event, Done):
                self.ended.append(event)
            yield event

    def _events(self, job: Job, script: Script) -> Iterator[Event]:
        if script.refuses is not None:
            raise script.refuses
        asked = job.request.prompt
        prompt = asked.ids if isinstance(asked, Tokens) else (1,)  # the window sends messages, the server ids
        options = job.request.options
        started = time.monotonic()
        first = last = 0.0
        count = rounds = 0

        def done(reason: Finish, stop: str | None = None) -> Done:
            now = time.monotonic()
            measured = Timings(
                job.queued_s, started, first or now, last or now, len(prompt), script.reused, count, rounds
            )
            return Done(reason, script.timings or measured, prompt, stop)

        yield Prefill(script.reused, len(prompt), script.reused)
        for chunk in range(script.prefill_chunks):
            time.sleep(script.prefill_s)
            if job.is_cancelled:
                yield done(Finish.CANCELLED)
                return
            self.prefilled += 1
            done_tokens = len(prompt) * (chunk + 1) // script.prefill_chunks
            yield Prefill(max(done_tokens, script.reused), len(prompt), script.reused)
        written = ""
        for index, piece in enumerate(script.pieces):
            if index == script.breaks_after:
                raise RuntimeError("the forward pass broke")
            if script.fails_after is not None and index == script.fails_after[0]:
                raise script.fails_after[1]
            if index == script.blocks_after:
                self.released.wait()
            time.sleep(script.round_s)
            if job.is_cancelled:
                yield done(Finish.CANCELLED)
                return
            text, stop = _until_stop(written, piece, options.stop)
            text = text[: options.max_tokens - count]
            written += text
            last = time.monotonic()
            first = first or last
            count += len(text)
            rounds += index > 0
            tokens = tuple(ord(character) for character in text)
            drafted = Round(len(prompt) + count, "dspark", (*tokens[:-1], 1), max(0, len(tokens) - 1))
            best = options.logprobs
            choices = () if best is None else tuple(Choice(-0.5, ((token, -0.5),) * min(best, 1)) for token in tokens)
            yield Delta(text, tokens, drafted if index else None, choices)
            if stop is not None:
                yield done(Finish.STOP, stop)
                return
            if count >= options.max_tokens:
                yield done(Finish.LENGTH)
                return
        yield done(Finish.STOP)

    def rest(self) -> None:
        """There is nothing to give back."""

    def close(self) -> None:
        pass


def _until_stop(written: str, piece: str, stops: tuple[str, ...]) -> tuple[str, str | None]:
    """The piece up to the first stop string that is whole in it."""
    found = [(at, stop) for stop in stops if (at := piece.find(stop)) >= 0]
    if not found:
        return piece, None
    at, stop = min(found)
    return piece[:at], stop


@dataclass
class Served:
    url: str
    backend: Backend
    engine: FakeEngine
    server: HttpServer
    inbox: Inbox


@contextmanager
def serving(
    script: Script | Callable[[Job], Script] | None = None,
    *,
    tokeniser: FakeTokeniser | None = None,
    info: ModelInfo = INFO,
    limit: int = 64,
    max_active: int | None = None,
    aliases: tuple[str, ...] = (),
    clock: Callable[[], float] = time.monotonic,
    **settings: Any,  # Any: keywords of HttpServer
) -> Generator[Served]:
    """A server on a free port, and everything behind it. All threads have ended when this ends."""
    engine = FakeEngine(script or Script(), info)
    spoken = tokeniser or FakeTokeniser()
    inbox = Inbox(limit)
    backend = Backend(inbox, aliases=aliases, open_tokeniser=lambda _: spoken, clock=clock)
    server = HttpServer(backend, port=0, **settings)
    thread = threading.Thread(
        target=service.serve, args=(inbox, lambda _: engine, backend.note), kwargs={"max_active": max_active}
    )
    thread.start()
    try:
        server.start()
        while not backend.is_loaded:
            time.sleep(0.001)
        yield Served(server.url, backend, engine, server, inbox)
    finally:
        engine.released.set()
        inbox.close()
        server.stop()
        thread.join(5)
        backend.close()
        assert not thread.is_alive()
