"""This machine: its chip and system, what powers it, and whether it is calm enough for a measurement."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

BUSY = 0.75  # of the processors at work over the last minute: from there on others take time from a measurement
_SUPPLIES = Path("/sys/class/power_supply")
_PRESSURE = "com.apple.system.thermalpressurelevel"  # OSThermalNotification.h: 0 nominal, 1 moderate, 2 heavy, …
_THERMAL = {1: "moderate", 2: "heavy"}


def facts() -> dict[str, str]:
    """The chip and the system's version, as people name them."""
    return {"chip": chip(), "system": system()}


def chip() -> str:
    if sys.platform == "darwin":
        return _told("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.machine()


def system() -> str:
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return f"{platform.system()} {platform.release()}"


def power() -> str:
    """What limits the chip's clock: "mains", "battery" or "low power". Measurements hold for one of them."""
    if sys.platform == "darwin":
        if any(line.split() == ["lowpowermode", "1"] for line in _told("/usr/bin/pmset", "-g").splitlines()):
            return "low power"
        return "battery" if "Battery Power" in _told("/usr/bin/pmset", "-g", "batt") else "mains"
    states = [_text(supply / "status") for supply in _SUPPLIES.glob("*") if _text(supply / "type") == "Battery"]
    return "battery" if "Discharging" in states else "mains"


def disturbance() -> str | None:
    """Why a measurement made now would be wrong, in words that finish "this machine is …". None: it is calm."""
    if (heat := _thermal_pressure()) is not None:
        return f"hot (thermal pressure {heat})"
    return busy()


def busy() -> str | None:
    """The part of `disturbance` that takes no time to ask."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load > BUSY * processors:
        return f"busy (load {load:.1f} on {processors} processors over the last minute)"
    return None


def _thermal_pressure() -> str | None:
    """Only macOS says."""
    if sys.platform != "darwin":
        return None
    words = _told("/usr/bin/notifyutil", "-g", _PRESSURE).split()
    level = int(words[-1]) if words and words[-1].isdigit() else 0
    return None if level == 0 else _THERMAL.get(level, "critical")


def _told(*command: str) -> str:
    """What a system's program prints; nothing where it is not there or does not answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
