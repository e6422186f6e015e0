"""What the machine runs under: read from what the systems print, and what a race makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from slipstream_app.models import conditions
from slipstream_app.models.conditions import Conditions, Level

SWAP = "total = 2048.00M  used = 1024.50M  free = 1023.50M  (encrypted)"


@pytest.mark.parametrize(("status", "online", "told"), [("Discharging", "0", True), ("Charging", "1", False)])
def test_the_battery_is_noticed(tmp_path: Path, status: str, online: str, told: bool) -> None:
    for name, kind, field, value in (("BAT0", "Battery", "status", status), ("AC", "Mains", "online", online)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "type").write_text(f"{kind}\n")
        (tmp_path / name / field).write_text(f"{value}\n")
    assert conditions.of_linux(tmp_path / "proc", tmp_path).on_battery is told


@pytest.mark.parametrize(("share", "level"), [("0.00", Level.NOMINAL), ("12.50", Level.RAISED), ("60.00", Level.HIGH)])
def test_linux_says_how_long_programs_waited_for_memory(tmp_path: Path, share: str, level: Level) -> None:
    (tmp_path / "pressure").mkdir()
    stalls = f"some avg10={share} avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    (tmp_path / "pressure" / "memory").write_text(stalls)
    (tmp_path / "meminfo").write_text("MemTotal: 100 kB\nSwapTotal: 4096 kB\nSwapFree: 1024 kB\n")
    found = conditions.of_linux(tmp_path, tmp_path / "none")
    assert found == Conditions(None, level, 3072 * 1024, on_battery=False)


def test_where_nothing_is_said_nothing_is_known(tmp_path: Path) -> None:
    assert conditions.of_linux(tmp_path, tmp_path) == Conditions()
    assert conditions.of_macos("", "", "", "") == Conditions()
    assert Conditions().is_calm


@pytest.mark.parametrize(
    ("heat", "memory", "power", "expected"),
    [
        (f"{conditions._HEAT} 0", f"1\n{SWAP}", "Now drawing from 'AC Power'", (Level.NOMINAL, Level.NOMINAL, False)),
        (f"{conditions._HEAT} 1", f"2\n{SWAP}", "Now drawing from 'Battery Power'", (Level.RAISED, Level.RAISED, True)),
        (f"{conditions._HEAT} 3", f"4\n{SWAP}", "", (Level.HIGH, Level.HIGH, False)),
    ],
)
def test_macos_says_it_in_its_own_words(
    heat: str, memory: str, power: str, expected: tuple[Level, Level, bool]
) -> None:
    found = conditions.of_macos(heat, memory, power, "")
    assert (found.thermal, found.pressure, found.on_battery) == expected
    assert found.swap_bytes == int(1024.5 * 2**20)
    assert found.is_calm is (expected[0] is Level.NOMINAL)


@pytest.mark.parametrize(
    ("settings", "is_low"),
    [(" lowpowermode         1", True), (" powermode            1", True), (" lowpowermode         0", False)],
)
def test_macos_says_whether_it_saves_power(settings: str, is_low: bool) -> None:
    said = f"Currently in use:\n standby              1\n{settings}\n hibernatemode        3"
    assert conditions.of_macos("", "", "", said) == Conditions(low_power=is_low)
    assert (Conditions(low_power=is_low).for_speed == Conditions().for_speed) is not is_low
