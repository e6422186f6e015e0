"""The Hugging Face hub: what is there, what of it a download would take, and what its refusals mean."""

from __future__ import annotations

import fnmatch
import json
import logging
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slipstream.errors import (
    DownloadFailed,
    FormatRefused,
    LicenceNeeded,
    NotOnHub,
    RateLimited,
    TokenNeeded,
    Unreachable,
)
from slipstream.store.sizes import words

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger(__name__)

LOOK_TIMEOUT_S = 15.0
DEFAULT_WAIT_S = 10.0  # when the hub says "too many requests" and not for how long
PIECE = 16 * 2**30  # bytes asked for at once: the hub's storage serves no more than 50 GB in one answer

# What a model needs to be loaded, shown and used.
_TAKEN = (
    "*.safetensors",
    "*.json",
    "*.jinja",
    "*.tiktoken",
    "tokenizer.model",
    "*.model",
    "merges.txt",
    "vocab.txt",
    "README.md",
    "LICENSE*",
    "LICENCE*",
    "NOTICE*",
)
_HEADS = ("mtp/*.safetensors",)  # beside conversions whose own files leave them out
_REASONS = (
    (("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle"), "pickle: loading it can run any code"),
    (("*.gguf",), "GGUF: the same weights in another format; --file NAME takes one"),
    (("*.py",), "code: never run, so not needed"),
    (("consolidated*.safetensors", "original/*"), "the same weights again"),
)
OTHER = "not needed to run the model"


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository at one commit, with the hash its bytes must have."""

    name: str  # with folders, "/" between them
    size: int
    sha256: str | None = None  # of large files
    git_sha1: str | None = None  # of small ones: the hash of a git blob

    @property
    def blob(self) -> str:
        """The file's name among the blobs of the hub's cache."""
        name = self.sha256 or self.git_sha1
        assert name is not None
        return name


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that a download does not take, and why."""

    name: str
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository at one commit: what a download takes and leaves."""

    repo: str
    revision: str  # as asked for: a branch, tag or commit
    commit: str
    files: tuple[RemoteFile, ...]
    left_out: tuple[LeftOut, ...] = ()
    licence: str | None = None
    gated: bool = False
    base_models: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer to a search."""

    repo: str
    downloads: int | None = None
    gated: bool = False
    is_mlx: bool = False


def search(query: str, *, limit: int = 20, token: str | None = None) -> list[Hit]:
    """Model repositories with safetensors that match, most downloaded first. Raises DownloadFailed."""
    from huggingface_hub import constants
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    # Not by HfApi.list_models: without a network it tries for 24 s, and says each try to the terminal.
    asked = {"search": query, "filter": "safetensors", "sort": "downloads", "limit": str(limit)}
    expand = [("expand", name) for name in ("downloads", "gated", "tags")]
    with refusals(query, token=token, what="the search"):
        response = get_session().get(
            f"{constants.ENDPOINT}/api/models",
            params=[*asked.items(), *expand],
            headers=build_hf_headers(token=token, library_name="slipstream"),
            timeout=LOOK_TIMEOUT_S,
        )
        hf_raise_for_status(response)
        found: Any = response.json()
    return [
        Hit(item["id"], item.get("downloads"), gated=bool(item.get("gated")), is_mlx="mlx" in item.get("tags", ()))
        for item in found[:limit]
    ]


