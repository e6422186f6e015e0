"""A file while it comes: what is there of it, and whether that is right."""

from __future__ import annotations

import hashlib
import os
from typing import IO

from slipstream.errors import Unreachable
from slipstream.store.hub import RemoteFile

_READ = 1 << 20


class Incoming:
    """Its bytes so far and their hash."""

    def __init__(self, file: RemoteFile, out: IO[bytes]) -> None:
        self.file = file
        self._out = out
        self.position = out.seek(0, os.SEEK_END)
        if self.position > file.size:
            self.restart()
            return
        self._digest = _digest(file)
        out.seek(0)
        while block := out.read(_READ):  # what an earlier run has left
            self._digest.update(block)

    def write(self, chunk: bytes) -> None:
        if self.position + len(chunk) > self.file.size:
            raise Unreachable(f"the hub sends more of {self.file.name} than it said; try again", file=self.file.name)
        self._out.write(chunk)
        self._digest.update(chunk)
        self.position += len(chunk)

    def restart(self) -> None:
        self._out.truncate(0)
        self.position = 0
        self._digest = _digest(self.file)

    @property
    def is_right(self) -> bool:
        return self._digest.hexdigest() == self.file.blob


def _digest(file: RemoteFile) -> hashlib._Hash:
    if file.sha256 is not None:
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)  # what git calls the file
