"""The arguments of one call: an object typed by the tool's signature, written as strict JSON as it comes."""

from __future__ import annotations

from slipstream.prompt.lenient import JsonStream
from slipstream.prompt.parts import PartWriter
from slipstream.prompt.signature import ANY, Kinds, Signature, fit
from slipstream.prompt.strings import JSON, Dialect
from slipstream.prompt.tape import Status, Tape


class Arguments:
    """Reads an object off a tape; `take` gives its JSON so far, `close` writes what is missing at its end."""

    def __init__(self, signature: Signature, dialect: Dialect = JSON, stops: tuple[str, ...] = ()) -> None:
        self.is_certain = False  # it has a first key, or is empty
        self._signature = signature
        self._dialect = dialect
        self._stops = stops
        self._object = JsonStream(dialect, stops=stops, pausing=True)
        self._value: JsonStream | None = None
        self._kinds: Kinds = ANY
        self._before = ""  # comma, key and colon: written once the value begins
        self._held: list[str] | None = None  # a value whose type must change: written when it is whole
        self._out: list[str] = []

    def take(self) -> str:
        out = "".join(self._out)
        self._out.clear()
        return out

    def read(self, tape: Tape) -> Status:
        """DONE, MORE, or STUCK where the object does not go on."""
        while True:
            if self._value is not None:
                status = self._value.read(tape)
                self._pass_on(self._value)
                if status is Status.MORE:
                    return status
                if status is Status.STUCK and not self._skip_value(tape, self._value):
                    return status
                self._end_value()
            status = self._object.read(tape)
            self._out.append(self._object.take())
            if status is Status.KEY:
                self._before = self._object.take_gap()
                self._kinds = self._signature.kinds(self._object.key) or ANY
                within = ")" if self._dialect.parens else "}"
                self._value = JsonStream(self._dialect, within=within, stops=self._stops)
                self._value.has_bare_keys = self._object.has_bare_keys
                self.is_certain = True
                continue
            self.is_certain = self.is_certain or status is Status.DONE
            return status

    def close(self) -> None:
        if self._value is not None:
            if self._value.has_begun:
                self._value.close()
                self._pass_on(self._value)
            self._end_value()
        self._object.close()
        self._out.append(self._object.take())

    def _pass_on(self, value: JsonStream) -> None:
        text = value.take()
        if not text:
            return
        if self._before:
            is_text = text.lstrip()[0] == '"'
            is_scalar = text.lstrip()[0] not in '"{['
            changes = is_scalar or (is_text and "string" not in self._kinds)
            self._held = [] if self._kinds and changes else None
            self._out.append(self._before)
            self._before = ""
        (self._out if self._held is None else self._held).append(text)

    def _skip_value(self, tape: Tape, value: JsonStream) -> bool:
        """Whether the object goes on behind a value that did not end well, or is missing."""
        if tape.is_empty:
            return False
        if value.has_begun:
            value.close()
            self._pass_on(value)
            return True
        if tape.text[tape.pos] in ",})":
            self._out.append(self._before + "null")
            self._before = ""
            return True
        return False

    def _end_value(self) -> None:
        if self._held is not None:
            text = "".join(self._held)
            value = text.strip()
            at = text.index(value)
            self._out += [text[:at], fit(value, self._kinds), text[at + len(value) :]]
        self._value = self._held = None
        self._before = ""


def read_arguments(arguments: Arguments, signature: Signature, tape: Tape, out: PartWriter) -> Status | None:
    """Reads a call's arguments and writes them as far as they are certain; the call begins with the first of them.

    None: they are complete. DONE: they were cut, with the text. FAILED: they are no arguments.
    """
    status = arguments.read(tape)
    if not arguments.is_certain:
        return Status.MORE if status is Status.MORE else Status.FAILED
    if not out.is_open:
        out.begin(signature.name)
    out.arguments(arguments.take())
    if status is Status.MORE:
        return status
    return Status.DONE if status is Status.STUCK and close(arguments, tape, out) else None


def close(arguments: Arguments, tape: Tape, out: PartWriter) -> bool:
    """Writes what is missing where arguments do not go on. Whether they were cut, with the text."""
    arguments.close()
    is_cut = tape.ended and tape.cut
    if is_cut:
        cut(arguments.take(), tape, out)
    else:
        out.arguments(arguments.take())
    return is_cut


def cut(missing: str, tape: Tape, out: PartWriter) -> None:
    """The text ends within a call. `missing`: at the end of its arguments."""
    tape.pos = len(tape.text)
    out.cut(missing, tape.recorded())
    tape.mark()


def whole(value_json: str, signature: Signature) -> str | None:
    """Arguments that are all there as JSON text; None when they are no object."""
    tape = Tape()
    tape.feed(value_json)
    tape.end(cut=False)
    arguments = Arguments(signature)
    status = arguments.read(tape)
    if status is Status.STUCK:
        arguments.close()
    text = arguments.take()
    return text if text.startswith("{") else None
