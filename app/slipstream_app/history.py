"""Chats on disk: SQLite with a row per message, so that a kill loses nothing that was finished. No Qt, one thread.

Messages form a tree: an edit or a new answer is a sibling, never a replacement. `chats.leaf` names the end of the
branch that is shown. Message text is in the search index unless it is still being written.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import threading
import time
import zlib
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from slipstream_app.messages import (
    COLUMNS,
    Attachment,
    Call,
    ChatRow,
    Hit,
    Json,
    Message,
    State,
    attachments_text,
    calls_text,
    chat_of,
    json_text,
    message_of,
)

logger = logging.getLogger(__name__)

CHECKPOINT_BYTES = 4 * 1024 * 1024  # of the write-ahead log, from which on it is copied into the database
SNIPPET = 80  # characters around a word that was found


class HistoryError(Exception):
    """What cannot be read, and what to do. `str` is a sentence."""


class Problem(StrEnum):
    """Why the usual database is not in use."""

    DAMAGED = "damaged"  # it was moved aside, and a new one begun
    NEWER = "newer"  # made by a newer version: nothing is kept until the program is updated
    UNWRITABLE = "unwritable"  # nothing can be kept


# Each script brings the database from its index to the next `user_version`. Append only.
MIGRATIONS = (
    """
    CREATE TABLE chats (
        id INTEGER PRIMARY KEY, title TEXT NOT NULL, created_s REAL NOT NULL, updated_s REAL NOT NULL,
        leaf INTEGER, parameters TEXT NOT NULL, deleted_s REAL
    );
    CREATE INDEX chats_by_time ON chats (updated_s);
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY, chat INTEGER NOT NULL REFERENCES chats ON DELETE CASCADE,
        parent INTEGER REFERENCES messages, role TEXT NOT NULL, text TEXT NOT NULL, state TEXT NOT NULL,
        created_s REAL NOT NULL, thinking TEXT NOT NULL, calls TEXT, attachments TEXT, facts TEXT
    );
    CREATE INDEX messages_by_chat ON messages (chat);
    CREATE INDEX messages_by_parent ON messages (parent);
    CREATE INDEX messages_running ON messages (state) WHERE state = 'running';
    CREATE TABLE traces (message INTEGER PRIMARY KEY REFERENCES messages ON DELETE CASCADE, data BLOB NOT NULL);
    CREATE VIRTUAL TABLE found USING fts5 (
        text, content='', prefix='2 3 4 5', tokenize='unicode61 remove_diacritics 2'
    );
    """,
    # Defaults that the user saved for a model.
    "CREATE TABLE model_defaults (model TEXT PRIMARY KEY, parameters TEXT NOT NULL);",
)


class History:
    """Use `open_history`. Every method commits before it returns."""

    def __init__(self, path: Path | None, problem: Problem | None = None) -> None:
        """`path` None: in memory. Raises sqlite3.DatabaseError, and HistoryError for a database of a newer version."""
        self.problem = problem
        self._path = path
        self._checkpointer: threading.Thread | None = None
        self._db = sqlite3.connect(":memory:" if path is None else path, isolation_level=None)
        with ExitStack() as on_failure:
            on_failure.callback(self._db.close)
            self._prepare()
            on_failure.pop_all()

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        # A commit is safe from a kill at once, and waits for no disk; copying the log back is `_checkpoint`'s.
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA wal_autocheckpoint = 0")
        self._db.execute("PRAGMA busy_timeout = 2000")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise HistoryError("the chats were written by a newer version of Slipstream; update it to read them")
        for number, script in enumerate(MIGRATIONS[version:], version + 1):
            self._db.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")
        self._db.execute("PRAGMA foreign_keys = ON")
        for (message,) in self._db.execute("SELECT id FROM messages WHERE state = 'running'").fetchall():
            self.save(message, state=State.INTERRUPTED)
        self.purge()

    def close(self) -> None:
        if self._checkpointer is not None:
            self._checkpointer.join()
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()

    @contextmanager
    def _transaction(self) -> Generator[None]:
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:  # commits, or rolls back after an error
            yield

    # Chats.

    def chats(self) -> list[ChatRow]:
        """Newest first."""
        rows = self._db.execute(
            "SELECT id, title, updated_s, leaf, parameters FROM chats WHERE deleted_s IS NULL "
            "ORDER BY updated_s DESC, id DESC"
        )
        return [chat_of(row) for row in rows]

    def chat(self, chat: int) -> ChatRow | None:
        row = self._db.execute(
            "SELECT id, title, updated_s, leaf, parameters FROM chats WHERE id = ? AND deleted_s IS NULL", (chat,)
        ).fetchone()
        return None if row is None else chat_of(row)

    def create_chat(self, title: str = "", parameters: Json | None = None) -> int:
        now = time.time()
        cursor = self._db.execute(
            "INSERT INTO chats (title, created_s, updated_s, parameters) VALUES (?, ?, ?, ?)",
            (title, now, now, json.dumps(parameters or {})),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def insert_chat(self, title: str, parameters: Json, messages: Sequence[Message], leaf: int | None) -> int:
        """A whole chat, whose messages get new ids. A parent stands before its children."""
        with self._transaction():
            chat = self.create_chat(title, parameters)
            ids: dict[int, int] = {}
            for one in messages:
                parent = None if one.parent is None else ids[one.parent]
                ids[one.id] = self.add(
                    chat, parent, one.role, one.text, state=one.state, thinking=one.thinking, calls=one.calls,
                    attachments=one.attachments, facts=one.facts,
                ).id  # fmt: skip
            if leaf is not None:
                self.set_leaf(chat, ids[leaf])
        return chat

    def rename(self, chat: int, title: str) -> None:
        self._db.execute("UPDATE chats SET title = ? WHERE id = ?", (title, chat))

    def set_parameters(self, chat: int, parameters: Json) -> None:
        self._db.execute("UPDATE chats SET parameters = ? WHERE id = ?", (json.dumps(parameters), chat))

    def set_leaf(self, chat: int, message: int | None) -> None:
        """Show the branch that ends in `message`."""
        self._db.execute("UPDATE chats SET leaf = ? WHERE id = ?", (message, chat))

    def delete_chat(self, chat: int) -> None:
        """Out of sight; `restore_chat` brings it back until `purge`."""
        self._db.execute("UPDATE chats SET deleted_s = ? WHERE id = ?", (time.time(), chat))

    def restore_chat(self, chat: int) -> None:
        self._db.execute("UPDATE chats SET deleted_s = NULL WHERE id = ?", (chat,))

    def purge(self, chat: int | None = None) -> None:
        """Delete for good what was deleted: one chat, or all."""
        where = "deleted_s IS NOT NULL" + ("" if chat is None else " AND id = ?")
        values = () if chat is None else (chat,)
        with self._transaction():
            for (gone,) in self._db.execute(f"SELECT id FROM chats WHERE {where}", values).fetchall():
                rows = self._db.execute("SELECT id, text FROM messages WHERE chat = ? AND state <> 'running'", (gone,))
                for message, text in rows.fetchall():
                    self._unindex(message, text)
                self._db.execute("DELETE FROM chats WHERE id = ?", (gone,))

    # Messages.

    def messages(self, chat: int) -> list[Message]:
        """All branches, oldest first: a parent comes before its children."""
        rows = self._db.execute(f"SELECT {COLUMNS} FROM messages WHERE chat = ? ORDER BY id", (chat,))
        return [message_of(row) for row in rows]

    def message(self, message: int) -> Message:
        return message_of(self._db.execute(f"SELECT {COLUMNS} FROM messages WHERE id = ?", (message,)).fetchone())

    def add(
        self,
        chat: int,
        parent: int | None,
        role: str,
        text: str = "",
        *,
        state: State = State.DONE,
        thinking: str = "",
        calls: Sequence[Call] = (),
        attachments: Sequence[Attachment] = (),
        facts: Json | None = None,
    ) -> Message:
        """A new message under `parent`, which becomes the end of the branch that is shown."""
        now = time.time()
        with self._transaction():
            cursor = self._db.execute(
                "INSERT INTO messages (chat, parent, role, text, state, created_s, thinking, calls, attachments, facts)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    chat,
                    parent,
                    role,
                    text,
                    state,
                    now,
                    thinking,
                    calls_text(calls),
                    attachments_text(attachments),
                    json_text(facts),
                ),
            )
            assert cursor.lastrowid is not None
            if state is not State.RUNNING:
                self._index(cursor.lastrowid, text)
            self._db.execute("UPDATE chats SET updated_s = ?, leaf = ? WHERE id = ?", (now, cursor.lastrowid, chat))
        return Message(
            cursor.lastrowid, chat, parent, role, text, state, now, thinking, tuple(calls), tuple(attachments),
            facts or {},
        )  # fmt: skip

    def save(
        self,
        message: int,
        *,
        text: str | None = None,
        thinking: str | None = None,
        calls: Sequence[Call] | None = None,
        facts: Json | None = None,
        state: State | None = None,
        trace: Json | None = None,
    ) -> None:
        """Write what has changed; None leaves a part as it is."""
        given = {"text": text, "thinking": thinking, "state": state}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if calls is not None:
            changes["calls"] = calls_text(calls)
        if facts is not None:
            changes["facts"] = json_text(facts)
        with self._transaction():
            old_text, old_state = self._db.execute(
                "SELECT text, state FROM messages WHERE id = ?", (message,)
            ).fetchone()
            if changes:
                names = ", ".join(f"{name} = ?" for name in changes)
                self._db.execute(f"UPDATE messages SET {names} WHERE id = ?", (*changes.values(), message))
            was, now = old_state != State.RUNNING, changes.get("state", old_state) != State.RUNNING
            if (was, old_text) != (now, changes.get("text", old_text)):
                if was:
                    self._unindex(message, old_text)
                if now:
                    self._index(message, changes.get("text", old_text))
            if trace is not None:
                data = zlib.compress(json.dumps(trace, separators=(",", ":")).encode())
                self._db.execute("INSERT OR REPLACE INTO traces (message, data) VALUES (?, ?)", (message, data))
        self._checkpoint()

    def trace(self, message: int) -> Json | None:
        """Tokens and rounds of an answer; None when it was cut by a crash or imported."""
        row = self._db.execute("SELECT data FROM traces WHERE message = ?", (message,)).fetchone()
        return None if row is None else cast(Json, json.loads(zlib.decompress(row[0])))

    # Values saved for a model.

    def model_defaults(self, model: str) -> Json:
        row = self._db.execute("SELECT parameters FROM model_defaults WHERE model = ?", (model,)).fetchone()
        return {} if row is None else cast(Json, json.loads(row[0]))

    def set_model_defaults(self, model: str, parameters: Json) -> None:
        self._db.execute("INSERT OR REPLACE INTO model_defaults VALUES (?, ?)", (model, json.dumps(parameters)))

    # Search.

    def search(self, words: str, limit: int = 60) -> list[Hit]:
        """Chats and messages with all words, newest first; the last word may be the beginning of one.

        Ordered by age and not by rank: ranking a common word would have to look at every message.
        """
        terms = re.findall(r"[^\W_]+", spaced(words))
        if not terms:
            return []
        pattern = "%" + re.sub(r"([\\%_])", r"\\\1", words.strip()) + "%"
        hits = [
            Hit(chat, title, None, "", updated)
            for chat, title, updated in self._db.execute(
                "SELECT id, title, updated_s FROM chats WHERE deleted_s IS NULL AND title LIKE ? ESCAPE '\\' "
                "ORDER BY updated_s DESC LIMIT ?",
                (pattern, limit),
            )
        ]
        query = " ".join(f'"{term}"' for term in terms) + ("" if words[-1:].isspace() else "*")
        rows = self._db.execute(
            "SELECT m.chat, c.title, m.id, m.text, c.updated_s FROM found f CROSS JOIN messages m ON m.id = f.rowid "
            "CROSS JOIN chats c ON c.id = m.chat WHERE found MATCH ? AND c.deleted_s IS NULL "
            "ORDER BY f.rowid DESC LIMIT ?",
            (query, limit),
        )
        hits += [Hit(chat, title, message, _snippet(text, terms), at) for chat, title, message, text, at in rows]
        return hits

    def _index(self, message: int, text: str) -> None:
        self._db.execute("INSERT INTO found (rowid, text) VALUES (?, ?)", (message, spaced(text)))

    def _unindex(self, message: int, text: str) -> None:
        self._db.execute("INSERT INTO found (found, rowid, text) VALUES ('delete', ?, ?)", (message, spaced(text)))

    # The write-ahead log.

    def _checkpoint(self) -> None:
        """Copy a long log into the database, on a thread of its own: that waits for the disk."""
        path = self._path
        if path is None or (self._checkpointer is not None and self._checkpointer.is_alive()):
            return
        log = path.with_name(path.name + "-wal")
        if not log.exists() or log.stat().st_size < CHECKPOINT_BYTES:
            return
        self._checkpointer = threading.Thread(target=_copy_log, args=(path,), name="slipstream-history")
        self._checkpointer.start()


def open_history(path: Path) -> History:
    """The database at `path`, whatever state it is in; `problem` says when it is another one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return History(path)
    except HistoryError:
        logger.warning("%s was made by a newer version", path)
        return History(None, Problem.NEWER)
    except (sqlite3.OperationalError, OSError) as error:  # no right to write, no room, locked
        logger.warning("%s cannot be used (%s)", path, error)
        return History(None, Problem.UNWRITABLE)
    except sqlite3.DatabaseError as error:
        aside = path.with_name(f"{path.stem}-damaged-{time.strftime('%Y%m%d-%H%M%S')}{path.suffix}")
        logger.warning("%s is damaged (%s); moved to %s", path, error, aside)
        for end in ("", "-wal", "-shm"):
            part = path.with_name(path.name + end)
            if part.exists():
                part.rename(aside.with_name(aside.name + end))
        return History(path, Problem.DAMAGED)


def _copy_log(path: Path) -> None:
    db = sqlite3.connect(path)
    try:
        db.execute("PRAGMA wal_checkpoint(PASSIVE)")
    except sqlite3.OperationalError as error:  # busy: the next save tries again
        logger.info("the log was not copied: %s", error)
    finally:
        db.close()


# Scripts that are written without spaces: each character is a word, as the index's tokeniser would not split them.
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")


def spaced(text: str) -> str:
    return _UNSPACED.sub(r" \1 ", text)


def _snippet(text: str, terms: Sequence[str]) -> str:
    """The line around the first word that was found."""
    found = re.search("|".join(re.escape(term) for term in terms), text, re.IGNORECASE)
    at = found.start() if found else 0
    begin = max(0, at - SNIPPET // 2)
    piece = " ".join(text[begin : at + SNIPPET].split())
    return ("…" if begin else "") + piece + ("…" if at + SNIPPET < len(text) else "")
