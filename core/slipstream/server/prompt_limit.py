"""What happens to a conversation that is longer than the model's context. Never silently: whatever was dropped is said
in the answer, its header, the log and the list of requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from slipstream.server.fields import Fields

Message = Mapping[str, Any]  # Any: a JSON object, in the form of `prompt/chat.py`

LEAST_ANSWER = 4  # once turns are dropped, so many parts of the context are left for the answer: 1 of 4


class PromptLimit(StrEnum):
    REFUSE = "refuse"  # with the prompt's length: agents then compact their conversation themselves
    DROP_OLDEST = "drop_oldest"  # leave out the oldest turns; instructions and the last turn always stay


def read_limit(fields: Fields) -> PromptLimit | None:
    """From the request's own `slipstream` object. None: as the server has it. Raises InvalidRequest."""
    own = fields.object("slipstream")
    found = None if own is None else own.one_of("prompt_limit", *(limit.value for limit in PromptLimit))
    return None if found is None else PromptLimit(found)


def room_for_prompt(context: int, max_tokens: int) -> int:
    """Tokens that a shortened prompt may have: more than one too many go, so that the next turns need no cut."""
    return context - min(max_tokens, context // LEAST_ANSWER)


def drop_oldest(messages: Sequence[Message], fits: Callable[[Sequence[Message]], bool]) -> Sequence[Message] | None:
    """All instructions and as many of the newest turns as fit. None when not even the last turn does.

    A turn is what a user says, all up to a model's next words included, and all up to what the user says then; one
    whose tools are answered later goes with its answers. What follows a tool's result at once is no turn of its own:
    agents put reminders there, and the task stands further up.
    """
    cuts = _cuts(messages)
    if not cuts or not fits(_from(messages, cuts[-1])):
        return None
    low, high = 0, len(cuts) - 1
    while low < high:  # fewer turns have fewer tokens
        middle = (low + high) // 2
        if fits(_from(messages, cuts[middle])):
            high = middle
        else:
            low = middle + 1
    return _from(messages, cuts[low])


def _from(messages: Sequence[Message], cut: int) -> list[Message]:
    """What stays of a conversation that begins at a cut."""
    return [*(message for message in messages[:cut] if message["role"] == "system"), *messages[cut:]]


def _cuts(messages: Sequence[Message]) -> list[int]:
    """Where the part that is kept may begin, oldest first: at a user's message behind a model's, with no answer to a
    call before it."""
    cuts: list[int] = []
    unasked: set[object] = set()  # answers to calls that were not met yet, going backwards
    user = 0  # the earliest message of the user's since the model's
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        match message["role"]:
            case "user":
                user = at
            case "tool":
                unasked.add(message.get("tool_call_id"))
                user = 0
            case "assistant":
                if user and not unasked:
                    cuts.append(user)
                user = 0
                unasked -= {call.get("id") for call in message.get("tool_calls") or ()}
            case _:
                pass
    return cuts[::-1]
