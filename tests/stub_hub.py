"""A hub on this machine: real bytes over real HTTP to the real huggingface-hub client, with faults on demand.

As a program it serves a folder of repositories (`publisher/model/files`), for trying the commands by hand:

    python tests/stub_hub.py FOLDER --port 8899 --bytes-per-s 2000000
    HF_ENDPOINT=http://127.0.0.1:8899 HF_HOME=/tmp/hf slipstream models pull publisher/model
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import re
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

LARGE = 1000  # bytes; from there on a file is "large": hashed by SHA-256 and served from another origin


@dataclass(slots=True)
class Fault:
    """Something that goes wrong with one answer, at a byte position of the file."""

    cut_at: int | None = None  # the connection ends
    stall_at: int | None = None  # nothing more comes
    flip_at: int | None = None  # one byte is wrong
    status: int | None = None  # no bytes at all
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    whole: bool = False  # the range is ignored


@dataclass(slots=True)
class Repo:
    files: dict[str, bytes]
    commit: str
    gated: bool = False
    private: bool = False
    card: dict[str, Any] = field(default_factory=dict[str, Any])
    tags: tuple[str, ...] = ("safetensors",)


class StubHub:
    """`add` repositories, set faults, read what was served. A context manager."""

    def __init__(self, port: int = 0) -> None:
        self.repos: dict[str, Repo] = {}
        self.faults: dict[str, list[Fault]] = defaultdict(list)  # by file name; one is used up by each answer
        self.api_faults: list[Fault] = []
        self.bytes_per_s: float | None = None
        self.sent: Counter[str] = Counter()  # bytes of each file
        self.answers: Counter[str] = Counter()  # of each file
        self.ranges: list[tuple[str, str]] = []
        self.tokens: list[tuple[str, str | None]] = []  # (path, Authorization)
        self.accepted = {"hf_good": True, "hf_stranger": False}  # token: whether it may see gated repositories
        self.released = threading.Event()  # ends every stall
        hub = self

        class Handler(_Handler):
            stub = hub

        self._server = _Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.storage = f"http://localhost:{self.port}"  # another origin, as on the real hub

    def __enter__(self) -> StubHub:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def add(self, name: str, files: Mapping[str, bytes], **more: Any) -> Repo:
        commit = hashlib.sha1(repr(sorted((n, hashlib.sha1(b).hexdigest()) for n, b in files.items())).encode())
        self.repos[name] = Repo(dict(files), commit.hexdigest(), **more)
        return self.repos[name]

    def add_folder(self, home: Path) -> None:
        for config in sorted(home.glob("*/*/")):
            files = {str(p.relative_to(config)): p.read_bytes() for p in config.rglob("*") if p.is_file()}
            self.add(f"{config.parent.name}/{config.name}", files)

    def fault(self, file: str, *faults: Fault) -> None:
        self.faults[file].extend(faults)


def is_large(name: str, data: bytes) -> bool:
    return len(data) >= LARGE and not name.endswith((".json", ".md", ".txt"))


def blob_of(name: str, data: bytes) -> str:
    if is_large(name, data):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what these tests are about; anything else is shown."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    stub: StubHub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass

    def do_HEAD(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def _serve(self) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            path = urlsplit(self.path)
            self.stub.tokens.append((path.path, self.headers.get("Authorization")))
            if path.path == "/api/models":
                self._search(parse_qs(path.query))
            elif found := re.fullmatch(r"/api/models/(.+?)(?:/revision/(.+))?", path.path):
                self._info(found[1], found[2])
            elif found := re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path.path):
                self._resolve(found[1], found[2], found[3])
            elif found := re.fullmatch(r"/storage/(.+?)/-/(.+)", path.path):
                self._send(found[2], self.stub.repos[found[1]].files[found[2]])
            else:
                self._status(404)

    def _status(self, status: int, headers: Mapping[str, str] | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _json(self, data: object) -> None:
        self._status(200, {"Content-Type": "application/json"}, json.dumps(data).encode())

    def _repo(self, name: str) -> Repo | None:
        """Or the hub's own kind of no."""
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        repo = self.stub.repos.get(name)
        if token is not None and token not in self.stub.accepted:
            self._status(401, {"X-Error-Message": "Invalid credentials in Authorization header"})
        elif repo is None or (repo.private and token is None):
            self._status(404 if token else 401, {"X-Error-Code": "RepoNotFound"})
        else:
            return repo
        return None

    def _may_fetch(self, repo: Repo) -> bool:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        if not repo.gated or (token and self.stub.accepted.get(token)):
            return True
        self._status(403 if token else 401, {"X-Error-Code": "GatedRepo"})
        return False

    def _info(self, name: str, revision: str | None) -> None:
        if self.stub.api_faults and (fault := self.stub.api_faults.pop(0)).status:
            self._status(fault.status, fault.headers)
            return
        repo = self._repo(name)
        if repo is None:
            return
        if revision not in (None, "main", repo.commit):
            self._status(404, {"X-Error-Code": "RevisionNotFound"})
            return
        siblings: list[dict[str, object]] = []
        for file, data in repo.files.items():
            entry: dict[str, object] = {"rfilename": file, "size": len(data), "blobId": blob_of(file, data)}
            if is_large(file, data):
                entry["lfs"] = {"sha256": blob_of(file, data), "size": len(data), "pointerSize": 134}
            siblings.append(entry)
        self._json(
            {
                "id": name,
                "sha": repo.commit,
                "gated": "manual" if repo.gated else False,
                "private": repo.private,
                "cardData": repo.card,
                "tags": list(repo.tags),
                "siblings": siblings,
            }
        )

    def _search(self, query: Mapping[str, list[str]]) -> None:
        words = query.get("search", [""])[0].lower()
        found = [
            {"id": name, "downloads": 100 - n, "gated": False, "tags": list(repo.tags)}
            for n, (name, repo) in enumerate(self.stub.repos.items())
            if words in name.lower() and "safetensors" in repo.tags
        ]
        self._json(found[: int(query.get("limit", ["20"])[0])])

    def _resolve(self, name: str, revision: str, file: str) -> None:
        repo = self._repo(name)
        if repo is None or not self._may_fetch(repo):
            return
        if revision not in ("main", repo.commit):
            self._status(404, {"X-Error-Code": "RevisionNotFound"})
        elif file not in repo.files:
            self._status(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": repo.commit})
        elif is_large(file, repo.files[file]):
            data = repo.files[file]
            self._status(
                302,
                {
                    "Location": f"{self.stub.storage}/storage/{name}/-/{file}",
                    "X-Repo-Commit": repo.commit,
                    "X-Linked-Etag": f'"{blob_of(file, data)}"',
                    "X-Linked-Size": str(len(data)),
                },
            )
        else:
            self._send(file, repo.files[file], {"X-Repo-Commit": repo.commit})

    def _send(self, file: str, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        stub = self.stub
        fault = stub.faults[file].pop(0) if stub.faults[file] and self.command == "GET" else Fault()
        if fault.status:
            self._status(fault.status, fault.headers)
            return
        asked = self.headers.get("Range")
        start, end = 0, len(data)
        if asked and not fault.whole and (found := re.fullmatch(r"bytes=(\d+)-(\d*)", asked)):
            start, end = int(found[1]), min(len(data), int(found[2]) + 1 if found[2] else len(data))
            if start >= len(data):
                self._status(416, {"Content-Range": f"bytes */{len(data)}"})
                return
        self.send_response(206 if asked and not fault.whole else 200)
        for name, value in {**(headers or {}), "ETag": f'"{blob_of(file, data)}"'}.items():
            self.send_header(name, value)
        if asked and not fault.whole:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
            stub.ranges.append((file, asked))
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        if self.command == "HEAD":
            return
        stub.answers[file] += 1
        self._body(file, data, start, end, fault)

    def _body(self, file: str, data: bytes, start: int, end: int, fault: Fault) -> None:
        stub = self.stub
        piece = 1 << 16 if stub.bytes_per_s is None else max(256, min(1 << 16, int(stub.bytes_per_s / 50)))
        position = start
        stops = [at for at in (fault.cut_at, fault.stall_at) if at is not None]
        until = min([end, *stops])
        while position < until:
            chunk = bytearray(data[position : min(until, position + piece)])
            if fault.flip_at is not None and position <= fault.flip_at < position + len(chunk):
                chunk[fault.flip_at - position] ^= 1
            self.wfile.write(chunk)
            stub.sent[file] += len(chunk)
            position += len(chunk)
            if stub.bytes_per_s is not None:
                time.sleep(len(chunk) / stub.bytes_per_s)
        if until == end and fault.cut_at != end:
            return
        self.wfile.flush()
        if fault.stall_at is not None and until == fault.stall_at:
            stub.released.wait(120)
        self.close_connection = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8899)
    parser.add_argument("--bytes-per-s", type=float)
    parser.add_argument("--gated", action="append", default=[], help="a repository to ask for terms")
    args = parser.parse_args()
    with StubHub(args.port) as hub:
        hub.bytes_per_s = args.bytes_per_s
        hub.add_folder(args.folder)
        for name in cast(list[str], args.gated):
            hub.repos[name].gated = True
        print(f"{hub.endpoint} serves {', '.join(hub.repos)}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
