"""Tool calls written as a name and its arguments: name[ARGS]{…}, call:name{…}, [name(a=1)]; and those that only
mlx-lm's own parsers know."""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import dataclass
from typing import Any

from slipstream.prompt.arguments import Arguments, read_arguments, whole
from slipstream.prompt.calls_json import JsonCalls
from slipstream.prompt.opening import may_open, read_opening
from slipstream.prompt.parts import PartWriter
from slipstream.prompt.signature import Signature, Tools
from slipstream.prompt.strings import FUNCTION_GEMMA, GEMMA, JSON, PYTHON, Dialect
from slipstream.prompt.tape import LOOKAHEAD, Markers, Status, Tape, past_end, space_end, until_decided


@dataclass(frozen=True, slots=True)
class NamedSyntax:
    opening: re.Pattern[str]  # of a call: `name`, up to the bracket of its arguments
    part_of_opening: re.Pattern[str]  # a text that can still become it
    dialect: Dialect = JSON
    after: str = ""  # what may stand behind the calls, one character each
    may_be_json: bool = False  # the family also writes JSON behind the same marker


MISTRAL = NamedSyntax(
    opening=re.compile(r"\s*(?P<name>[\w.-]+)\s*(?:\[CALL_ID\]\s*[\w-]+\s*)?(?:\[ARGS\]\s*)?(?=\{)"),
    part_of_opening=re.compile(r"\s*(?:[\w.-]+\s*(?:\[[A-Z_]*(?:\]\s*[\w-]*\s*(?:\[[A-Z]*(?:\]\s*)?)?)?)?)?"),
    may_be_json=True,
)
GEMMA_CALL = NamedSyntax(
    opening=re.compile(r"[\s,]*call:\s*(?P<name>[\w.-]+)\s*(?=\{)"),
    part_of_opening=re.compile(r"[\s,]*(?:c(?:a(?:l(?:l(?::\s*[\w.-]*\s*)?)?)?)?)?"),
    dialect=GEMMA,
)
FUNCTION_GEMMA_CALL = NamedSyntax(GEMMA_CALL.opening, GEMMA_CALL.part_of_opening, FUNCTION_GEMMA)
PYTHONIC = NamedSyntax(
    opening=re.compile(r"[\s,;]*(?:```(?:python|py)?\s)?[\s\[]*(?P<name>[A-Za-z_][\w.]*)\s*(?=\()"),
    part_of_opening=re.compile(r"[\s,;]*(?:`{1,3}|```\w*\s*)?[\s\[]*(?:[A-Za-z_][\w.]*\s*)?"),
    dialect=PYTHON,
    after="]`;",
    may_be_json=True,
)


class NamedCalls:
    """Reads from behind the start marker to behind the end marker, which may be missing."""

    def __init__(self, tools: Tools, syntax: NamedSyntax, ends: tuple[str, ...] = (), *, is_bare: bool = False) -> None:
        self._tools = tools
        self._is_bare = is_bare
        self._syntax = syntax
        self._ends = ends
        self._json: JsonCalls | None = None
        self._is_first = True
        self._signature: Signature | None = None
        self._arguments: Arguments | None = None
        self._is_between = False

    def read(self, tape: Tape, out: PartWriter) -> Status:
        return until_decided(self._step, tape, out)

    def _step(self, tape: Tape, out: PartWriter) -> Status | None:
        """One part of a call; None when the next one may be read."""
        if self._json is not None:
            return self._json.read(tape, out)
        if self._is_between:
            return self._read_between(tape, out)
        if self._arguments is None:
            return self._read_opening(tape)
        return self._read_arguments(self._arguments, tape, out)

    def _read_opening(self, tape: Tape) -> Status | None:
        text = tape.text
        if self._is_first and self._syntax.may_be_json:
            at = space_end(text, tape.pos)
            bracket = space_end(text, at + 1) if text[at : at + 1] == "[" else at
            if bracket >= len(text) and not tape.ended and bracket - tape.pos <= LOOKAHEAD:
                return Status.MORE
            if text[bracket : bracket + 1] == "{":
                self._json = JsonCalls(self._tools, self._ends, is_bare=self._is_bare)
                return None
        self._is_first = False
        found = read_opening(tape, self._syntax.opening, self._syntax.part_of_opening, self._tools)
        if isinstance(found, Status):
            return found
        self._signature = found
        self._arguments = Arguments(found, self._syntax.dialect, self._ends)
        return None

    def _read_arguments(self, arguments: Arguments, tape: Tape, out: PartWriter) -> Status | None:
        assert self._signature is not None
        if (status := read_arguments(arguments, self._signature, tape, out)) is None:
            self._arguments = None
            self._is_between = True
        return status

    def _read_between(self, tape: Tape, out: PartWriter) -> Status | None:
        text = tape.text
        at = tape.pos
        while True:
            if (behind := past_end(tape, at, self._ends[:1])) is None:
                return Status.MORE
            at, is_over = behind
            if is_over:
                tape.pos = at
                break
            if text[at : at + 1] and text[at] in self._syntax.after:
                at += 1
                tape.pos = at
                continue
            if found := self._syntax.opening.match(text, at):
                if self._tools.find(found.group("name")):
                    self._end(tape, out)
                    return None
            elif at < len(text) and may_open(tape, at, self._syntax.part_of_opening):
                return Status.MORE
            break
        self._end(tape, out)
        return Status.DONE

    def _end(self, tape: Tape, out: PartWriter) -> None:
        out.end(tape.recorded())
        tape.mark()
        self._is_between = False


class ForeignCalls:
    """Waits for the end marker and gives the body to a parser of mlx-lm. For families that no reader of ours covers."""

    def __init__(self, tools: Tools, module: str, end: str) -> None:
        self._tools = tools
        self._module = module
        self._end = end
        self._marker = Markers([end])
        self._body: list[str] = []

    def read(self, tape: Tape, out: PartWriter) -> Status:
        text, pos = tape.text, tape.pos
        found = self._marker.find(text, pos)
        stop = found.start() if found else (len(text) if tape.ended else self._marker.tail(text, pos))
        self._body.append(text[pos:stop])
        tape.pos = found.end() if found else stop
        if not found and not tape.ended:
            return Status.MORE
        if not found and tape.cut:
            return Status.FAILED
        calls = self._calls("".join(self._body))
        if not calls:
            return Status.FAILED
        for signature, arguments in calls:
            out.begin(signature.name)
            out.arguments(arguments)
            out.end(tape.recorded())  # all of it with the first: the body is not ours to divide
            tape.mark()
        return Status.DONE

    def _calls(self, body: str) -> list[tuple[Signature, str]] | None:
        """Every call of the body, or None when one of them is not right."""
        calls: list[tuple[Signature, str]] = []
        try:
            parser = importlib.import_module(f"mlx_lm.tool_parsers.{self._module}")
            parsed: Any = parser.parse_tool_call(body, self._tools.as_openai)  # Any: whatever the parser returns
            for call in parsed if isinstance(parsed, list) else [parsed]:
                signature = self._tools.find(call["name"])
                arguments = whole(json.dumps(call["arguments"]), signature) if signature else None
                if signature is None or arguments is None:
                    return None
                calls.append((signature, arguments))
        except Exception:  # a parser of another package, on text that may be anything
            return None
        return calls
