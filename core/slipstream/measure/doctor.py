"""Looks this machine over for what keeps Slipstream from working, and says what to do about it. Changes nothing.

Every check is a function of its own that returns what it found; one that breaks is reported as a finding itself.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from slipstream import __version__
from slipstream.errors import ModelNotFound
from slipstream.store import demo, hub_cache, local, machine, preferences
from slipstream.store.local import Broken, Partial
from slipstream.store.neighbour import is_slipstream, next_port
from slipstream.store.paths import cache_dir, data_dir, home
from slipstream.store.sizes import words

MINIMUM_MACOS = (14, 0)
LEAST_MEMORY = 8 * 2**30
LOW_DISK, NO_DISK = 10 * 10**9, 10**9
LIBRARIES = ("mlx", "mlx-lm", "transformers", "tokenizers", "numpy", "PySide6-Essentials", "starlette", "uvicorn")
PORT_TIMEOUT_S = 2.0
NVIDIA = (Path("/dev/nvidia0"), Path("/proc/driver/nvidia/version"))  # one of them is there where its driver is
DATABASES = ("chats.db", "speeds.db")


class State(StrEnum):
    GOOD = "good"
    NOTE = "note"  # worth knowing; everything works
    WARNING = "warning"  # something works badly, or will not for long
    PROBLEM = "problem"  # something does not work


@dataclass(frozen=True, slots=True)
class Finding:
    """`private` names files and models: it is shown here and never written into a report."""

    check: str
    state: State
    said: str
    remedy: str = ""
    private: tuple[str, ...] = ()


Check = Callable[[], Iterable[Finding]]


def examine(more: dict[str, Check] | None = None) -> list[Finding]:
    """Run every check, and `more`. On a thread that may use MLX. Takes about as long as importing MLX."""
    found: list[Finding] = []
    for name, check in {**CHECKS, **(more or {})}.items():
        try:
            found.extend(check())
        except Exception as error:  # a check that fails must not hide what the others find
            said = f"this could not be checked ({type(error).__name__})"
            found.append(Finding(name, State.WARNING, said, "report this with: slipstream doctor --report FILE"))
    return found


def report(found: list[Finding]) -> str:
    """For others to read, as JSON: versions and findings, without names of people, machines, files or models."""
    facts = {
        "slipstream": __version__,
        "python": platform.python_version(),
        "system": machine.system(),
        "chip": machine.chip(),
        "memory_bytes": _memory(),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "findings": [{"check": f.check, "state": f.state.value, "said": f.said, "remedy": f.remedy} for f in found],
    }
    return _without_names(json.dumps(facts, indent=2, ensure_ascii=False)) + "\n"


def _without_names(text: str) -> str:
    own = home()
    if own.name:  # not the root of the disk, as in some containers
        text = text.replace(str(own), "~")
    for name in {socket.gethostname(), own.name, os.environ.get("USER", "")}:
        if len(name) > 2 and name not in ("root", "runner"):
            text = text.replace(name, "…")
    return text


# -- the machine


def _check_system() -> Iterator[Finding]:
    said = f"{machine.system()}, {platform.machine()}, Python {platform.python_version()}"
    if sys.platform == "darwin":
        release = tuple(int(part) for part in platform.mac_ver()[0].split(".")[:2])
        if release < MINIMUM_MACOS:
            yield Finding("system", State.PROBLEM, said, "update to macOS 14 or later: MLX needs it")
            return
        if platform.machine() != "arm64":
            remedy = "use a Python built for arm64: this one runs under Rosetta or on an Intel Mac, where MLX does not"
            yield Finding("system", State.PROBLEM, said, remedy)
            return
    yield Finding("system", State.GOOD, said)


def _check_memory() -> Iterator[Finding]:
    size = _memory()
    said = f"{machine.chip()}, {words(size)} of memory"
    if size < LEAST_MEMORY:
        yield Finding("memory", State.NOTE, said, "choose models of 1 billion parameters or fewer, at 4 bits")
    else:
        yield Finding("memory", State.GOOD, said)


def _check_mlx() -> Iterator[Finding]:
    version = _version("mlx")
    try:
        import mlx.core as mx
    except ImportError as error:
        remedy = "install it again: uv sync --reinstall-package mlx (the app: download it again)"
        yield Finding("mlx", State.PROBLEM, f"mlx {version} cannot be imported", remedy, (str(error),))
        return
    try:
        product = (mx.ones((8, 8)) @ mx.ones((8, 8))).sum().item()
    except RuntimeError as error:
        remedy = "restart this machine; if it stays, install MLX's wheel for this system again"
        yield Finding("mlx", State.PROBLEM, f"mlx {version} cannot compute", remedy, (str(error),))
        return
    if product != 512:
        yield Finding("mlx", State.PROBLEM, f"mlx {version} computes wrongly", "restart this machine and try again")
        return
    on_gpu = mx.default_device() == mx.gpu
    yield Finding("mlx", State.GOOD, f"mlx {version} computes on the {'GPU' if on_gpu else 'CPU'}")
    if on_gpu:
        size = mx.device_info().get("max_recommended_working_set_size") or mx.device_info().get("total_memory")
        yield Finding("gpu", State.GOOD, f"the GPU may use {words(float(size))}" if size else "the GPU answers")
    elif sys.platform == "darwin":
        remedy = "run it on a Mac with Apple silicon, outside a virtual machine without a GPU"
        yield Finding("gpu", State.PROBLEM, "Metal is not available", remedy)
    else:
        from slipstream.models.backend import prepare

        if prepare() is None:
            remedy = "apt-get install libopenblas0-pthread, or start MLX after it"
            yield Finding("gpu", State.NOTE, "no GPU; MLX's own BLAS is slow", remedy)
        else:
            yield Finding("gpu", State.GOOD, "MLX computes on the CPU, with OpenBLAS")
        if any(place.exists() for place in NVIDIA):
            remedy = "in a checkout, run: uv sync --extra cuda"
            yield Finding("gpu", State.NOTE, "there is an NVIDIA GPU, and MLX was installed without CUDA", remedy)


def _check_disk() -> Iterator[Finding]:
    for name, folder in _folders().items():
        there = _existing(folder)
        if not os.access(there, os.W_OK):
            yield Finding(
                "disk",
                State.PROBLEM,
                f"the folder for {name} cannot be written",
                "make it yours: chown -R $(id -un) FOLDER",
                (str(there),),
            )
            continue
        free = shutil.disk_usage(there).free
        state = State.PROBLEM if free < NO_DISK else State.WARNING if free < LOW_DISK else State.GOOD
        remedy = "" if state is State.GOOD else "make room: slipstream models list shows sizes, rm removes"
        yield Finding("disk", state, f"{words(free)} free for {name}", remedy, (str(folder),))


def _check_port() -> Iterator[Finding]:
    port = preferences.read().port
    with socket.socket() as probe:
        probe.settimeout(PORT_TIMEOUT_S)
        is_taken = probe.connect_ex(("127.0.0.1", port)) == 0
    if not is_taken:
        yield Finding("port", State.GOOD, f"port {port} is free")
    elif is_slipstream(port):
        yield Finding("port", State.GOOD, f"Slipstream's server answers on port {port}")
    else:
        remedy = f"close what uses it, or: slipstream serve --port {next_port(port)}"
        yield Finding("port", State.WARNING, f"another program uses port {port}", remedy)


# -- what is kept here


def _check_models() -> Iterator[Finding]:
    found = local.scan()
    broken = [model for model in found if isinstance(model.state, Broken)]
    partial = [model for model in found if isinstance(model.state, Partial)]
    yield Finding("models", State.GOOD, f"{sum(model.is_complete for model in found)} models and drafters are complete")
    if partial:
        said = f"{len(partial)} downloads are not finished"
        remedy = "go on with: slipstream models pull NAME, or remove them: slipstream models rm NAME"
        yield Finding("models", State.NOTE, said, remedy, tuple(model.name for model in partial))
    if broken:
        said = f"{len(broken)} models are damaged or incomplete"
        remedy = "slipstream models list says what each lacks; slipstream models pull NAME mends those of the hub"
        yield Finding("models", State.WARNING, said, remedy, tuple(model.name for model in broken))
    try:
        demo.find()
    except ModelNotFound:
        yield Finding("models", State.WARNING, "the built-in model is not installed", "run: uv sync --group demo")


def _check_hub_cache() -> Iterator[Finding]:
    """Links to nothing, and blobs that no download will finish: what an ended process or a tidy person leaves."""
    repositories = hub_cache.repositories()
    dangling = [
        repository.name
        for repository in repositories
        if any(link.is_symlink() and not link.exists() for link in (repository.folder / "snapshots").rglob("*"))
    ]
    known = {repository.name for repository in repositories if repository.unfinished() is not None}
    left = {
        repository.name: size
        for repository in repositories
        if repository.name not in known and (size := repository.partial_bytes())
    }
    if dangling:
        said = f"{len(dangling)} models in the Hugging Face cache have links to files that are gone"
        remedy = "mend them with: slipstream models pull NAME"
        yield Finding("hub_cache", State.WARNING, said, remedy, tuple(dangling))
    if left:
        said = f"{words(sum(left.values()))} of abandoned downloads lie in the Hugging Face cache"
        remedy = "finish them with the program that began them, or remove them: slipstream models rm NAME"
        yield Finding("hub_cache", State.NOTE, said, remedy, tuple(left))
    if not dangling and not left:
        yield Finding("hub_cache", State.GOOD, f"the Hugging Face cache is in order ({len(repositories)} models)")
    if os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on"):
        said = "HF_HUB_OFFLINE is set: nothing is downloaded"
        yield Finding("hub_cache", State.NOTE, said, "unset HF_HUB_OFFLINE to download")


def _check_caches() -> Iterator[Finding]:
    """Conversions of GGUF files that are not here any more, or of earlier versions of them."""
    stale = local.stale_conversions()
    if not stale:
        yield Finding("caches", State.GOOD, "no stale conversions")
        return
    size = sum(file.stat().st_size for folder in stale for file in folder.rglob("*") if file.is_file())
    said = f"{words(size)} of conversions belong to GGUF files that are gone or have changed"
    remedy = f"remove the folders listed, all under {cache_dir()}; what is needed is made again"
    yield Finding("caches", State.NOTE, said, remedy, tuple(str(folder) for folder in stale))


def _check_databases() -> Iterator[Finding]:
    for name in DATABASES:
        file = data_dir() / name
        if not file.is_file():
            continue
        try:
            with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=1)) as database:
                said = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
        except sqlite3.DatabaseError as error:
            said = str(error)
        if said == "ok":
            yield Finding("databases", State.GOOD, f"{name} is whole")
        else:
            remedy = f"close the app and move {name} away; it is made anew, and the old file can still be searched"
            yield Finding("databases", State.PROBLEM, f"{name} is damaged", remedy, (str(file), said))


CHECKS: dict[str, Check] = {
    "system": _check_system,
    "memory": _check_memory,
    "mlx": _check_mlx,
    "disk": _check_disk,
    "port": _check_port,
    "models": _check_models,
    "hub_cache": _check_hub_cache,
    "caches": _check_caches,
    "databases": _check_databases,
}


# -- facts


def _folders() -> dict[str, Path]:
    return {"models": hub_cache.root(), "caches": cache_dir(), "chats and settings": data_dir()}


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
