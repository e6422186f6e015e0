"""Cost curves on disk: by model, power state and drafter."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from slipstream.curves import Curves
from slipstream.store import curves, machine
from slipstream.store.paths import cache_dir
from slipstream.types import Mode

TABLE = {128: {1: 10.0, 8: 17.5}}
KEY = curves.key_of("a model")
PARTS = {Mode.DSPARK: "dspark-float32-0-abc", Mode.DFLASH: "dflash-float32-0-def"}


@pytest.fixture
def power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What powers the machine, changed by the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    state = ["mains"]
    monkeypatch.setattr(machine, "power", lambda: state[0])
    return state


def test_what_is_written_is_read(power: list[str]) -> None:
    curves.write(KEY, Curves(TABLE, {"dspark": TABLE}, {128: {32: 500.0}}), PARTS)
    found = curves.read(KEY, PARTS)
    assert found is not None
    assert found.curves == Curves(TABLE, {"dspark": TABLE}, {128: {32: 500.0}})
    assert found.power == "mains"
    assert curves.read(curves.key_of("another model"), PARTS) is None


def test_each_power_state_has_its_own(power: list[str]) -> None:
    curves.write(KEY, Curves(TABLE), {})
    power[0] = "battery"
    assert curves.read(KEY) is None
    slow = {128: {1: 30.0}}
    curves.write(KEY, Curves(slow), {})
    found, other = curves.read(KEY), curves.read(KEY, power="mains")
    assert found is not None
    assert found.curves.target == slow
    assert other is not None
    assert other.curves.target == TABLE


def test_a_drafter_is_known_by_its_files(power: list[str]) -> None:
    """Another one's curves of the same kind are not taken for its own, and stay when others are measured."""
    curves.write(KEY, Curves(TABLE, {"dspark": TABLE}), PARTS)
    retrained = {Mode.DSPARK: "dspark-float32-0-new"}
    found = curves.read(KEY, retrained)
    assert found is not None
    assert found.curves.drafters == {}
    curves.write(KEY, Curves(TABLE, {"dspark": {128: {7: 1.0}}}), retrained)
    old, new = curves.read(KEY, PARTS), curves.read(KEY, retrained)
    assert old is not None
    assert old.curves.drafters == {"dspark": TABLE}
    assert new is not None
    assert new.curves.drafters == {"dspark": {128: {7: 1.0}}}


@pytest.mark.parametrize("damage", ["", "{", '{"format": 1}', '{"format": 1, "states": {"mains": 3}}', "[]"])
def test_a_damaged_file_is_as_none(power: list[str], damage: str) -> None:
    curves.write(KEY, Curves(TABLE), {})
    (file,) = (cache_dir() / "curves").glob("*.json")
    assert json.loads(file.read_text())["states"]["mains"]["target"] == {"128": {"1": 10.0, "8": 17.5}}
    file.write_text(damage)
    assert curves.read(KEY) is None
    curves.write(KEY, Curves(TABLE), {})
    assert curves.read(KEY) is not None


@pytest.mark.parametrize(("ms", "is_read"), [(9.0, True), (-1.0, False), (math.nan, False), (math.inf, False)])
def test_times_that_nobody_measured_are_as_none(power: list[str], ms: float, is_read: bool) -> None:
    curves.write(KEY, Curves({128: {1: 10.0, 8: ms}}), {})
    assert (curves.read(KEY) is not None) is is_read


@pytest.mark.parametrize("number", ["bandwidth", "weight_bytes", "row_bytes"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_figures_that_nobody_measured_are_as_none(power: list[str], number: str, value: float) -> None:
    curves.write(KEY, replace(Curves(TABLE), **{number: value}), {})
    assert curves.read(KEY) is None


def test_a_context_or_drafter_of_which_nothing_was_measured(power: list[str]) -> None:
    curves.write(KEY, Curves(TABLE, {"dspark": {}}), {Mode.DSPARK: "part"})
    found = curves.read(KEY)
    assert found is not None
    assert found.curves.drafters == {}
    curves.write(KEY, Curves({128: {}}), {})
    assert curves.read(KEY) is None


def test_a_machine_at_work_is_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("os.getloadavg", lambda: (6.5, 1.0, 1.0))
    assert machine.disturbance() == "busy (load 6.5 on 8 processors over the last minute)"
    monkeypatch.setattr("os.getloadavg", lambda: (1.5, 9.0, 9.0))
    assert machine.disturbance() is None


MAC = {
    ("/usr/bin/notifyutil", "-g", "com.apple.system.thermalpressurelevel"): "com.apple.system.thermalpressurelevel 2",
    ("/usr/bin/pmset", "-g"): " standby              1\n lowpowermode         1\n powernap             1",
    ("/usr/bin/pmset", "-g", "batt"): "Now drawing from 'Battery Power'\n -InternalBattery-0 (id=1) 80%; discharging",
}


def test_what_a_mac_says_of_heat_and_power(monkeypatch: pytest.MonkeyPatch) -> None:
    said = dict(MAC)
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(machine, "_told", lambda *command: said.get(command, ""))
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    assert machine.disturbance() == "hot (thermal pressure heavy)"
    assert machine.power() == "low power"
    said["/usr/bin/pmset", "-g"] = " lowpowermode         0"
    assert machine.power() == "battery"
    said.clear()
    assert machine.power() == "mains"
    assert machine.disturbance() is None


def test_a_battery_that_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_SUPPLIES", tmp_path)
    assert machine.power() == "mains"
    (tmp_path / "BAT0").mkdir()
    (tmp_path / "BAT0" / "type").write_text("Battery\n")
    (tmp_path / "BAT0" / "status").write_text("Charging\n")
    assert machine.power() == "mains"
    (tmp_path / "BAT0" / "status").write_text("Discharging\n")
    assert machine.power() == "battery"
