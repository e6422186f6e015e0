"""What this machine is, and what only a Mac can do: opening at login, showing a file in the Finder."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

IS_MAC = sys.platform == "darwin"
AGENT = "org.slipstream.app"
# What Metal lets a program wire when nothing else is set, as a share of memory.
GPU_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Machine:
    chip: str
    memory_bytes: int
    gpu_bytes: int  # what the GPU may use; all of the memory where there is no such limit
    system: str  # "macOS 26.1"
    disk_free_bytes: int


def machine(folder: Path) -> Machine:
    """`folder`: where models would go; it need not exist."""
    import shutil

    while not folder.exists():
        folder = folder.parent
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if IS_MAC:
        chip = _sysctl("machdep.cpu.brand_string") or platform.machine()
        limit = int(_sysctl("iogpu.wired_limit_mb") or 0) * 2**20
        gpu = limit or int(memory * GPU_SHARE)
        system = f"macOS {platform.mac_ver()[0]}"
    else:
        chip, gpu, system = _linux_chip(), memory, f"{platform.system()} {platform.release()}"
    return Machine(chip, memory, gpu, system, shutil.disk_usage(folder).free)


def set_login_item(is_on: bool, agents: Path | None = None) -> None:
    """A launch agent that starts the app without a window. Takes effect at the next login. Raises OSError."""
    import plistlib

    folder = agents or Path.home() / "Library" / "LaunchAgents"
    file = folder / f"{AGENT}.plist"
    if not is_on:
        file.unlink(missing_ok=True)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        plistlib.dump({"Label": AGENT, "ProgramArguments": _program(), "RunAtLoad": True}, out)


def _program() -> list[str]:
    if getattr(sys, "frozen", None) == "macosx_app":
        app = Path(os.environ["RESOURCEPATH"]).parents[1]
        return ["/usr/bin/open", "-g", "-a", str(app), "--args", "--hidden"]
    return [sys.executable, "-m", "slipstream_app", "--hidden"]


def _sysctl(name: str) -> str:
    import subprocess

    try:
        done = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=2, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _linux_chip() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()
