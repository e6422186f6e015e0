"""Chats in a real database file: branches, search, undo, damage, export and import."""

from __future__ import annotations

import datetime
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from slipstream_app.history import MIGRATIONS, History, HistoryError, Problem, open_history
from slipstream_app.messages import Attachment, Call, State
from slipstream_app.models.chat_files import as_json, as_markdown, import_json
from slipstream_app.models.chat_list import ChatList, Heading


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "chats.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    history = open_history(path)
    yield history
    history.close()


def reopened(history: History, path: Path) -> History:
    history.close()
    return open_history(path)


def test_what_was_written_is_there_after_a_restart(path: Path) -> None:
    history = open_history(path)
    chat = history.create_chat("Parsers", {"temperature": 0.5})
    asked = history.add(chat, None, "user", "Write one", attachments=[Attachment("a.txt", "text")])
    facts = {"model": "m"}
    answer = history.add(chat, asked.id, "assistant", "Here", thinking="hm", calls=[Call("1", "f", "{}")], facts=facts)
    history.save(answer.id, trace={"tokens": [1, 2]})
    history = reopened(history, path)
    assert history.problem is None
    assert history.messages(chat) == [asked, answer]
    row = history.chat(chat)
    assert row is not None
    assert (row.title, row.leaf, row.parameters) == ("Parsers", answer.id, {"temperature": 0.5})
    assert history.trace(answer.id) == {"tokens": [1, 2]}
    assert history.trace(asked.id) is None
    history.close()


def test_a_message_that_was_being_written_is_marked_interrupted_and_found(path: Path) -> None:
    history = open_history(path)
    chat = history.create_chat()
    running = history.add(chat, None, "assistant", state=State.RUNNING)
    history.save(running.id, text="half an answer")
    assert history.search("answer") == []
    history = reopened(history, path)
    assert history.message(running.id).state is State.INTERRUPTED
    assert [hit.message for hit in history.search("answer")] == [running.id]
    history.close()


def test_search_finds_words_beginnings_titles_and_scripts_without_spaces(history: History) -> None:
    chat = history.create_chat("Reise nach Köln")
    text = "x" * 200 + " The quick brown fox " + "y" * 200
    english = history.add(chat, None, "user", text)
    chinese = history.add(chat, english.id, "user", "今天天气很好")
    found = history.search("quick bro")
    assert [hit.message for hit in found] == [english.id]
    assert "quick brown" in found[0].snippet
    assert found[0].snippet.startswith("…")
    assert [hit.message for hit in history.search("天气")] == [chinese.id]
    assert [(hit.chat, hit.message) for hit in history.search("koln reise")] == []
    assert [(hit.chat, hit.message) for hit in history.search("nach K")] == [(chat, None)]
    assert history.search("slow fox") == []
    assert history.search('"; DROP') == history.search("  ") == history.search("100%") == []


def test_a_changed_message_is_found_by_its_new_words_alone(history: History) -> None:
    chat = history.create_chat()
    message = history.add(chat, None, "assistant", "before")
    history.save(message.id, state=State.RUNNING)
    history.save(message.id, text="after")
    history.save(message.id, state=State.DONE)
    assert history.search("before") == []
    assert [hit.message for hit in history.search("after")] == [message.id]


def test_delete_can_be_undone_until_it_is_purged(history: History) -> None:
    chat, other = history.create_chat("one"), history.create_chat("two")
    first = history.add(chat, None, "user", "needle")
    history.add(chat, first.id, "assistant", "needle too")
    kept = history.add(other, None, "user", "needle here")
    history.delete_chat(chat)
    assert [row.id for row in history.chats()] == [other]
    assert [hit.message for hit in history.search("needle")] == [kept.id]
    history.restore_chat(chat)
    assert len(history.search("needle")) == 3
    history.delete_chat(chat)
    history.purge(chat)
    history.restore_chat(chat)
    assert history.chat(chat) is None
    assert history.messages(chat) == []
    assert [hit.message for hit in history.search("needle")] == [kept.id]


def test_a_deleted_chat_is_gone_after_a_restart(path: Path) -> None:
    history = open_history(path)
    chat = history.create_chat()
    history.add(chat, None, "user", "x")
    history.delete_chat(chat)
    history = reopened(history, path)
    history.restore_chat(chat)
    assert history.chats() == []
    history.close()


