"""Works out what would change in a client's files, to set it up or to undo that. Reads files, changes none."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

from slipstream.agents import journal
from slipstream.agents.config import NO_KEY, ConfigRefused, Note, Place, ServerAddress
from slipstream.agents.document import Document, Format, Json, canonical, edited, open_document, plain
from slipstream.agents.journal import FileRecord, KeyPath, KeyRecord

MAX_FILE_BYTES = 10_000_000
SHOWN_OF_SECRET = 4
# "apiKey": "..." or token = '...', whoever's it is; the names that only end alike hold no secret.
_SECRET = re.compile(
    r"""(?P<name>[\w-]*(?:key|token|secret|password|authorization)["']?\s*[:=]\s*)(?P<quote>["'])(?P<value>(?:\\.|(?!(?P=quote)).)+)(?P=quote)""",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(r"env_key|max_", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Setting:
    """A key and the value it shall have. With `choose`, it depends on what the user has there (None: nothing)."""

    path: KeyPath
    value: Json = None
    choose: Callable[[Json], Json] | None = None

    def want(self, current: Json) -> Json:
        return self.choose(current) if self.choose else self.value


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one file shall say. Every other key in it is the user's."""

    path: Path
    form: Format
    settings: tuple[Setting, ...]
    owned: tuple[KeyPath, ...] = ()  # entries that are ours as a whole when we made them


@dataclass(frozen=True, slots=True)
class FileChange:
    path: Path
    before: str | None  # None: there is no file
    after: str | None  # None: the file goes
    record: FileRecord


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes that `write.apply` makes. `records` is the journal as it will be then."""

    agent: str
    place: Place
    changes: tuple[FileChange, ...]
    records: tuple[FileRecord, ...]
    journal_before: tuple[FileRecord, ...] = ()
    notes: tuple[Note, ...] = ()
    secrets: tuple[str, ...] = ()
    is_undo: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.changes

    @property
    def diff(self) -> str:
        """A unified diff of all files, exact but for keys and tokens, of which only the first letters stand."""
        return "".join(_diff(change, self.secrets) for change in self.changes)


def draw_up(
    agent: str, wanted: Sequence[Wanted], place: Place, server: ServerAddress, notes: Sequence[Note] = ()
) -> Plan:
    """Raises ConfigRefused when a file cannot be read, or not be changed without loss."""
    journaled = journal.load(agent, place)
    records = {record.path: record for record in journaled}
    changes: list[FileChange] = []
    for file in wanted:
        change = _change(file, records.get(file.path))
        if change.after != change.before:
            changes.append(change)
            records[file.path] = change.record
    secrets = (server.key,) if server.key else ()
    return Plan(agent, place, tuple(changes), tuple(records.values()), journaled, tuple(notes), secrets)


def undo(agent: str, place: Place) -> Plan:
    """Give every file back what was there before us, and leave what its owner has changed since."""
    records = journal.load(agent, place)
    notes: list[Note] = []
    changes = [change for record in records if (change := _restore(record, notes)) is not None]
    return Plan(agent, place, tuple(changes), records, records, tuple(notes), is_undo=True)


def read_text(path: Path) -> str | None:
    """The file's text, exactly; None when there is no file. Raises ConfigRefused."""
    try:
        real = path.resolve()
        if real.is_file() and real.stat().st_size > MAX_FILE_BYTES:
            raise ConfigRefused(f"{path} is too large for a configuration", path=str(path))
        return real.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ConfigRefused(f"{path} is not UTF-8 text; nothing was changed", path=str(path)) from error
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, before Python 3.13
        reason = getattr(error, "strerror", None) or error
        raise ConfigRefused(f"{path} cannot be read: {reason}; nothing was changed", path=str(path)) from error


def read_json(path: Path, key: KeyPath) -> Json:
    """One value of a JSON file; None when it or the file is not there. Raises ConfigRefused."""
    return _open(path, read_text(path) or "", "json").get(key)


def read_toml(path: Path, key: KeyPath) -> Json:
    return _open(path, read_text(path) or "", "toml").get(key)


def _open(path: Path, text: str, form: Format) -> Document:
    try:
        return open_document(plain(text), form)
    except ValueError as error:
        what = "TOML" if form == "toml" else "JSON"
        message = f"{path} is not valid {what}: {error}. Correct it first; nothing was changed"
        raise ConfigRefused(message, path=str(path)) from error


def _change(file: Wanted, record: FileRecord | None) -> FileChange:
    text = read_text(file.path)
    document = _open(file.path, text or "", file.form)
    try:
        keys, made = _set_keys(file, record, document)
        after = edited(text or "", document) if document.text != plain(text or "") else text
    except ValueError as error:
        message = f"{file.path} cannot be changed without loss: {error}; nothing was changed"
        raise ConfigRefused(message, path=str(file.path)) from error
    new = FileRecord(
        path=file.path,
        form=file.form,
        existed=record.existed if record else text is not None,
        before=text,
        written=(_digest(after),),
        keys=keys,
        made=tuple(sorted(made)),
        owned=tuple(path for path in file.owned if path in made),
        folders=record.folders if record else _missing_folders(file.path),
    )
    if record is not None:
        # The old text may come back whole only while nobody but us has written since it was taken.
        taken = text == record.before or (text is not None and _digest(text) in record.written)
        untouched = bool(record.written) and taken
        written = tuple(dict.fromkeys((*record.written, _digest(after)))) if untouched else ()
        new = replace(new, before=record.before if untouched else None, written=written)
    return FileChange(file.path, text, after, new)


def _set_keys(
    file: Wanted, record: FileRecord | None, document: Document
) -> tuple[tuple[KeyRecord, ...], set[KeyPath]]:
    """Bring the document to what is wanted. Returns what is ours in it then, and what containers we made."""
    draft = _Draft(document)
    known = {key.path: key for key in record.keys} if record else {}
    made = set(record.made) if record else set[KeyPath]()
    ours: dict[KeyPath, KeyRecord] = {}
    for setting in file.settings:
        path, current = setting.path, document.get(setting.path)
        key = known.get(path)
        if key is None or not _is_ours(document, key):
            key = KeyRecord(path, document.raw(path), ())
        value = setting.want(None if key.before is None else document.read_raw(key.before))
        same = canonical(value) == canonical(current)
        if value is None or (same and not key.ours):
            continue  # the user's own choice is what we need
        ours[path] = replace(key, ours=tuple(dict.fromkeys((*key.ours, canonical(value)))))
        if not same:
            made |= {p for n in range(1, len(path)) if not document.has(p := path[:n])}
            draft.set(path, value)
    for path, key in known.items():
        if path not in ours and _is_ours(document, key):  # left from an earlier write, for another model perhaps
            draft.put_back(key)
    for path in sorted(made, key=len, reverse=True):
        if document.get(path) == {}:
            draft.remove(path)
            made.remove(path)
    draft.check()
    return tuple(ours.values()), made


def _digest(text: str | None) -> str:
    return journal.digest(text or "")


def _restore(record: FileRecord, notes: list[Note]) -> FileChange | None:
    text = read_text(record.path)
    if text is None:
        return None
    after = record.before if _digest(text) in record.written else _restore_keys(record, text, notes)
    return None if after == text else FileChange(record.path, text, after, record)


def _restore_keys(record: FileRecord, text: str, notes: list[Note]) -> str | None:
    document = _open(record.path, text, record.form)
    kept: list[str] = []
    try:
        draft = _Draft(document)
        for path in record.owned:
            draft.remove(path)
        for key in record.keys:
            if any(key.path[: len(path)] == path for path in record.owned):
                continue
            if _is_ours(document, key):
                draft.put_back(key)
            elif document.has(key.path):
                kept.append(".".join(key.path))
        for path in sorted(record.made, key=len, reverse=True):
            if document.get(path) == {}:
                draft.remove(path)
        draft.check()
        if not record.existed and document.is_bare:
            return None
        after = edited(text, document)
    except ValueError as error:
        raise ConfigRefused(
            f"{record.path} cannot be changed back without loss: {error}; nothing was changed", path=str(record.path)
        ) from error
    if kept:
        names = ", ".join(kept)
        notes.append(Note("kept", f"{record.path} was changed since; these stay as they are now: {names}."))
    return after


class _Draft:
    """A document under change beside a plain value with the same changes: the two must agree at the end."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._expected = deepcopy(document.value)

    def set(self, path: KeyPath, value: Json) -> None:
        self._document.set(path, value)
        self._group(path)[path[-1]] = value

    def put_back(self, key: KeyRecord) -> None:
        if key.before is None:
            self.remove(key.path)
            return
        self._document.set_raw(key.path, key.before)
        self._group(key.path)[key.path[-1]] = self._document.read_raw(key.before)

    def remove(self, path: KeyPath) -> None:
        if self._document.has(path):
            self._document.remove(path)
            self._group(path).pop(path[-1], None)
        # A TOML table that only held tables is gone with the last of them.
        for end in range(len(path) - 1, 0, -1):
            parent = path[:end]
            if not self._document.has(parent) and self._group(parent).get(parent[-1]) == {}:
                del self._group(parent)[parent[-1]]

    def check(self) -> None:
        if canonical(self._document.value) != canonical(self._expected):
            raise ValueError("other keys would change")

    def _group(self, path: KeyPath) -> dict[str, Json]:
        group = self._expected
        for key in path[:-1]:
            group = group.setdefault(key, {}) if isinstance(group, dict) else None
        if not isinstance(group, dict):
            raise ValueError(f"{'.'.join(path[:-1])} is not a group of keys")
        return group


def _is_ours(document: Document, key: KeyRecord) -> bool:
    return document.has(key.path) and canonical(document.get(key.path)) in key.ours


def _missing_folders(path: Path) -> tuple[Path, ...]:
    missing: list[Path] = []
    for folder in path.parents:
        if folder.exists():
            break
        missing.append(folder)
    return tuple(reversed(missing))


def _diff(change: FileChange, secrets: tuple[str, ...]) -> str:
    before, after = (re.findall(r"[^\n]*\n|[^\n]+", text or "") for text in (change.before, change.after))
    old = "/dev/null" if change.before is None else str(change.path)
    new = "/dev/null" if change.after is None else str(change.path)
    lines = difflib.unified_diff(before, after, old, new)
    whole = "".join(x if x.endswith("\n") else f"{x}\n\\ No newline at end of file\n" for x in lines)
    for secret in secrets:
        if len(secret) >= 2 * SHOWN_OF_SECRET:  # a shorter one is part of other words; it is found by its name
            whole = whole.replace(secret, mask(secret))
    return _SECRET.sub(_mask_match, whole)


def mask(secret: str) -> str:
    return (secret[:SHOWN_OF_SECRET] if len(secret) >= 3 * SHOWN_OF_SECRET else "") + "…"


def _mask_match(found: re.Match[str]) -> str:
    value = found["value"]
    if value == NO_KEY or value.endswith("…") or _NO_SECRET.search(found["name"]):
        return found.group()
    return f"{found['name']}{found['quote']}{mask(value)}{found['quote']}"
