"""Whether this machine runs on its battery, which makes speeds of a moment ago and of now another thing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_SUPPLIES = Path("/sys/class/power_supply")


def on_battery(supplies: Path = _SUPPLIES) -> bool:
    """False where there is no battery, or nobody knows."""
    if sys.platform == "darwin":
        try:
            told = subprocess.run(
                ["/usr/bin/pmset", "-g", "batt"], capture_output=True, text=True, timeout=2, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return "Battery Power" in told.stdout
    return _reads(supplies, "Battery", "status", "Discharging") and not _reads(supplies, "Mains", "online", "1")


def _reads(supplies: Path, kind: str, name: str, value: str) -> bool:
    """Whether a supply of this kind says `value` in its file `name`."""
    for supply in supplies.glob("*"):
        try:
            if (supply / "type").read_text().strip() == kind and (supply / name).read_text().strip() == value:
                return True
        except OSError:
            continue
    return False
