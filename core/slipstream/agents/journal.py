"""What Slipstream wrote into which file, and what stood there before: all that undo needs, in one file per client."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from slipstream.agents.config import ConfigRefused, Place
from slipstream.agents.document import Format

VERSION = 1
KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyRecord:
    path: KeyPath
    before: str | None  # the value's own text in the file; None: the key was not there
    ours: tuple[str, ...]  # every value that we gave it, in canonical form


@dataclass(frozen=True, slots=True)
class FileRecord:
    path: Path
    form: Format
    existed: bool
    before: str | None  # the whole text before our first write; None: there was no file, or undo must go key by key
    written: tuple[str, ...]  # digests of the texts that we wrote and that undo may replace by `before`
    keys: tuple[KeyRecord, ...]
    made: tuple[KeyPath, ...]  # objects and tables that were not there before
    owned: tuple[KeyPath, ...]  # those of them that go as a whole, such as our entry among the providers
    folders: tuple[Path, ...]  # folders that were not there before, outermost first

    def key(self, path: KeyPath) -> KeyRecord | None:
        return next((key for key in self.keys if key.path == path), None)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def journal_path(agent: str, place: Place) -> Path:
    return place.journals / f"{agent}.json"


def load(agent: str, place: Place) -> tuple[FileRecord, ...]:
    """Nothing was written: no records. Raises ConfigRefused when the journal cannot be read."""
    path = journal_path(agent, place)
    try:
        body = json.loads(path.read_text("utf-8"))
        if body["version"] != VERSION:
            raise ValueError(f"it has version {body['version']}")
        return tuple(_record(item) for item in body["files"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigRefused(
            f"the record of what Slipstream changed cannot be read ({error}); look at the backups beside the "
            f"client's own files, then delete {path}",
            path=str(path),
        ) from error


def dump(agent: str, records: tuple[FileRecord, ...]) -> str:
    body = {"version": VERSION, "agent": agent, "files": [asdict(record) for record in records]}
    return json.dumps(body, indent=1, ensure_ascii=False, default=str) + "\n"


def _record(item: dict[str, Any]) -> FileRecord:  # Any: JSON
    keys = (KeyRecord(tuple(k["path"]), k["before"], tuple(k["ours"])) for k in item["keys"])
    return FileRecord(
        path=Path(item["path"]),
        form=item["form"],
        existed=item["existed"],
        before=item["before"],
        written=tuple(item["written"]),
        keys=tuple(keys),
        made=tuple(tuple(path) for path in item["made"]),
        owned=tuple(tuple(path) for path in item["owned"]),
        folders=tuple(Path(path) for path in item["folders"]),
    )
