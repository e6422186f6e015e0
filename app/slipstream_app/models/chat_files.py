"""A chat as a file: Markdown to read, JSON to keep and bring back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from slipstream_app.history import History, HistoryError
from slipstream_app.messages import Attachment, Call, ChatRow, Json, Message, State

FORMAT = "slipstream-chat"
VERSION = 1


def shown_branch(history: History, chat: ChatRow) -> list[Message]:
    """From the first question to the end of the branch that is shown."""
    messages = {message.id: message for message in history.messages(chat.id)}
    branch: list[Message] = []
    at = chat.leaf
    while at is not None:
        branch.append(messages[at])
        at = messages[at].parent
    return branch[::-1]


def as_markdown(title: str, path: Sequence[Message]) -> str:
    """The branch that is shown."""
    parts = [f"# {title}"]
    for message in path:
        parts.append({"user": "## You", "assistant": "## Assistant"}.get(message.role, "## Tool"))
        parts += [f"Attached: {one.name}\n\n{_fenced(one.text)}" for one in message.attachments]
        if message.thinking:
            quoted = "\n".join(f"> {line}".rstrip() for line in message.thinking.splitlines())
            parts.append(f"> *Thought*\n>\n{quoted}")
        if message.text:
            parts.append(message.text)
        parts += [f"Tool call `{call.name}`\n\n{_fenced(call.arguments, 'json')}" for call in message.calls]
    return "\n\n".join(parts) + "\n"


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def as_json(history: History, chat: int) -> dict[str, Any]:
    """Every branch. Raises HistoryError when the chat is gone."""
    row = history.chat(chat)
    if row is None:
        raise HistoryError("this chat is gone; choose another to export")
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": row.title,
        "parameters": row.parameters,
        "leaf": row.leaf,
        "messages": [
            {
                "id": message.id,
                "parent": message.parent,
                "role": message.role,
                "text": message.text,
                "state": message.state.value,
                "thinking": message.thinking,
                "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.calls],
                "attachments": [{"name": one.name, "text": one.text} for one in message.attachments],
                "facts": message.facts,
            }
            for message in history.messages(chat)
        ],
    }


def import_json(history: History, text: str) -> int:
    """Add the chat of an exported file. All or nothing. Raises HistoryError that says what is wrong with it."""
    try:
        value: object = json.loads(text)
    except ValueError as error:
        raise HistoryError(f"this file is no JSON ({error}); choose a chat exported by Slipstream") from error
    if not isinstance(value, Mapping) or cast(Json, value).get("format") != FORMAT:
        raise HistoryError("this file is no exported chat; choose a JSON file made by Export")
    data = cast(Json, value)
    if data.get("version") != VERSION:
        raise HistoryError(f"this chat has format version {data.get('version')}; update Slipstream to read it")
    try:
        messages = [_checked(entry) for entry in data["messages"]]
        title, parameters, leaf = str(data["title"]), dict(data["parameters"]), data["leaf"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HistoryError(f"this chat is damaged ({error!r}); export it again") from error
    known: set[int] = set()
    for message in messages:
        if message.id in known or (message.parent is not None and message.parent not in known):
            raise HistoryError(f"this chat is damaged (message {message.id} has no place in it); export it again")
        known.add(message.id)
    return history.insert_chat(title, parameters, messages, leaf if leaf in known else None)


def _checked(entry: Any) -> Message:  # Any: JSON; a wrong shape raises what the caller expects
    state = State(entry["state"])
    if entry["role"] not in ("user", "assistant", "tool"):
        raise ValueError(f"role {entry['role']!r}")
    if type(entry["id"]) is not int or not isinstance(entry["text"], str) or not isinstance(entry["thinking"], str):
        raise TypeError("a message has no id or text")
    return Message(
        id=entry["id"],
        chat=0,
        parent=entry["parent"],
        role=entry["role"],
        text=entry["text"],
        state=State.INTERRUPTED if state is State.RUNNING else state,
        thinking=entry["thinking"],
        calls=tuple(Call(str(c["id"]), str(c["name"]), str(c["arguments"])) for c in entry["calls"]),
        attachments=tuple(Attachment(str(one["name"]), str(one["text"])) for one in entry["attachments"]),
        facts=dict(entry["facts"]),
    )
