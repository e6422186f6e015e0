"""A short run of the built-in pair, compared with this machine's own earlier ones: did an update change the text or
the speed, and of which part? The history is a file of the app's data; nothing is sent."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from slipstream.jobs import Inbox, events_of
from slipstream.measure.doctor import Finding, State
from slipstream.measure.result import collect, versions
from slipstream.store.atomic import exclusive, write_text
from slipstream.store.paths import data_dir
from slipstream.types import Mode, Options, Request, Text

MODES = (Mode.BASELINE, Mode.DSPARK)
PROMPT = "List the days of the week, then the months of the year, each on a line of its own."
TOKENS = 32
SLOWER = 0.7  # of the median of earlier runs: below it a part is reported; other work on the machine does less
KEPT = 50
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Record:
    """What one run came to. Speeds in tokens a second, by mode."""

    versions: dict[str, str]
    ids: dict[str, list[int]]
    prefill_tps: dict[str, float]
    decode_tps: dict[str, float]


def sing(inbox: Inbox) -> Record:
    """Run every mode once to warm up and once to measure. Raises what a job raises."""
    ids: dict[str, list[int]] = {}
    prefill: dict[str, float] = {}
    decode: dict[str, float] = {}
    for mode in MODES:
        collect(events_of(inbox, Request(Text(PROMPT), Options(mode=mode, max_tokens=4))))
    for mode in MODES:
        answer = collect(events_of(inbox, Request(Text(PROMPT), Options(mode=mode, max_tokens=TOKENS))))
        assert answer.timings is not None
        ids[mode.value] = answer.tokens
        prefill[mode.value], decode[mode.value] = answer.timings.prefill_tps, answer.timings.decode_tps
    return Record(versions() | {"release": _release()}, ids, prefill, decode)


def judge(now: Record, before: Sequence[Record]) -> list[Finding]:
    """What changed since the earlier runs on this machine, oldest first."""
    plain = Mode.BASELINE.value
    found = [
        Finding("canary", State.WARNING, f"{mode} and plain decoding said different tokens", "ask: slipstream race")
        for mode, ids in now.ids.items()
        if ids != now.ids[plain]
    ]
    if not before:
        return [*found, Finding("canary", State.GOOD, "first run: later ones are compared with it")]
    changed = _changes(before[-1].versions, now.versions)
    since = f" since {changed}" if changed else ""
    if now.ids[plain] != before[-1].ids.get(plain):
        said = f"the built-in model says other tokens{since or ', and no version changed'}"
        state = State.NOTE if changed else State.PROBLEM
        remedy = "expected where arithmetic changed; check: slipstream race" if changed else "restart this machine"
        found.append(Finding("canary", state, said, remedy))
    for part, speeds in _parts(now, before).items():
        new, old = speeds[0], median(speeds[1:])
        if new < SLOWER * old:
            said = f"{part} is slower{since}: {new:.1f} tokens a second, before {old:.1f}"
            remedy = "run it again when nothing else works; if it stays, go back a version and report it"
            found.append(Finding("canary", State.WARNING, said, remedy))
    if not found:
        speed = f"{now.decode_tps[plain]:.1f} tokens a second plain"
        found.append(Finding("canary", State.GOOD, f"same tokens and speed as before ({speed}; {len(before)} runs)"))
    return found


def _parts(now: Record, before: Sequence[Record]) -> dict[str, list[float]]:
    """Speeds of each part, this run's first. What an earlier run did not measure is left out."""
    parts = {"reading the prompt": [each.prefill_tps.get(Mode.BASELINE.value, 0.0) for each in (now, *before)]}
    for mode in now.decode_tps:
        name = "plain decoding" if mode == Mode.BASELINE.value else f"decoding with {mode}"
        parts[name] = [each.decode_tps.get(mode, 0.0) for each in (now, *before)]
    measured = {name: [speeds[0], *(each for each in speeds[1:] if each > 0)] for name, speeds in parts.items()}
    return {name: speeds for name, speeds in measured.items() if len(speeds) > 1}


def _changes(old: dict[str, str], new: dict[str, str]) -> str:
    names = [name for name in new if old.get(name) != new[name]]
    return ", ".join(f"{name} {old.get(name, 'none')} → {new[name]}" for name in names)


def _release() -> str:
    return platform.mac_ver()[0] if sys.platform == "darwin" else platform.release()


# -- the history


def history(file: Path | None = None) -> list[Record]:
    """Earlier runs, oldest first. A file that cannot be read is as if it were not there."""
    try:
        stored: Any = json.loads((file or _file()).read_text(encoding="utf-8"))
        return [Record(**each) for each in stored["runs"]] if stored["format"] == FORMAT else []
    except (OSError, ValueError, TypeError, KeyError):
        return []


def remember(record: Record, file: Path | None = None) -> None:
    """Add a run. Raises OSError when it cannot be written."""
    file = file or _file()
    with exclusive(file.with_suffix(".lock")):
        runs = [*history(file), record][-KEPT:]
        write_text(file, json.dumps({"format": FORMAT, "runs": [asdict(run) for run in runs]}) + "\n")


def _file() -> Path:
    return data_dir() / "canary.json"
