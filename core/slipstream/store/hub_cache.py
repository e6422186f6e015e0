"""The cache that Hugging Face's tools share: where a repository's files lie, and what we note beside them.

models--org--name/
    blobs/<hash>                 the bytes, once, under their hash; <hash>.incomplete while they come
    snapshots/<commit>/<file>    links to blobs: appears in one rename when everything is there
    refs/<branch>                the commit a branch stood at; moved last
    slipstream/<commit>.json     ours: which files a download takes, and whether it has them all
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from slipstream.store.atomic import exclusive, write_text
from slipstream.store.hub import RemoteFile, safe_name

FORMAT = 1
_PARTIAL = ".incomplete"
_TEMPORARY = ".tmp"
_COMMIT = re.compile(r"[0-9a-f]{40}")


def root() -> Path:
    """Where Hugging Face's tools keep their cache, by their own settings (HF_HOME, HF_HUB_CACHE)."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one download takes of a repository at one commit. Written before the first byte."""

    repo: str
    revision: str  # the branch or tag that was asked for
    commit: str
    files: tuple[RemoteFile, ...]
    is_complete: bool = False  # every file was checked and linked

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class Repository:
    """One model repository's folder in the cache."""

    folder: Path

    @classmethod
    def of(cls, repo: str) -> Repository:
        return cls(root() / f"models--{repo.replace('/', '--')}")

    @property
    def name(self) -> str:
        return self.folder.name.removeprefix("models--").replace("--", "/", 1)

    def snapshot(self, commit: str) -> Path:
        return self.folder / "snapshots" / commit

    def blob(self, file: RemoteFile) -> Path:
        return self.folder / "blobs" / file.blob

    def partial(self, file: RemoteFile) -> Path:
        return self.folder / "blobs" / f"{file.blob}{_PARTIAL}"

    def lock(self, file: RemoteFile) -> Path:
        """The lock that Hugging Face's own client takes while it fetches this blob."""
        return self.folder.parent / ".locks" / self.folder.name / f"{file.blob}.lock"

    def done(self, file: RemoteFile) -> int:
        """How many of a file's bytes are here, whether checked yet or not."""
        for path in (self.blob(file), self.partial(file)):
            try:
                size = path.stat().st_size
            except OSError:
                continue
            if size <= file.size:
                return size
        return 0

    def has(self, file: RemoteFile) -> bool:
        try:
            return self.blob(file).stat().st_size == file.size
        except OSError:
            return False

    def commit_of(self, revision: str) -> str | None:
        """The commit that a branch, or the commit itself, stands for here."""
        if _COMMIT.fullmatch(revision):
            return revision
        try:
            return (self.folder / "refs" / revision).read_text().strip() or None
        except (OSError, UnicodeDecodeError):
            return None

    def current(self) -> Path | None:
        """The snapshot that other tools would use: main's, else the newest."""
        commit = self.commit_of("main")
        if commit is not None and self.snapshot(commit).is_dir():
            return self.snapshot(commit)
        try:
            found = [path for path in (self.folder / "snapshots").iterdir() if _COMMIT.fullmatch(path.name)]
        except OSError:
            return None
        return max(found, key=lambda path: path.stat().st_mtime, default=None)

    def partial_bytes(self) -> int:
        """Of every unfinished file, whoever left it."""
        return sum(path.stat().st_size for path in (self.folder / "blobs").glob(f"*{_PARTIAL}"))

    # -- manifests

    def manifests(self) -> Iterator[Manifest]:
        """Every readable one."""
        for path in sorted((self.folder / "slipstream").glob("*.json")):
            if (manifest := self.manifest(path.stem)) is not None:
                yield manifest

    def manifest(self, commit: str) -> Manifest | None:
        try:
            data: Any = json.loads((self.folder / "slipstream" / f"{commit}.json").read_text(encoding="utf-8"))
            if data.pop("format") != FORMAT or data["commit"] != commit:
                return None
            files = tuple(RemoteFile(**file) for file in data.pop("files"))
            manifest = Manifest(files=files, **data)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None  # damaged or of another version: as if it were not there
        return manifest if all(safe_name(file.name) and (file.sha256 or file.git_sha1) for file in files) else None

    def unfinished(self, revision: str | None = None) -> Manifest | None:
        """A download that was begun and not finished, of this revision if one is given."""
        found = (m for m in self.manifests() if not m.is_complete and revision in (None, m.revision, m.commit))
        return next(found, None)

    def note(self, manifest: Manifest) -> None:
        """Write a manifest; it replaces an earlier one of the same commit in one step."""
        data = {"format": FORMAT, **asdict(manifest)}
        write_text(self.folder / "slipstream" / f"{manifest.commit}.json", json.dumps(data, indent=1) + "\n")

    def forget(self, manifest: Manifest) -> None:
        (self.folder / "slipstream" / f"{manifest.commit}.json").unlink(missing_ok=True)

    # -- the end of a download

    def publish(self, manifest: Manifest) -> Path:
        """Make a snapshot of blobs that are all here and checked. Returns its folder.

        The folder appears in one rename; one that another tool had begun gets what it lacks. The branch moves and
        the manifest says complete only after that.
        """
        final = self.snapshot(manifest.commit)
        names = {file.name: self.blob(file) for file in manifest.files}
        with exclusive(self.folder / "slipstream" / ".lock"):
            for left in final.parent.glob(f".{manifest.commit}.*{_TEMPORARY}"):
                shutil.rmtree(left, ignore_errors=True)  # its run is dead: it would hold the lock
            if not final.is_dir():
                fresh = final.with_name(f".{manifest.commit}.{secrets.token_hex(4)}{_TEMPORARY}")
                for name, blob in names.items():
                    _link(blob, fresh / name)
                try:
                    fresh.rename(final)
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise
                    shutil.rmtree(fresh)  # another tool was faster
            for name, blob in names.items():
                if not _same(final / name, blob):
                    _link(blob, final / name)
            if not _COMMIT.fullmatch(manifest.revision):
                write_text(self.folder / "refs" / manifest.revision, manifest.commit)
            self.note(replace(manifest, is_complete=True))
        return final


def repositories() -> list[Repository]:
    """Every model repository in the cache."""
    try:
        return [Repository(path) for path in sorted(root().iterdir()) if path.name.startswith("models--")]
    except OSError:
        return []


def _same(link: Path, blob: Path) -> bool:
    try:
        return link.samefile(blob)
    except OSError:
        return False


def _link(blob: Path, path: Path) -> None:
    """A relative link, so that the cache can be moved; where links do not exist, the bytes themselves."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_TEMPORARY}")
    try:
        try:
            fresh.symlink_to(os.path.relpath(blob, path.parent))
        except OSError:
            os.link(blob, fresh)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
