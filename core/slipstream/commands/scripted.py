"""`serve --scripted FILE`: reads a script and opens an engine that follows it (docs/scripted-model.md)."""

from __future__ import annotations

import re
import tomllib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstream.errors import InvalidRequest, reason
from slipstream.types import CacheLimits, ModelInfo

if TYPE_CHECKING:  # importing it imports MLX, and that must wait
    from slipstream.engine.engine import MlxEngine
    from slipstream.server.tokenising import FolderTokeniser
    from slipstream.store.reuse import CacheDesk

CONTEXT = 131_072  # what coding agents need; a script may say less
MAX_CONTEXT = 2**22
REMEMBERED = 256  # prompts whose turn has been chosen

_CALLED = {"type": "function", "function": {"name": "tool", "parameters": {"type": "object", "properties": {}}}}


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: Mapping[str, Any]  # Any: JSON values; their strings may hold ${group}


@dataclass(frozen=True, slots=True)
class Turn:
    """What is written when the conversation is as `after` and `when` say."""

    says: str = ""
    calls: tuple[Call, ...] = ()
    after: str | None = None  # "user" or "tool": whose message is the last of the two kinds
    when: re.Pattern[str] | None = None  # found somewhere in the prompt's text

    def match(self, prompt: str, after: str) -> Mapping[str, str] | None:
        """Values for ${group} when this is the turn; None when it is not."""
        if self.after not in (None, after):
            return None
        if self.when is None:
            return {}
        found = self.when.search(prompt)
        if found is None:
            return None
        groups = [found.group(), *found.groups()]
        return {str(index): text or "" for index, text in enumerate(groups)} | found.groupdict("")


@dataclass(frozen=True, slots=True)
class Script:
    turns: tuple[Turn, ...]
    context: int = CONTEXT


def read_script(file: Path) -> Script:
    """Raises InvalidRequest, naming what is wrong in the file."""
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidRequest(f"{file} cannot be read as TOML ({reason(error)}); see docs/scripted-model.md") from error
    context = content.pop("context", CONTEXT)
    turns: Any = content.pop("turn", [])  # Any: what TOML says
    if content:
        raise _wrong(file, f"unknown key {next(iter(content))!r}")
    if type(context) is not int or not 1 <= context <= MAX_CONTEXT:
        raise _wrong(file, f"context must be a number of tokens up to {MAX_CONTEXT}")
    if not isinstance(turns, list) or not turns:
        raise _wrong(file, "there must be at least one [[turn]]")
    return Script(tuple(_turn(file, number, turn) for number, turn in enumerate(turns, 1)), context)


def _turn(file: Path, number: int, turn: Any) -> Turn:  # Any: what TOML says
    where = f"turn {number}"
    if not isinstance(turn, dict):
        raise _wrong(file, f"{where} is no table")
    says, after, when, calls = (turn.pop(key, None) for key in ("says", "after", "when", "calls"))
    if turn:
        raise _wrong(file, f"{where} has an unknown key {next(iter(turn))!r}")
    if after not in (None, "user", "tool"):
        raise _wrong(file, f'{where}: after must be "user" or "tool"')
    if not all(isinstance(text, str | None) for text in (says, when)):
        raise _wrong(file, f"{where}: says and when must be strings")
    try:
        pattern = None if when is None else re.compile(when, re.DOTALL)
    except re.error as error:
        raise _wrong(file, f"{where}: when is no regular expression ({error})") from error
    if calls is not None and not isinstance(calls, list):
        raise _wrong(file, f"{where}: calls must be a list")
    return Turn(says or "", tuple(_call(file, where, call) for call in calls or ()), after, pattern)


def _call(file: Path, where: str, call: Any) -> Call:  # Any: what TOML says
    if not (isinstance(call, dict) and isinstance(call.get("name"), str) and call.keys() <= {"name", "arguments"}):
        raise _wrong(file, f"{where}: a call has a name and arguments, and nothing else")
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict):
        raise _wrong(file, f"{where}: arguments must be a table")
    return Call(call["name"], arguments)


