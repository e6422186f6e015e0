"""Tool calls written as tags: <function=name><parameter=key>value</parameter></function> and its relatives.

A value is text, not markup. A parameter that is a string is streamed as it comes; any other waits for its type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from slipstream.prompt.arguments import Arguments, cut, read_arguments
from slipstream.prompt.opening import TAG_LIMIT, may_open, read_opening
from slipstream.prompt.parts import PartWriter
from slipstream.prompt.signature import STRING, Kinds, Signature, Tools, coerce
from slipstream.prompt.strings import escape, quote
from slipstream.prompt.tape import LOOKAHEAD, Status, Tape, closing_at, marker_at, space_end

_CDATA = "<![CDATA["
_newline = re.compile(r"\r?\n").match


@dataclass(frozen=True, slots=True)
class XmlSyntax:
    opening: re.Pattern[str]  # of a call: `name`
    part_of_opening: re.Pattern[str]  # a text that can still become it
    parameter: re.Pattern[str]  # its opening tag: `key`
    part_of_parameter: re.Pattern[str]
    parameter_starts: tuple[str, ...]  # what that begins with
    parameter_ends: tuple[str, ...]
    closing: str  # of a call; "" where the wrapper's end closes it
    end: str  # of the wrapper, which may be missing; "" where there is none
    has_newlines: bool = False  # the template puts a newline before and after each value
    has_cdata: bool = False


def _tags(call: str, parameters: tuple[str, ...], end: str, **more: bool) -> XmlSyntax:
    """<call=name> or <call name="name">, and the same for its parameters."""
    named = r"""(?: ?=| name ?=) ?["']?"""
    return XmlSyntax(
        opening=re.compile(rf"\s*<{call}{named}" + r"""(?P<name>[\w.:/-]{1,128})["']?\s*>"""),
        part_of_opening=re.compile(
            r"\s*" + _part_of(f"<{call}", r"""(?: (?:n(?:a(?:me?)?)?)? ?)?(?:= ?["']?[\w.:/-]*["']?\s*)?""")
        ),
        parameter=re.compile(
            f"<(?:{'|'.join(parameters)}){named}" + r"""(?P<key>[^"'<>=\s]{1,128})["']?(?: [^<>\n]{0,128})?>"""
        ),
        part_of_parameter=re.compile(r"<[^<>\n]*"),
        parameter_starts=tuple(f"<{name}{rest}" for name in parameters for rest in ("=", " ")),
        parameter_ends=tuple(f"</{name}>" for name in parameters),
        closing=f"</{call}>",
        end=end,
        **more,
    )


def _pairs(prefix: str) -> XmlSyntax:
    """<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>"""
    key, value = f"{prefix}arg_key", f"{prefix}arg_value"
    end = f"</{prefix}tool_call>"
    return XmlSyntax(
        opening=re.compile(rf"\s*(?P<name>[\w.:/-]{{1,128}})\s*(?=<{key}>|{end})"),
        part_of_opening=re.compile(r"\s*[\w.:/-]*\s*(?:</?[a-z_]*)?"),
        parameter=re.compile(rf"<{key}>\s*(?P<key>[^<>]{{0,128}}[^<>\s])\s*</{key}>\s*<{value}>"),
        part_of_parameter=re.compile(r"</?[a-z_]*(?:>[^<>]*(?:</?[a-z_]*(?:>\s*(?:<[a-z_]*)?)?)?)?"),
        parameter_starts=(f"<{key}>",),
        parameter_ends=(f"</{value}>",),
        closing="",
        end=end,
    )


def _part_of(word: str, rest: str) -> str:
    """A pattern of every beginning of the word, and of the whole word with the rest."""
    return "".join(f"(?:{re.escape(char)}" for char in word) + rest + ")?" * len(word)


QWEN = _tags("function", ("parameter", "param"), "</tool_call>", has_newlines=True)
MINICPM = _tags("function", ("param", "parameter"), "", has_cdata=True)
MINIMAX = _tags("invoke", ("parameter",), "</minimax:tool_call>")
MUSE = _tags("atem:invoke", ("atem:parameter",), "</atem:function_calls>")
GLM = _pairs("")
LONGCAT = _pairs("longcat_")


class XmlCalls:
    """Reads from before the opening tag of the first call to behind the wrapper's end."""

    def __init__(self, tools: Tools, syntax: XmlSyntax) -> None:
        self._tools = tools
        self._syntax = syntax
        self._signature: Signature | None = None
        self._count = 0  # parameters of this call
        self._value: _Value | None = None
        self._json: Arguments | None = None  # <function=name>{…}</function>
        self._is_between = False
        closing = (syntax.closing, syntax.end)
        self._closings = tuple(marker for marker in closing if marker)

    def read(self, tape: Tape, out: PartWriter) -> Status:
        while True:
            if self._is_between:
                status = self._read_between(tape, out)
            elif self._signature is None:
                status = self._read_opening(tape)
            elif self._json is not None:
                status = self._read_json(self._json, tape, out)
            elif self._value is not None:
                status = self._read_value(self._value, tape, out)
            else:
                status = self._read_body(self._signature, tape, out)
            if status is not None:
                return status

    def _read_opening(self, tape: Tape) -> Status | None:
        found = read_opening(tape, self._syntax.opening, self._syntax.part_of_opening, self._tools)
        if isinstance(found, Status):
            return found
        self._signature = found
        self._count = 0
        return None

    def _read_body(self, signature: Signature, tape: Tape, out: PartWriter) -> Status | None:
        """Between the opening tag, the parameters and the closing tag."""
        text = tape.text
        at = space_end(text, tape.pos)
        if at >= len(text):
            if not tape.ended and at - tape.pos <= LOOKAHEAD:
                return Status.MORE
            return self._leave(tape, out)
        closing = marker_at(text, at, self._closings, tape.ended)
        if found := self._syntax.parameter.match(text, at):
            self._begin(signature, out)
            key = found.group("key")
            before = f"{', ' if self._count else '{'}{quote(key)}: "
            kinds = signature.kinds(key)
            self._value = _Value(self._syntax, STRING if kinds is None else kinds, before)
            self._count += 1
            tape.pos = found.end()
        elif closing:
            self._begin(signature, out)
            out.arguments("}" if self._count else "{}")
            tape.pos = at  # the closing tags are read between calls
            self._is_between = True
        elif text[at] == "{" and not self._count and self._syntax.closing:
            self._json = Arguments(signature, stops=self._closings)
            tape.pos = at
        else:
            is_part = closing == "" or self._syntax.part_of_parameter.fullmatch(text, at)
            waits = is_part and len(text) - at <= TAG_LIMIT and not tape.ended
            return Status.MORE if waits else self._leave(tape, out)
        return None

    def _begin(self, signature: Signature, out: PartWriter) -> None:
        if not out.is_open:
            out.begin(signature.name)

    def _leave(self, tape: Tape, out: PartWriter) -> Status | None:
        """The call does not go on here."""
        if not out.is_open:
            return Status.FAILED
        if tape.ended:  # what is left can only be half a tag
            tape.pos = len(tape.text)
            if tape.cut:
                cut("}", tape, out)
                return Status.DONE
        out.arguments("}")
        self._is_between = True
        return None

    def _read_value(self, value: _Value, tape: Tape, out: PartWriter) -> Status | None:
        status = value.read(tape)
        out.arguments(value.take())
        if status is Status.MORE:
            return status
        if status is Status.STUCK and tape.cut:
            cut(value.close() + "}", tape, out)
            return Status.DONE
        out.arguments(value.close())
        self._value = None
        return None

    def _read_json(self, arguments: Arguments, tape: Tape, out: PartWriter) -> Status | None:
        assert self._signature is not None
        if (status := read_arguments(arguments, self._signature, tape, out)) is None:
            self._json = None
            self._is_between = True
        return status

    def _read_between(self, tape: Tape, out: PartWriter) -> Status | None:
        """Behind a call: the wrapper's end, another call in the wrapper, or neither."""
        text = tape.text
        at = space_end(text, tape.pos)
        if at >= len(text) and not tape.ended and at - tape.pos <= LOOKAHEAD:
            return Status.MORE
        closing = closing_at(tape, at, self._closings)
        if closing == "":
            return Status.MORE
        if closing:
            tape.pos = at + len(closing)
            if closing != self._syntax.end:
                return None
        elif self._syntax.end and self._syntax.closing:
            if found := self._syntax.opening.match(text, at):
                if self._tools.find(found.group("name")):
                    tape.pos = at
                    self._end(tape, out)
                    return None
            elif may_open(tape, at, self._syntax.part_of_opening):
                return Status.MORE
        self._end(tape, out)
        return Status.DONE

    def _end(self, tape: Tape, out: PartWriter) -> None:
        out.end(tape.recorded())
        tape.mark()
        self._signature = None
        self._is_between = False


class _Value:
    """One parameter's text, from behind its opening tag to behind its closing tag."""

    def __init__(self, syntax: XmlSyntax, kinds: Kinds, before: str) -> None:
        self._syntax = syntax
        self._kinds = kinds
        outer_ends = tuple(marker for marker in (syntax.closing, syntax.end) if marker)
        outer_starts = tuple(end.replace("</", "<").rstrip(">") for end in outer_ends)
        self._ends = syntax.parameter_ends + outer_ends
        self._after_call = outer_ends + outer_starts
        self._after_value = syntax.parameter_starts + self._after_call
        self._out = [before]
        self._held: list[str] | None = None if kinds == STRING else []
        self._may_be_null = kinds == frozenset({"string", "null"})
        self._is_first = True
        self._is_cdata = False
        if self._held is None:
            self._out.append('"')

    def take(self) -> str:
        out = "".join(self._out)
        self._out.clear()
        return out

    def close(self) -> str:
        """What is missing at the end of the value's JSON."""
        return '"' if self._held is None else coerce("".join(self._held), self._kinds)

    def read(self, tape: Tape) -> Status:
        """DONE behind the closing tag, MORE, or STUCK at the end of the text."""
        if self._is_first and not self._read_first(tape):
            return Status.MORE
        while True:
            text, pos = tape.text, tape.pos
            at = text.find("]" if self._is_cdata else "<", pos)
            end = None
            if at >= 0:
                end = self._cdata_end(tape, at) if self._is_cdata else self._end(tape, at)
            if end is None:
                return self._wait(tape, at if at >= 0 else len(text))
            if end >= 0:
                self._put(self._trimmed(text[pos:at]))
                tape.pos = end
                return Status.DONE
            self._put(text[pos : at + 1])
            tape.pos = at + 1

    def _read_first(self, tape: Tape) -> bool:
        """The newline that the template puts before a value is not part of it. False: undecided."""
        text, pos = tape.text, tape.pos
        if self._syntax.has_newlines:
            if text[pos:] in ("", "\r") and not tape.ended:
                return False
            if found := _newline(text, pos):
                tape.pos = found.end()
        if self._syntax.has_cdata:
            at = space_end(text, pos)
            found = marker_at(text, at, (_CDATA,), tape.ended)
            if found == "" and at - pos <= LOOKAHEAD:
                return False
            if found:
                self._is_cdata = True
                tape.pos = at + len(_CDATA)
        self._is_first = False
        return True

    def _wait(self, tape: Tape, end: int) -> Status:
        """Takes what is certain to be value: up to `end`, where there may be a tag, less a newline before it."""
        if tape.ended:
            self._put(self._trimmed(tape.text[tape.pos :]))
            tape.pos = len(tape.text)
            return Status.STUCK
        text = self._trimmed(tape.text[tape.pos : end])
        if self._syntax.has_newlines and text.endswith("\r"):
            text = text[:-1]
        if text:
            self._put(text)
            tape.pos += len(text)
        return Status.MORE

    def _trimmed(self, text: str) -> str:
        if not self._syntax.has_newlines:
            return text
        return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")

    def _put(self, text: str) -> None:
        if self._held is None:
            self._out.append(escape(text))
            return
        self._held.append(text)
        if self._may_be_null and not "null".startswith((held := "".join(self._held)).strip()):
            self._held = None
            self._out.append('"' + escape(held))

    def _end(self, tape: Tape, at: int) -> int | None:
        """Where the closing tag at `at` ends; -1 when none stands here; None when that is open.

        A closing tag inside a value is not followed by what must follow one. Where the value's own is missing,
        that of the call ends it, and is left to be read.
        """
        text = tape.text
        found = marker_at(text, at, self._ends, tape.ended)
        if not found:
            return None if found == "" else -1
        is_own = found in self._syntax.parameter_ends
        end = at + len(found)
        after = space_end(text, end)
        if after >= len(text):
            return None if not tape.ended and after - end <= LOOKAHEAD else (end if is_own else at)
        follower = marker_at(text, after, self._after_value if is_own else self._after_call, tape.ended)
        if not follower:
            return None if follower == "" else -1
        return end if is_own else at

    def _cdata_end(self, tape: Tape, at: int) -> int | None:
        text = tape.text
        found = marker_at(text, at, ("]]>",), tape.ended)
        if not found:
            return None if found == "" else -1
        after = space_end(text, at + len(found))
        closing = marker_at(text, after, self._syntax.parameter_ends, tape.ended)
        if tape.ended and after >= len(text):
            return after
        if not closing:
            return None if closing == "" else -1
        return after + len(closing)