def look(
    repo: str,
    revision: str | None = None,
    *,
    include: Sequence[str] = (),
    code: bool = False,
    token: str | None = None,
) -> Remote:
    """What is in a repository, and what a download would take.

    `include`: names or patterns of files to take beside the usual ones, such as a GGUF file; with a weights file
    among them no other weights are taken. `code`: take Python files too.
    Raises DownloadFailed.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError

    try:
        with refusals(repo, token=token):
            info = HfApi(token=token).model_info(
                repo, revision=revision, files_metadata=True, timeout=LOOK_TIMEOUT_S, token=token
            )
    except HFValidationError as error:
        raise NotOnHub(f"{repo!r} is no name that the hub can have; write it as publisher/model", repo=repo) from error
    files: list[RemoteFile] = []
    for sibling in info.siblings or ():
        sha256 = sibling.lfs.sha256 if sibling.lfs else None
        size = sibling.lfs.size if sibling.lfs else sibling.size
        if size is None or not (sha256 or sibling.blob_id):
            raise Unreachable(f"the hub's list of {repo} lacks sizes or hashes; try again later", repo=repo)
        files.append(RemoteFile(sibling.rfilename, size, sha256, None if sha256 else sibling.blob_id))
    taken, left = _choose(repo, files, include, code=code)
    card: Any = info.card_data
    base: Any = getattr(card, "base_model", None) or ()
    if info.sha is None:
        raise Unreachable(f"the hub does not say which commit of {repo} it shows; try again later", repo=repo)
    return Remote(
        repo=info.id,
        revision=revision or "main",
        commit=info.sha,
        files=tuple(taken),
        left_out=tuple(left),
        licence=getattr(card, "license", None),
        gated=bool(info.gated),
        base_models=(base,) if isinstance(base, str) else tuple(base),
    )


def _choose(
    repo: str, files: Sequence[RemoteFile], include: Sequence[str], *, code: bool
) -> tuple[list[RemoteFile], list[LeftOut]]:
    def matches(name: str, patterns: Sequence[str]) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    names = [file.name for file in files]
    for pattern in include:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            raise NotOnHub(f"{repo} has no file {pattern}; it has {_some(names)}", repo=repo, file=pattern)
    own_weights = any(matches(name, include) and name.endswith((".gguf", ".safetensors")) for name in names)
    taken: list[RemoteFile] = []
    left: list[LeftOut] = []
    for file in files:
        if not safe_name(file.name):
            raise FormatRefused(f"{repo} has a file named {file.name!r}, which is refused; choose another", repo=repo)
        reason = next((reason for patterns, reason in _REASONS if matches(file.name, patterns)), None)
        if matches(file.name, include) or (code and file.name.endswith(".py")):
            reason = "" if not file.name.endswith((".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")) else reason
        elif reason is None and not matches(file.name, _TAKEN if "/" not in file.name else _HEADS):
            reason = OTHER
        elif reason is None and own_weights and file.name.endswith(".safetensors"):
            reason = "other weights were asked for"
        if reason:
            left.append(LeftOut(file.name, file.size, reason))
        else:
            taken.append(file)
    if not any(file.name.endswith((".safetensors", ".gguf")) for file in taken):
        raise FormatRefused(_nothing_to_take(repo, files), repo=repo)
    return taken, left


def _nothing_to_take(repo: str, files: Sequence[RemoteFile]) -> str:
    if gguf := [file for file in files if file.name.endswith(".gguf")]:
        sizes = [f"{file.name} ({words(file.size)})" for file in gguf]
        return f"{repo} has GGUF files only; choose one with --file, such as {_some(sizes)}"
    if any(file.name.endswith((".bin", ".pt", ".pth", ".ckpt")) for file in files):
        return (
            f"{repo} has its weights as pickle files only, which can run any code when they are loaded; "
            "choose a copy in safetensors"
        )
    return f"{repo} has no weights in safetensors; choose another repository"


def _some(names: Sequence[str], count: int = 5) -> str:
    more = f" and {len(names) - count} more" if len(names) > count else ""
    return ", ".join(names[:count]) + more


def safe_name(name: str) -> bool:
    """Whether a file of that name stays inside its folder. The hub is not trusted with our disk."""
    parts = name.split("/")
    return bool(name) and "\\" not in name and "\0" not in name and all(part not in ("", ".", "..") for part in parts)


def read_json(remote: Remote, name: str, *, token: str | None = None) -> dict[str, Any] | None:
    """A small file of a repository, without keeping it. None when it has no such file. Raises DownloadFailed."""
    file = next((file for file in remote.files if file.name == name), None)
    if file is None:
        return None
    body = bytearray()
    with stream(remote.repo, remote.commit, file, 0, token=token, timeout_s=LOOK_TIMEOUT_S) as response:
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > file.size:
                break
    try:
        data: Any = json.loads(body)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


@contextmanager
def stream(
    repo: str, commit: str, file: RemoteFile, start: int, *, token: str | None, timeout_s: float
) -> Generator[httpx2.Response]:
    """A file's bytes from `start` on, as the hub sends them. Raises DownloadFailed.

    The client is huggingface-hub's own, with its proxies, certificates and offline switch. Its own download function
    is not used: it deletes what came when anything goes wrong (huggingface_hub#4228).
    """
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    headers = build_hf_headers(token=token, library_name="slipstream")
    headers["Accept-Encoding"] = "identity"  # counted and hashed as they are
    end = min(file.size, start + PIECE) - 1
    if file.size:
        headers["Range"] = f"bytes={start}-{end}"
    url = hf_hub_url(repo, file.name, revision=commit)
    with (
        refusals(repo, token=token, what=file.name),
        get_session().stream("GET", url, headers=headers, timeout=timeout_s) as response,
    ):
        if response.status_code >= 400:
            if response.status_code != 416:
                response.read()
            hf_raise_for_status(response)
        yield response


def cut(response: httpx2.Response) -> None:
    """End a stream from another thread: a reader that waits for bytes wakes at once."""
    raw: Any = response.extensions.get("network_stream")
    sock: Any = raw.get_extra_info("socket") if raw is not None else None
    if sock is not None:
        with suppress(OSError):  # it had ended by itself
            sock.shutdown(socket.SHUT_RDWR)


class NotThere(DownloadFailed):
    """The hub has no bytes from that position on: what is here is longer than its file."""


@contextmanager
def refusals(repo: str, *, token: str | None = None, what: str = "") -> Generator[None]:
    """Turns what the client raises into our errors. Nothing of the request gets into them: it carries the token."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        yield
    except HfHubHTTPError as error:
        raise _refusal(repo, error.response, bool(token) or _has_token(), what) from None
    except OfflineModeIsEnabled:
        raise Unreachable(
            "downloads are switched off by HF_HUB_OFFLINE; unset it and try again", repo=repo, kind="offline"
        ) from None
    except httpx2.ConnectTimeout:
        raise Unreachable(
            f"the hub did not answer in time for {what or repo}; try again", repo=repo, kind="timeout"
        ) from None
    except httpx2.TimeoutException:
        raise Unreachable(f"no bytes came for {what or repo}; try again", repo=repo, kind="stalled") from None
    except httpx2.ConnectError as error:
        kind = type(error).__name__
        raise Unreachable(
            f"there is no connection to the hub, {host()}; check the network and try again",
            repo=repo,
            kind=f"offline ({kind})",
        ) from None
    except httpx2.TransportError as error:
        raise Unreachable(
            f"the connection broke while {what or repo} came; try again", repo=repo, kind=type(error).__name__
        ) from None


def _has_token() -> bool:
    from huggingface_hub import get_token

    return get_token() is not None


def host() -> str:
    """Whom downloads and searches ask: huggingface.co, or what HF_ENDPOINT names."""
    from huggingface_hub import constants

    return constants.ENDPOINT.partition("://")[2].partition("/")[0] or constants.ENDPOINT


def page(repo: str) -> str:
    """A repository's page, for people."""
    from huggingface_hub import constants

    return f"{constants.ENDPOINT}/{repo}"


def _refusal(repo: str, response: httpx2.Response, has_token: bool, what: str) -> DownloadFailed:
    status, code = response.status_code, response.headers.get("X-Error-Code", "")
    error: DownloadFailed
    match status, code:
        case 401, _ if has_token:
            error = TokenNeeded(f"the hub did not accept your token for {repo}; log in again with: hf auth login")
        case 401, "GatedRepo":
            error = TokenNeeded(
                f"{repo} is given only to people who accepted its terms: accept them at {page(repo)}, "
                "then log in with: hf auth login"
            )
        case 401, _:
            error = TokenNeeded(f"the hub shows no {repo} to strangers: check the name, or log in with: hf auth login")
        case 403, _:
            error = LicenceNeeded(f"you have no access to {repo} yet: accept its terms at {page(repo)}, then try again")
        case 404, "RevisionNotFound":
            error = NotOnHub(f"{repo} has no such revision; check its name, or leave it out")
        case 404, "EntryNotFound":
            error = NotOnHub(f"{repo} has no file {what} at this commit; remove the download and start it anew")
        case 404, _:
            error = NotOnHub(f"there is no {repo} on the hub; check the name")
        case 416, _:
            error = NotThere(f"{what} is shorter on the hub than here; try again")
        case 429, _:
            wait_s = _retry_after(response)
            error = RateLimited(f"the hub asks for a pause (too many requests); try again in {wait_s:.0f} s", wait_s)
        case 408 | 500 | 502 | 503 | 504, _:
            error = Unreachable(f"the hub is in trouble (status {status}); try again later")
        case _:
            error = DownloadFailed(f"the hub refused {what or repo} (status {status}); try again later")
    error.facts |= {"repo": repo, "status": status, "url": page(repo)}
    return error


def _retry_after(response: httpx2.Response) -> float:
    """In seconds. The hub sends RateLimit headers, others Retry-After; both are honoured, the longer one."""
    from huggingface_hub.utils import parse_ratelimit_headers

    waits: list[float] = []
    with suppress(KeyError, ValueError):
        waits.append(float(response.headers["Retry-After"]))
    info = parse_ratelimit_headers(response.headers)
    if info is not None and info.remaining == 0:
        waits.append(float(info.reset_in_seconds))
    return max(waits, default=DEFAULT_WAIT_S)
