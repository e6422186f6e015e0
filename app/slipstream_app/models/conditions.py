"""What this machine runs under, that makes speeds of a moment ago and of now different things.

Heat, memory pressure, swapping, and what powers it. What the system does not say is None.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_SUPPLIES = Path("/sys/class/power_supply")
_PROC = Path("/proc")
_HEAT = "com.apple.system.thermalpressurelevel"  # OSThermalNotification.h
STALLED = 10.0  # percent of the last ten seconds that some program waited for memory: from there on it is tight
MUCH_STALLED = 40.0


class Level(StrEnum):
    NOMINAL = "nominal"
    RAISED = "raised"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Conditions:
    thermal: Level | None = None
    pressure: Level | None = None  # of memory
    swap_bytes: int | None = None
    on_battery: bool = False
    low_power: bool = False  # the system's own mode, at whatever power

    @property
    def is_calm(self) -> bool:
        return self.thermal in (None, Level.NOMINAL)

    @property
    def for_speed(self) -> tuple[Level | None, bool, bool]:
        """What must be the same before and after a measurement."""
        return self.thermal, self.on_battery, self.low_power


def read() -> Conditions:
    """Asks the system's own programs on a Mac: some hundredths of a second, not for the window's thread."""
    if sys.platform == "darwin":
        return of_macos(
            _told("/usr/bin/notifyutil", "-g", _HEAT),
            _told("/usr/sbin/sysctl", "-n", "kern.memorystatus_vm_pressure_level", "vm.swapusage"),
            _told("/usr/bin/pmset", "-g", "batt"),
            _told("/usr/bin/pmset", "-g"),
        )
    return of_linux(_PROC, _SUPPLIES)


def of_macos(heat: str, memory: str, batteries: str, power: str) -> Conditions:
    """From what notifyutil, sysctl and pmset print. Some Macs call the low power mode `powermode 1`."""
    last = heat.split()[-1:] or [""]
    thermal = _level(int(last[0]), (0, 1)) if last[0].isdigit() else None
    lines = memory.splitlines()
    known = {"1": Level.NOMINAL, "2": Level.RAISED, "4": Level.HIGH}
    pressure = known.get(lines[0].strip()) if lines else None
    words = lines[1].split() if len(lines) > 1 else []
    swap = _bytes(words[words.index("used") + 2]) if "used" in words else None
    settings = [line.split()[:2] for line in power.splitlines()]
    low_power = ["lowpowermode", "1"] in settings or ["powermode", "1"] in settings
    return Conditions(thermal, pressure, swap, "Battery Power" in batteries, low_power)


def of_linux(proc: Path, supplies: Path) -> Conditions:
    """From /proc and /sys, which do not say whether heat or a mode slows the processor."""
    pressure = None
    for line in _text(proc / "pressure" / "memory").splitlines():
        if line.startswith("some"):
            share = float(line.split("avg10=")[1].split()[0])
            pressure = Level.HIGH if share >= MUCH_STALLED else Level.RAISED if share >= STALLED else Level.NOMINAL
    sizes = {line.split(":")[0]: line.split()[1] for line in _text(proc / "meminfo").splitlines() if ":" in line}
    swap = None
    if "SwapTotal" in sizes and "SwapFree" in sizes:
        swap = (int(sizes["SwapTotal"]) - int(sizes["SwapFree"])) * 1024
    return Conditions(None, pressure, swap, _on_battery(supplies))


def _on_battery(supplies: Path) -> bool:
    """False where there is no battery, or nobody knows."""
    return _reads(supplies, "Battery", "status", "Discharging") and not _reads(supplies, "Mains", "online", "1")


def _reads(supplies: Path, kind: str, name: str, value: str) -> bool:
    """Whether a supply of this kind says `value` in its file `name`."""
    return any(
        _text(supply / "type").strip() == kind and _text(supply / name).strip() == value
        for supply in supplies.glob("*")
    )


def _level(number: int, steps: tuple[int, int]) -> Level:
    return Level.NOMINAL if number <= steps[0] else Level.RAISED if number <= steps[1] else Level.HIGH


def _bytes(text: str) -> int:
    """As sysctl writes sizes: 1024.00M."""
    return int(float(text[:-1]) * {"K": 2**10, "M": 2**20, "G": 2**30}[text[-1]])


def _told(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=3, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""
