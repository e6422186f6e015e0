"""Tool calls written as JSON objects: {"name": …, "arguments": {…}}, alone, in a list, or in a row."""

from __future__ import annotations

import json

from slipstream.prompt.arguments import Arguments, close, whole
from slipstream.prompt.lenient import JsonStream
from slipstream.prompt.parts import PartWriter
from slipstream.prompt.signature import Signature, Tools
from slipstream.prompt.tape import Status, Tape, marker_at, past_end, until_decided

_NAME_KEYS = ("name", "function", "tool_name", "function_name", "tool")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "params", "input", "tool_parameters")
_OTHER_KEYS = ("type", "id", "tool_call_id")


class JsonCalls:
    """Reads from behind the start marker to behind the end marker.

    `is_bare`: there is no marker, so only what is unmistakably a call is taken for one.
    """

    def __init__(self, tools: Tools, ends: tuple[str, ...] = (), *, is_bare: bool = False) -> None:
        self._tools = tools
        self._ends = ends
        self._is_bare = is_bare
        self._is_list = False
        self._envelope: _Envelope | None = None
        self._is_between = False  # a call is complete, and open until its last marker is read

    def read(self, tape: Tape, out: PartWriter) -> Status:
        return until_decided(self._step, tape, out)

    def _step(self, tape: Tape, out: PartWriter) -> Status | None:
        """One part of a call; None when the next one may be read."""
        if self._is_between:
            return self._read_between(tape, out)
        if self._envelope is None:
            return self._read_opening(tape)
        return self._read_envelope(self._envelope, tape, out)

    def _read_opening(self, tape: Tape) -> Status | None:
        tape.skip_space()
        if tape.is_empty:
            return Status.FAILED if tape.ended else Status.MORE
        char = tape.text[tape.pos]
        if char == "[" and not self._is_list:
            self._is_list = True
            tape.pos += 1
            return None
        if char != "{":
            return Status.FAILED
        self._envelope = _Envelope(self._tools, self._ends, self._is_bare)
        return None

    def _read_envelope(self, envelope: _Envelope, tape: Tape, out: PartWriter) -> Status | None:
        status = envelope.read(tape, out)
        if status is Status.MORE or status is Status.FAILED:
            return status
        if not envelope.settle(status, tape, out):
            return Status.FAILED
        if not out.is_open:  # it was cut
            return Status.DONE
        self._is_between = True
        return None

    def _read_between(self, tape: Tape, out: PartWriter) -> Status | None:
        text = tape.text
        at = tape.pos
        goes_on = self._is_list or bool(self._ends)  # another call may follow
        while True:
            if (behind := past_end(tape, at, self._ends[:1])) is None:
                return Status.MORE
            at, is_over = behind
            if is_over:
                tape.pos = at
                break
            char = text[at : at + 1]
            if char == "{" and goes_on:
                tape.pos = at
                out.end(tape.recorded())
                tape.mark()
                self._envelope = _Envelope(self._tools, self._ends, self._is_bare)
                self._is_between = False
                return None
            if char and char in ",;":
                goes_on = True
            elif char == "]" and self._is_list:
                self._is_list, goes_on = False, bool(self._ends)
                tape.pos = at + 1
            elif not (char and char in "}])" and self._ends):  # models close one bracket too many
                break
            at += 1
        out.end(tape.recorded())
        tape.mark()
        return Status.DONE


