"""A conversation as token ids, on a thread of its own: importing the tokeniser takes seconds, a long chat tenths."""

from __future__ import annotations

import hashlib
import itertools
import logging
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from slipstream.engine.text import Detokeniser
from slipstream.errors import ContextFull, InvalidRequest, SlipstreamError
from slipstream.types import ModelInfo, Options
from slipstream_app.messages import Call, Json, Message
from slipstream_app.models.chat_parameters import Parameters

if TYPE_CHECKING:
    from slipstream.prompt.output import OutputStyle
    from slipstream.server.backend import ServerTokeniser

logger = logging.getLogger(__name__)

THINK_TAIL = 32  # tokens at the end of a prompt in which a template may have opened a thought

Open = Callable[[ModelInfo], "ServerTokeniser"]
Work = Callable[["ServerTokeniser"], object]

_tickets = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that is needed to ask for an answer and to read it."""

    ids: tuple[int, ...]
    options: Options
    style: OutputStyle
    tools: tuple[Json, ...]
    opens_in_thinking: bool
    raw: str = ""  # what the answer says already, as the model wrote it: it is to go on from there

    @property
    def digest(self) -> str:
        return digest(self.ids)


class Prompter(QObject):
    """Does work on the loaded model's tokeniser, in order, and answers on the main thread."""

    answered = Signal(int, object)  # ticket, and what the work gave or the SlipstreamError it raised

    def __init__(self, open_tokeniser: Open | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._open = open_tokeniser or _open
        self._tokeniser: tuple[ModelInfo, ServerTokeniser] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="slipstream-prompter")
        self._is_closed = False

    def ask(self, info: ModelInfo, work: Work) -> int:
        """Returns at once; `answered` comes with the ticket."""
        ticket = next(_tickets)
        self._thread.submit(self._run, ticket, info, work)
        return ticket

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._thread.submit(_leave)
        self._thread.shutdown(wait=True)

    def _run(self, ticket: int, info: ModelInfo, work: Work) -> None:
        if self._is_closed:
            return
        try:
            if self._tokeniser is None or self._tokeniser[0] != info:
                self._tokeniser = (info, self._open(info))
            answer: object = work(self._tokeniser[1])
        except SlipstreamError as error:
            answer = error
        except Exception as error:  # the thread's edge: without an answer, a send would wait for ever
            logger.exception("work on the tokeniser failed")
            answer = InvalidRequest(f"this chat cannot be read for the model ({type(error).__name__}: {error})")
        if not self._is_closed:
            self.answered.emit(ticket, answer)


def _open(info: ModelInfo) -> ServerTokeniser:
    from slipstream.server.backend import open_tokeniser

    return open_tokeniser(info)


def _leave() -> None:
    """The thread that imported MLX must let go of it, or the process aborts at its end."""
    if "mlx.core" in sys.modules:
        from slipstream.engine.engine import release

        release()


def digest(ids: Sequence[int]) -> str:
    """Says whether a prompt is still the same without keeping it."""
    return hashlib.sha256(b"".join(token.to_bytes(4, "little") for token in ids)).hexdigest()[:32]


# Work for the prompter.


def prepare(
    tokeniser: ServerTokeniser, path: Sequence[Message], parameters: Parameters, context: int, prefix: str = ""
) -> Prepared:
    """The prompt for an answer to `path`; `prefix`: the answer's beginning. Raises ContextFull or InvalidRequest."""
    from slipstream.prompt.thinking import prompt_opens_thinking

    tools = parameters.tool_list()
    ids = encode(tokeniser, path, parameters, prefix)
    room = context - len(ids)
    if room <= 0:
        raise ContextFull(len(ids), context)
    opens = not prefix and prompt_opens_thinking(tokeniser.spell(ids[-THINK_TAIL:]), tokeniser.style.think)
    return Prepared(tuple(ids), parameters.options(room), tokeniser.style, tools, opens, prefix)


