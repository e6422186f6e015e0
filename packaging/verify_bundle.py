"""Checks a built app: its plist, its libraries, what must lie where; with --selftest it runs it too, which needs a Mac.

    python packaging/verify_bundle.py build/dist/Slipstream.app [--selftest]

Ends with 1 and one line for each fault.
"""

from __future__ import annotations

import argparse
import json
import os
import plistlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bundle
import machos

START_LIMIT_S = 120.0
STAYS_UP_S = 10.0
SELFTEST_PORT = 8799
MAXIMUM_BYTES = 450_000_000  # without the built-in target
RESOURCES = ("catalog.toml", "icons/send.svg", "i18n/slipstream_de.qm", "demo/SmolLM2-135M-DSpark/config.json")


def faults(app: Path) -> Iterator[str]:
    """Everything that can be seen without running it."""
    contents = app / "Contents"
    if not (contents / "Info.plist").is_file():
        yield f"{app} is no app: Contents/Info.plist is missing"
        return
    yield from _plist_faults(contents)
    resources = contents / "Resources"
    for name in RESOURCES:
        if not (resources / "resources" / name).is_file():
            yield f"Resources/resources/{name} is missing"
    if not list((resources / "resources" / "demo").glob("*.gguf")):
        yield "the built-in target is missing: the first start would need the network"
    if not (resources / "THIRD_PARTY_NOTICES.txt").is_file():
        yield "Resources/THIRD_PARTY_NOTICES.txt is missing"
    program = resources / "bin" / "slipstream"
    if not os.access(program, os.X_OK):
        yield "Resources/bin/slipstream is missing or cannot be run"
    for item in (contents / "MacOS").iterdir() if (contents / "MacOS").is_dir() else ():
        if not machos.is_macho(item):
            yield f"MacOS/{item.name} is no program; a strict signature refuses it there"
    yield from _library_faults(contents)
    target = sum(path.stat().st_size for path in (resources / "resources" / "demo").glob("*.gguf"))
    if (size := bundle.size_of(app) - target) > MAXIMUM_BYTES:
        yield f"{size:,} bytes without the built-in target are more than {MAXIMUM_BYTES:,}"


def _plist_faults(contents: Path) -> Iterator[str]:
    with (contents / "Info.plist").open("rb") as file:
        told = plistlib.load(file)
    for key, value in bundle.plist().items():
        if told.get(key) != value:
            yield f"Info.plist: {key} is {told.get(key)!r}, not {value!r}"
    executable = told.get("CFBundleExecutable", "")
    if not (contents / "MacOS" / executable).is_file() or not executable:
        yield f"Info.plist names MacOS/{executable}, which is not there"
    if not (contents / "Resources" / str(told.get("CFBundleIconFile", ""))).is_file():
        yield f"the icon {told.get('CFBundleIconFile')} is missing"


def _library_faults(contents: Path) -> Iterator[str]:
    look = machos.look(contents, outside=("/Python",))
    floor = machos.number(bundle.MINIMUM_MACOS)
    for path, names in look.missing.items():
        yield f"{path.relative_to(contents)} loads {', '.join(names)}, which is missing"
    for path in look.foreign:
        yield f"{path.relative_to(contents)} has no arm64 code"
    for image in look.images:
        if machos.number(image.minimum_macos) > floor:
            yield f"{image.path.relative_to(contents)} needs macOS {image.minimum_macos}"
    for name, paths in look.duplicates.items():
        yield f"{name} is there {len(paths)} times: {', '.join(str(path.relative_to(contents)) for path in paths)}"
    mlx = [image.path for image in look.images if image.path.name == "libmlx.dylib"]
    if not mlx:
        yield "libmlx.dylib is missing"
    for path in mlx:
        if not (path.parent / "mlx.metallib").is_file():
            yield f"mlx.metallib does not lie beside {path.relative_to(contents)}, where MLX looks for it"
    if not any(image.path.name == "libqcocoa.dylib" for image in look.images):
        yield "Qt's cocoa plugin is missing: no window could open"
    for framework in contents.rglob("*.framework"):
        if not (framework / "Versions" / "Current").is_symlink():
            yield f"{framework.relative_to(contents)} lacks the link Versions/Current; codesign refuses it"


# -- running it, on a Mac


def selftest(app: Path) -> Iterator[str]:
    """An answer on Metal, `train`, the server's health, and the window, all in a home folder of its own."""
    program = str(app / "Contents" / "MacOS" / bundle.NAME)
    home = Path(tempfile.mkdtemp(prefix="slipstream-selftest-"))
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1", "TMPDIR": str(home)}
    try:
        yield from _answers(program, environment)
        yield from _trains(program, environment)
        yield from _serves(program, environment)
        yield from _opens(program, environment, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _answers(program: str, environment: dict[str, str]) -> Iterator[str]:
    command = [program, "generate", "--prompt", "Count to five.", "--max-tokens", "16", "--json"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=START_LIMIT_S * 3, check=False
    )
    try:
        said: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        yield f"no answer: {done.stderr.strip()[-500:]}"
        return
    if not said["token_ids"]:
        yield "the answer is empty"
    doctor = subprocess.run(
        [program, "doctor", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=START_LIMIT_S,
        check=False,
    )
    problems = [finding for finding in json.loads(doctor.stdout) if finding["state"] == "problem"]
    yield from (f"doctor: {finding['said']}" for finding in problems)
    if not any(f["check"] == "mlx" and "GPU" in f["said"] for f in json.loads(doctor.stdout)):
        yield "MLX did not compute on the GPU"


def _trains(program: str, environment: dict[str, str]) -> Iterator[str]:
    """The window makes drafters by running the app itself as `train`; see `train/process.py`."""
    done = subprocess.run(
        [program, "train", "--help"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=START_LIMIT_S,
        check=False,
    )
    if done.returncode or "--conversations" not in done.stdout:
        yield f"train does not run: {done.stderr.strip()[-500:]}"


def _serves(program: str, environment: dict[str, str]) -> Iterator[str]:
    server = subprocess.Popen(
        [program, "serve", "--port", str(SELFTEST_PORT)], env=environment, stdout=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + START_LIMIT_S
        while time.monotonic() < end and server.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{SELFTEST_PORT}/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(1)
        yield "the server's /health did not answer"
    finally:
        server.terminate()
        server.wait(timeout=30)


def _opens(program: str, environment: dict[str, str], home: Path) -> Iterator[str]:
    """The app gets as far as its history, which is opened just before the window, and stays up afterwards."""
    history = home / "Library" / "Application Support" / bundle.NAME / "chats.db"
    window = subprocess.Popen([program], env=environment)
    try:
        end = time.monotonic() + START_LIMIT_S
        while time.monotonic() < end and not history.exists() and window.poll() is None:
            time.sleep(0.5)
        if not history.exists():
            yield "the app did not come to its window"
            return
        try:
            window.wait(timeout=STAYS_UP_S)
            yield f"the app ended by itself with {window.returncode}"
        except subprocess.TimeoutExpired:
            pass
    finally:
        if window.poll() is None:
            window.terminate()
            window.wait(timeout=30)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("app", type=Path)
    parser.add_argument("--selftest", action="store_true", help="run it too (Mac only)")
    args = parser.parse_args()
    if args.selftest and sys.platform != "darwin":
        print("--selftest runs the app, which needs a Mac", file=sys.stderr)
        return 2
    found = list(faults(args.app))
    if args.selftest and not found:
        found = list(selftest(args.app))
    for fault in found:
        print(f"fault: {fault}")
    if not found:
        print(f"{args.app} is in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
