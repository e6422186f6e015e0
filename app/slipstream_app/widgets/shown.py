"""A message as the transcript shows it, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from slipstream.types import Mode
from slipstream_app.messages import Message
from slipstream_app.setting import Detail


class Ask(StrEnum):
    """What the user wants done with a message."""

    EDIT = "edit"
    REGENERATE = "regenerate"  # argument: Again
    BRANCH = "branch"
    WHY = "why"
    VERIFY = "verify"
    CANCEL_VERIFY = "cancel_verify"
    WALK = "walk"  # argument: -1 or 1
    RESUME = "resume"
    STOP = "stop"
    RESULT = "result"  # argument: call id and text
    THOUGHTS = "thoughts"  # argument: whether they are open


@dataclass(frozen=True, slots=True)
class Again:
    mode: Mode | None = None
    same_seed: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as the transcript shows it."""

    message: Message
    place: tuple[int, int] = (1, 1)  # among its siblings
    results: Mapping[str, str] = field(default_factory=dict[str, str])  # of tool calls, by call id
    can_resume: bool = False
    can_verify: bool = False
    open_thoughts: bool = False
    is_dropped: bool = False  # no longer sent to the model
    detail: Detail = Detail.STANDARD