def resume(
    tokeniser: ServerTokeniser,
    path: Sequence[Message],
    parameters: Parameters,
    context: int,
    trace: Json | None,
) -> Prepared:
    """How to go on with the last message of `path`, which was stopped.

    From exactly the tokens that came, when they are known and the prompt is still the same: as noise depends on the
    position alone, the answer is then the one that an unstopped run gives. Else from its text.
    """
    from slipstream.prompt.thinking import prompt_opens_thinking

    question, answer = path[:-1], path[-1]
    base = encode(tokeniser, question, parameters)
    if trace is None or trace["segments"][0]["digest"] != digest(base):
        return prepare(tokeniser, question, parameters, context, answer.text)
    ids = [*base, *(token for segment in trace["segments"] for token in segment["tokens"])]
    room = context - len(ids)
    if room <= 0:
        raise ContextFull(len(ids), context)
    opens = prompt_opens_thinking(tokeniser.spell(base[-THINK_TAIL:]), tokeniser.style.think)
    options = parameters.options(room)
    return Prepared(tuple(ids), options, tokeniser.style, parameters.tool_list(), opens, trace["raw"])


def encode(tokeniser: ServerTokeniser, path: Sequence[Message], parameters: Parameters, prefix: str = "") -> list[int]:
    from slipstream.prompt import chat

    messages = [as_neutral(message) for message in path]
    if parameters.system.strip():
        messages.insert(0, {"role": "system", "content": parameters.system})
    if prefix:
        messages.append({"role": "assistant", "content": prefix, "prefix": True})
    return chat.render(tokeniser, messages, parameters.tool_list(), thinking=parameters.thinking)


def as_neutral(message: Message) -> Json:
    """A message as `slipstream.prompt.chat` takes it. Thoughts of earlier turns stay out, as templates want it."""
    content = "\n\n".join([*(attached(one.name, one.text) for one in message.attachments), message.text]).strip()
    neutral: dict[str, object] = {"role": message.role, "content": content}
    if message.calls:
        neutral["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
            for call in message.calls
        ]
        neutral["reasoning_content"] = message.thinking  # between a call and its result it is still of use
    if message.role == "tool":
        neutral["tool_call_id"] = message.facts.get("call_id", "")
    return neutral


def attached(name: str, text: str) -> str:
    """A file as the model reads it."""
    return f'<file name="{name}">\n{text.rstrip()}\n</file>'


def _arguments(call: Call) -> object:
    import json

    try:
        return json.loads(call.arguments)
    except ValueError:
        return call.arguments


@dataclass(frozen=True, slots=True)
class Count:
    """Tokens of a chat with what is typed, and of each turn that could be dropped."""

    tokens: int
    context: int


@dataclass(frozen=True, slots=True)
class Shortened:
    """The newest part of a chat that fits, for a preview."""

    dropped: tuple[int, ...]  # ids of messages
    tokens: int


def count(tokeniser: ServerTokeniser, path: Sequence[Message], parameters: Parameters, context: int) -> Count:
    return Count(len(encode(tokeniser, path, parameters)) if path else 0, context)


def shorten(tokeniser: ServerTokeniser, path: Sequence[Message], parameters: Parameters, room: int) -> Shortened:
    """Drop the oldest turns, a question with its answers at a time, until at most `room` tokens are left.

    The last question stays, whatever it takes.
    """
    turns = [at for at, message in enumerate(path) if message.role == "user"]
    low, high = 0, max(0, len(turns) - 1)  # how many turns to drop
    while low < high:  # a shorter chat has fewer tokens
        middle = (low + high) // 2
        if len(encode(tokeniser, path[turns[middle] :], parameters)) <= room:
            high = middle
        else:
            low = middle + 1
    begin = turns[low] if turns else 0
    tokens = len(encode(tokeniser, path[begin:], parameters)) if path else 0
    return Shortened(tuple(message.id for message in path[:begin]), tokens)


def pieces(tokeniser: ServerTokeniser, ids: Sequence[int]) -> list[str]:
    """The text that each token added. Joined, they are the answer as the model wrote it."""
    detokeniser = Detokeniser(tokeniser.decode)
    out = [detokeniser.feed([token]) for token in ids]
    if out:
        out[-1] += detokeniser.finish()
    return out