def test_a_database_of_the_first_version_is_brought_up_to_date(path: Path) -> None:
    path.parent.mkdir()
    db = sqlite3.connect(path)
    db.executescript(
        f"{MIGRATIONS[0]} PRAGMA user_version = 1; INSERT INTO chats VALUES (1, 'old', 0, 0, NULL, '{{}}', NULL);"
    )
    db.close()
    history = open_history(path)
    assert [row.title for row in history.chats()] == ["old"]
    history.set_model_defaults("m", {"seed": 3})
    assert history.model_defaults("m") == {"seed": 3}
    assert history.model_defaults("n") == {}
    history.close()


def test_damage_is_moved_aside_and_a_newer_version_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is no database" * 1000)
    history = open_history(path)
    assert history.problem is Problem.DAMAGED
    chat = history.create_chat("new")
    history = reopened(history, path)
    assert history.problem is None
    assert [row.id for row in history.chats()] == [chat]
    history.close()
    assert [file.read_bytes()[:4] for file in path.parent.glob("*damaged*")] == [b"this"]

    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 999")
    db.close()
    before = path.read_bytes()
    history = open_history(path)
    assert history.problem is Problem.NEWER
    history.create_chat("not kept")
    history.close()
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = open_history(tmp_path / "file" / "chats.db")
    assert history.problem is Problem.UNWRITABLE
    history.close()


def test_export_and_import_keep_every_branch(history: History) -> None:
    chat = history.create_chat("Title", {"seed": 1})
    asked = history.add(chat, None, "user", "q", attachments=[Attachment("f.py", "x = '```'")])
    first = history.add(chat, asked.id, "assistant", "a1", thinking="why\n\nso")
    history.add(chat, asked.id, "assistant", "a2", calls=[Call("c", "look", '{"x": 1}')])
    history.set_leaf(chat, first.id)
    exported = json.dumps(as_json(history, chat))
    copy = import_json(history, exported)
    assert copy != chat

    def shape(one: int) -> object:
        data = as_json(history, one)
        ids = {message["id"]: at for at, message in enumerate(data["messages"])}
        messages = [m | {"id": ids[m["id"]], "parent": ids.get(m["parent"])} for m in data["messages"]]
        return data | {"messages": messages, "leaf": ids[data["leaf"]]}

    assert shape(copy) == shape(chat)
    text = as_markdown("Title", [asked, first])
    assert "````\nx = '```'\n````" in text
    assert "> why\n>\n> so" in text
    assert text.endswith("a1\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "no JSON"),
        ("[]", "no exported chat"),
        ('{"format": "slipstream-chat", "version": 2}', "update"),
        ('{"format": "slipstream-chat", "version": 1, "title": "t"}', "damaged"),
    ],
)
def test_a_file_that_is_no_chat_is_refused_and_adds_nothing(history: History, text: str, says: str) -> None:
    with pytest.raises(HistoryError, match=says):
        import_json(history, text)
    assert history.chats() == []


def test_a_chat_whose_messages_have_no_parent_is_refused(history: History) -> None:
    chat = history.create_chat("t")
    history.add(chat, None, "user", "q")
    data = as_json(history, chat)
    data["messages"][0]["parent"] = 99
    with pytest.raises(HistoryError, match="no place"):
        import_json(history, json.dumps(data))
    assert len(history.chats()) == 1


def test_chats_stand_under_the_day_they_were_last_used(history: History, qapp: object) -> None:
    now = datetime.datetime.now().replace(hour=12)
    for days in (40, 20, 7, 3, 1, 0, 0):
        chat = history.create_chat(f"{days} days ago")
        at = (now - datetime.timedelta(days=days)).timestamp()
        history._db.execute("UPDATE chats SET updated_s = ? WHERE id = ?", (at, chat))
    rows = [row.age.name if isinstance(row, Heading) else row.title for row in ChatList(history).rows]
    assert rows == [
        *("TODAY", "0 days ago", "0 days ago", "YESTERDAY", "1 days ago", "WEEK", "3 days ago", "7 days ago"),
        *("MONTH", "20 days ago", "OLDER", "40 days ago"),
    ]


def test_what_fails_is_undone_as_a_whole(history: History) -> None:
    chat = history.create_chat("c")
    asked = history.add(chat, None, "user", "q")
    with pytest.raises(TypeError):
        history.save(asked.id, text="new", trace={"tokens": object()})
    assert history.message(asked.id).text == "q"
    assert history.add(chat, asked.id, "assistant", "a").parent == asked.id, "it can be written to again"
