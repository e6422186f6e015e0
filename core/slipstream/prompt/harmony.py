"""gpt-oss's channels: <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…"""

from __future__ import annotations

import re

from slipstream.prompt.arguments import Arguments
from slipstream.prompt.parts import PartWriter
from slipstream.prompt.signature import Tools
from slipstream.prompt.tape import Markers, Status, Tape, marker_at, space_end

HEADER_LIMIT = 512

_OPENING = ("<|start|>", "<|channel|>", "<|message|>")
_BODY_ENDS = ("<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>")
_ends = Markers(_BODY_ENDS)
_message = Markers(["<|message|>"])
_recipient = re.compile(r"\bto=([^\s<]+)").search
_channel = re.compile(r"<\|channel\|>\s*(\w+)").search


class Harmony:
    """Reads the whole answer, message after message. The end tokens may be missing, as they stop the generation."""

    def __init__(self, tools: Tools, opens_in_thinking: bool) -> None:
        self._tools = tools
        self._body: str | None = "analysis" if opens_in_thinking else None  # the channel being read
        self._arguments: Arguments | None = None
        self._name = ""

    def read(self, tape: Tape, out: PartWriter) -> Status:
        while True:
            if self._arguments is not None:
                status = self._read_arguments(self._arguments, tape, out)
            elif self._body is not None:
                status = self._read_body(self._body, tape, out)
            else:
                status = self._read_header(tape, out)
            if status is not None:
                return status

    def _read_header(self, tape: Tape, out: PartWriter) -> Status | None:
        tape.mark()
        text = tape.text
        at = space_end(text, tape.pos)
        if at >= len(text):
            return self._rest(tape, out)
        opening = marker_at(text, at, (*_OPENING, *_BODY_ENDS), tape.ended)
        if opening == "":
            return Status.MORE
        if opening not in _OPENING:
            if opening is None:
                self._body = "final"  # no header: an answer
            else:
                tape.pos = at + len(opening)
            return None
        found = _message.find(text, at)
        if not found:
            is_over = tape.ended or len(text) - at > HEADER_LIMIT
            return self._give_up(tape, out) if is_over else Status.MORE
        tape.pos = found.end()
        self._begin_message(text[at : found.start()], tape, out)
        return None

    def _begin_message(self, header: str, tape: Tape, out: PartWriter) -> None:
        recipient = _recipient(header)
        channel = _channel(header)
        signature = self._tools.find(recipient.group(1)) if recipient else None
        if signature:
            self._name = signature.name
            self._arguments = Arguments(signature, stops=_BODY_ENDS)
        elif recipient:  # a tool that nobody offered
            self._body = "final"
            out.content(tape.recorded())
        else:
            self._body = channel.group(1) if channel else "final"
            out.marker()

    def _read_body(self, channel: str, tape: Tape, out: PartWriter) -> Status | None:
        text, pos = tape.text, tape.pos
        found = _ends.find(text, pos)
        stop = found.start() if found else (len(text) if tape.ended else _ends.tail(text, pos))
        (out.thinking if channel == "analysis" else out.content)(text[pos:stop])
        tape.pos = stop
        if not found:
            return Status.DONE if tape.ended else Status.MORE
        out.marker()
        self._body = None
        return None

    def _read_arguments(self, arguments: Arguments, tape: Tape, out: PartWriter) -> Status | None:
        status = arguments.read(tape)
        if arguments.is_certain:
            if not out.is_open:
                out.begin(self._name)
            out.arguments(arguments.take())
        if status is Status.MORE:
            return status
        if not out.is_open:
            return self._give_up(tape, out)
        if status is Status.STUCK:
            arguments.close()
            if tape.ended and tape.cut:
                tape.pos = len(tape.text)
                out.cut(arguments.take(), tape.recorded())
                return Status.DONE
            out.arguments(arguments.take())
        at = space_end(tape.text, tape.pos)
        end = marker_at(tape.text, at, _BODY_ENDS, tape.ended)
        if end == "":
            return Status.MORE
        if end in ("<|call|>", "<|end|>"):
            tape.pos = at + len(end)
        out.end(tape.recorded())
        tape.mark()
        self._arguments = None
        return None

    def _rest(self, tape: Tape, out: PartWriter) -> Status:
        if not tape.ended:
            return Status.MORE
        out.content(tape.text[tape.pos :])
        tape.pos = len(tape.text)
        return Status.DONE

    def _give_up(self, tape: Tape, out: PartWriter) -> Status | None:
        """What stands since the header is text."""
        tape.rewind()
        out.content(tape.text[0:1])
        tape.pos = 1
        self._arguments = None
        self._body = "final"
        return None