class _Envelope:
    """One call's object. The call begins once its name and the first key of its arguments are known."""

    def __init__(self, tools: Tools, stops: tuple[str, ...], is_bare: bool) -> None:
        self._tools = tools
        self._stops = stops
        self._is_bare = is_bare
        self._objects = [self._object()]  # two when the call stands in a "function" object
        self._key: str | None = None  # its value comes next
        self._value: JsonStream | None = None
        self._value_json: list[str] = []
        self._signature: Signature | None = None
        self._arguments: Arguments | None = None
        self._is_complete = False
        self._early = ""  # arguments that came before the name
        self._has_strange_keys = False

    def _object(self) -> JsonStream:
        return JsonStream(stops=self._stops, pausing=True)

    def read(self, tape: Tape, out: PartWriter) -> Status:
        while True:
            if self._arguments is not None and not self._is_complete:
                status = self._arguments.read(tape)
                self._is_complete = status is Status.DONE
                if self._arguments.is_certain:
                    if self._signature and not out.is_open:
                        out.begin(self._signature.name)
                    out.arguments(self._arguments.take())
            elif self._value is not None:
                status = self._read_value(self._value, tape, out)
            elif self._key is not None:
                status = self._begin_value(tape, out)
            else:
                status = self._read_object(tape, out)
                if status is Status.DONE and not self._objects:
                    return status
            if status is not Status.DONE:
                return status

    def settle(self, status: Status, tape: Tape, out: PartWriter) -> bool:
        """Completes or cuts the call where its object ended. False: it was no call."""
        if self._arguments is not None or out.is_open:
            was_open = out.is_open
            if was_open and self._arguments is not None and not self._is_complete:
                close(self._arguments, tape, out)
            return was_open
        is_clear = bool(self._early) or not (self._is_bare or self._has_strange_keys)  # that it has no arguments
        is_cut = status is Status.STUCK and tape.ended and tape.cut
        if self._signature is None or not is_clear or is_cut:
            return False
        has_all = status is Status.DONE or (tape.is_empty and bool(self._early))
        is_ended = has_all or bool(marker_at(tape.text, tape.pos, self._stops))
        return is_ended and self._give(self._early or "{}", out)

    def _read_object(self, tape: Tape, out: PartWriter) -> Status:
        status = self._objects[-1].read(tape)
        if status is Status.KEY:
            self._objects[-1].take_gap()
            self._key = self._objects[-1].key
            if self._key not in _NAME_KEYS + _ARGUMENT_KEYS + _OTHER_KEYS:
                if self._is_bare and not out.is_open:
                    return Status.FAILED
                self._has_strange_keys = True
            return Status.DONE
        if status is Status.DONE:
            self._objects.pop()
        return status

    def _begin_value(self, tape: Tape, out: PartWriter) -> Status:
        tape.skip_space()
        if tape.is_empty:
            return Status.STUCK if tape.ended else Status.MORE
        char = tape.text[tape.pos]
        if char == "{" and self._key == "function" and len(self._objects) == 1:
            self._key = None
            self._objects.append(self._object())
            return Status.DONE
        if char == "{" and self._key in _ARGUMENT_KEYS and self._signature and not out.is_open:
            self._key = None
            self._arguments = Arguments(self._signature, stops=self._stops)
            return Status.DONE
        self._value = JsonStream(within="}", stops=self._stops)
        self._value_json = []
        return Status.DONE

    def _read_value(self, value: JsonStream, tape: Tape, out: PartWriter) -> Status:
        status = value.read(tape)
        self._value_json.append(value.take())
        if status is Status.MORE or (status is Status.STUCK and tape.is_empty):
            return status
        if status is Status.STUCK and value.has_begun:
            value.close()
            self._value_json.append(value.take())
        text = "".join(self._value_json).strip()
        key, self._key, self._value = self._key, None, None
        if out.is_open:  # the call has begun: what else stands in it is of no use
            return Status.DONE
        if key in _NAME_KEYS and text.startswith('"'):
            self._signature = self._tools.find(json.loads(text))
            if self._signature is None:
                return Status.FAILED
            if self._early and not self._give(self._early, out):
                return Status.FAILED
        elif key in _ARGUMENT_KEYS:
            self._early = _unwrapped(text)
            if self._signature and not self._give(self._early, out):
                return Status.FAILED
        return Status.DONE

    def _give(self, value_json: str, out: PartWriter) -> bool:
        """A call whose arguments are all there."""
        assert self._signature is not None
        arguments = whole(value_json, self._signature)
        if arguments is None:
            return False
        out.begin(self._signature.name)
        out.arguments(arguments)
        return True


def _unwrapped(value_json: str) -> str:
    """Arguments may come as a string of JSON, or as nothing."""
    if value_json in ("null", "[]", '""', ""):
        return "{}"
    return json.loads(value_json) if value_json.startswith('"') else value_json
