"""How a tool call begins: a tag or a name that one pattern tells, with the name of a tool in it."""

from __future__ import annotations

import re

from slipstream.prompt.signature import Signature, Tools
from slipstream.prompt.tape import Status, Tape

TAG_LIMIT = 512  # characters; an opening is shorter


def read_opening(tape: Tape, opening: re.Pattern[str], part: re.Pattern[str], tools: Tools) -> Signature | Status:
    """The tool that the opening at the tape's position names; the tape then stands behind it.

    MORE while the text can still become one, FAILED when it cannot, or names no tool. `part`: see `may_open`.
    """
    found = opening.match(tape.text, tape.pos)
    if not found:
        return Status.MORE if may_open(tape, tape.pos, part) else Status.FAILED
    signature = tools.find(found.group("name"))
    if signature is None:
        return Status.FAILED
    tape.pos = found.end()
    return signature


def may_open(tape: Tape, pos: int, part: re.Pattern[str]) -> bool:
    """Whether the text can still become an opening. `part`: of one that is not whole."""
    is_short = len(tape.text) - pos <= TAG_LIMIT
    return is_short and not tape.ended and part.fullmatch(tape.text, pos) is not None