def _wrong(file: Path, what: str) -> InvalidRequest:
    return InvalidRequest(f"{file}: {what}; see docs/scripted-model.md")


def open_scripted(
    script: Script,
    folder: Path,
    name: str,
    *,
    max_batch: int = 1,
    limits: CacheLimits | None = None,
    desk: CacheDesk | None = None,
) -> MlxEngine:
    """The engine, with the tokeniser and chat template of the model in `folder`. On the engine's thread.

    `limits`: of the prefix cache, which is kept in memory alone: a script has no weights that a file could name.
    """
    from slipstream.engine.engine import MlxEngine
    from slipstream.engine.kept import MlxArrays
    from slipstream.models.scripted import scripted_target
    from slipstream.server.tokenising import FolderTokeniser
    from slipstream.store.reuse import PromptCache

    tokeniser = FolderTokeniser(folder)
    vocabulary = max(tokeniser.huggingface.get_vocab().values()) + 1
    end_ids = tuple(sorted(tokeniser.end_ids))
    target = scripted_target(Author(script, tokeniser, end_ids), vocabulary, script.context)
    info = ModelInfo(
        name=name,
        path=str(folder),
        context=script.context,
        vocabulary=vocabulary,
        drafters=(),
        dtype="float32",
        quantisation="none",
        end_ids=end_ids,
        max_batch=max_batch,
    )
    prompts = PromptCache(MlxArrays(), limits.ram_bytes) if limits and limits.ram_bytes else None
    return MlxEngine(target, {}, tokeniser, info, prompts=prompts, desk=desk)


