"""What is kept of chats, as values, and how each stands in a row of the database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = Mapping[str, Any]  # Any: a JSON object


class State(StrEnum):
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"  # by the user
    INTERRUPTED = "interrupted"  # the program ended in the middle
    FAILED = "failed"  # the engine said why: `facts["error"]`


@dataclass(frozen=True, slots=True)
class Attachment:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the model made it. `arguments` is JSON text, cut short where the answer was."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    id: int
    chat: int
    parent: int | None
    role: str  # user, assistant, or tool: the result of the call `facts["call_id"]`
    text: str
    state: State = State.DONE
    created_s: float = 0.0
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    facts: Json = field(default_factory=dict[str, Any])  # model, options, timings, verdict: what the strip shows

    @property
    def seed(self) -> int | None:
        """Of an answer, as it was drawn or asked for."""
        seed: object = self.facts.get("options", {}).get("seed")
        return seed if isinstance(seed, int) else None


@dataclass(frozen=True, slots=True)
class ChatRow:
    id: int
    title: str
    updated_s: float
    leaf: int | None
    parameters: Json


@dataclass(frozen=True, slots=True)
class Hit:
    """A message in which all words were found; `message` is None when it was the title."""

    chat: int
    title: str
    message: int | None
    snippet: str
    updated_s: float


TITLE = 60  # characters of the first question


def title_of(text: str) -> str:
    """What a chat that begins so is called; empty where there is no word."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE else line[: TITLE - 1].rstrip() + "…"


COLUMNS = "id, chat, parent, role, text, state, created_s, thinking, calls, attachments, facts"


def chat_of(row: Sequence[Any]) -> ChatRow:
    identity, title, updated_s, leaf, parameters = row
    return ChatRow(identity, title, updated_s, leaf, {} if parameters == "{}" else json.loads(parameters))


def message_of(row: Sequence[Any]) -> Message:
    identity, chat, parent, role, text, state, created_s, thinking, calls, attachments, facts = row
    return Message(
        identity, chat, parent, role, text, State(state), created_s, thinking,
        tuple(Call(**call) for call in json.loads(calls)) if calls else (),
        tuple(Attachment(**one) for one in json.loads(attachments)) if attachments else (),
        json.loads(facts) if facts else {},
    )  # fmt: skip


def calls_text(calls: Sequence[Call]) -> str | None:
    return json.dumps([{"id": c.id, "name": c.name, "arguments": c.arguments} for c in calls]) if calls else None


def attachments_text(attachments: Sequence[Attachment]) -> str | None:
    return json.dumps([{"name": one.name, "text": one.text} for one in attachments]) if attachments else None


def json_text(value: Json | None) -> str | None:
    return json.dumps(value) if value else None