class Author:
    """Continues ids as the script says. A pure function of them: what is written stands after the last place where
    the chat template lets the assistant begin."""

    def __init__(self, script: Script, tokeniser: FolderTokeniser, end_ids: Sequence[int]) -> None:
        self._script = script
        self._tokeniser = tokeniser
        self._end = end_ids[0]
        self._end_texts = [tokeniser.spell([token]) for token in end_ids]
        self._begins = _begins(tokeniser)
        self._leads = {
            "user": self._lead([{"role": "user", "content": "QUERY"}]),
            "tool": self._lead([{"role": "tool", "tool_call_id": "1", "content": "QUERY"}]),
        }
        self._chosen: OrderedDict[tuple[int, ...], list[int]] = OrderedDict()

    def __call__(self, ids: Sequence[int], count: int) -> list[int]:
        start = len(ids) - count
        begin = self._last_begin(ids, start)
        following: list[int] = []
        for at in range(start + 1, len(ids) + 1):
            begin = self._begin_at(ids, at) or begin
            following.append(self._end if begin is None else self._next(ids[:begin], ids[begin:at]))
        return following

    def _next(self, prompt: Sequence[int], written: Sequence[int]) -> int:
        text = self._answer(tuple(prompt))
        is_on_script = len(written) < len(text) and text[: len(written)] == list(written)
        return text[len(written)] if is_on_script else self._end

    def _last_begin(self, ids: Sequence[int], limit: int) -> int | None:
        return next((at for at in range(limit, 0, -1) if self._begin_at(ids, at)), None)

    def _begin_at(self, ids: Sequence[int], at: int) -> int | None:
        """`at`, when the answer begins there."""
        for begin in self._begins:
            if ids[at - 1] == begin[-1] and tuple(ids[max(0, at - len(begin)) : at]) == begin:
                return at
        return None

    def _answer(self, prompt: tuple[int, ...]) -> list[int]:
        if prompt in self._chosen:
            self._chosen.move_to_end(prompt)
        else:
            self._chosen[prompt] = self._write(self._tokeniser.spell(prompt))
            while len(self._chosen) > REMEMBERED:
                self._chosen.popitem(last=False)
        return self._chosen[prompt]

    def _write(self, prompt: str) -> list[int]:
        after = max(self._leads, key=lambda kind: (prompt.rfind(self._leads[kind]), kind == "tool"))
        for end in self._end_texts:
            prompt = prompt.replace(end, f" {end}")  # so that `\S+` stops before it
        for turn in self._script.turns:
            values = turn.match(prompt, after)
            if values is not None:
                return self._encode(_filled(turn.says, values), [_filled_call(call, values) for call in turn.calls])
        return []

    def _encode(self, says: str, calls: Sequence[Mapping[str, Any]]) -> list[int]:
        text = self._as_written(says, calls) if calls else says
        return self._tokeniser.huggingface.encode(text, add_special_tokens=False)

    def _as_written(self, says: str, calls: Sequence[Mapping[str, Any]]) -> str:
        """The text that this model would have written: what its template makes of an answer with these calls."""
        from slipstream.prompt import chat

        asked = [{"role": "user", "content": "x"}]
        numbered = [{"id": str(number), "type": "function", "function": call} for number, call in enumerate(calls)]
        answer = {"role": "assistant", "content": says, "tool_calls": numbered}
        before, whole = (
            self._tokeniser.spell(chat.render(self._tokeniser, messages, [_CALLED]))
            for messages in (asked, [*asked, answer])
        )
        if not whole.startswith(before):
            raise InvalidRequest("the chat template changes answers with calls; write the call's text in `says`")
        return self._cut(whole.removeprefix(before))

    def _cut(self, text: str) -> str:
        """Up to where the turn ends."""
        return text[: min((at for end in self._end_texts if (at := text.find(end)) >= 0), default=len(text))]

    def _lead(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """What the template puts before a message of this kind."""
        from slipstream.prompt import chat

        call = {"id": "1", "type": "function", "function": {"name": "tool", "arguments": {}}}
        called = {"role": "assistant", "content": "", "tool_calls": [call]}
        text = self._tokeniser.spell(
            chat.render(self._tokeniser, [{"role": "user", "content": "x"}, called, *messages], [_CALLED])
        )
        lead = text[: text.rfind("QUERY")]
        return lead[
            max((at + len(end) for end in self._end_texts if (at := lead.rfind(end)) >= 0), default=0) :
        ].strip()


def _begins(tokeniser: FolderTokeniser) -> tuple[tuple[int, ...], ...]:
    """How the template opens an answer: with and without thoughts, longest first."""
    from slipstream.prompt.abilities import abilities_of
    from slipstream.prompt.chat import switches

    asked = [{"role": "user", "content": "x"}]
    template = tokeniser.chat_template
    openings: set[tuple[int, ...]] = set()
    for thinking in (None, True, False):
        variables = switches(template, abilities_of(tokeniser), thinking, None)
        whole, asking = (
            tokeniser.huggingface.apply_chat_template(
                asked, chat_template=template, tokenize=False, add_generation_prompt=begins, **variables
            )
            for begins in (True, False)
        )
        opening = str(whole).removeprefix(str(asking))
        openings.add(tuple(tokeniser.huggingface.encode(opening, add_special_tokens=False)))
    return tuple(sorted((opening for opening in openings if opening), key=len, reverse=True))


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Each ${group} replaced; one that the expression lacks stays as it is."""
    return re.sub(r"\$\{(\w+)\}", lambda found: values.get(found[1], found[0]), text)


def _filled_call(call: Call, values: Mapping[str, str]) -> dict[str, Any]:
    return {"name": call.name, "arguments": _filled_json(call.arguments, values)}


def _filled_json(value: Any, values: Mapping[str, str]) -> Any:  # Any: a JSON value
    if isinstance(value, str):
        return _filled(value, values)
    if isinstance(value, dict):
        return {key: _filled_json(inner, values) for key, inner in value.items()}
    return [_filled_json(inner, values) for inner in value] if isinstance(value, list) else value
