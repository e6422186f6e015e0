"""Finished requests of the last 30 days, on this machine alone: a row each, without any text."""

from __future__ import annotations

import logging
import queue
import sqlite3
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from slipstream_app.models.telemetry import Ended, csv_text

logger = logging.getLogger(__name__)

KEPT_DAYS = 30
_DAY_S = 86_400
_TABLE = (
    "CREATE TABLE IF NOT EXISTS requests (at REAL NOT NULL, source TEXT NOT NULL, output INTEGER NOT NULL,"
    " prompt INTEGER NOT NULL, reused INTEGER NOT NULL, tps REAL NOT NULL, ttft REAL NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class DayRow:
    """One source's day."""

    day: date
    source: str
    requests: int
    tokens: int
    tps_median: float | None
    tps_p10: float | None  # nine of ten answers were at least this fast
    cached_share: float | None


class TelemetryHistory(QObject):
    """The file has a thread of its own: no disk stalls the window. A file that cannot be used keeps nothing."""

    read = Signal(object)  # tuple[DayRow, ...], newest day first

    def __init__(self, file: Path, clock: Callable[[], float] = time.time, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._file = file
        self._clock = clock
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._base: sqlite3.Connection | None = None

    @Slot(object)
    def add(self, ended: Ended) -> None:
        self._do(lambda: self._add(ended))

    def ask(self) -> None:
        """`read` follows."""
        self._do(self._read)

    def clear(self) -> None:
        self._do(self._clear)
        self.ask()

    def close(self) -> None:
        """After what was added has been written."""
        if self._thread is not None:
            self._work.put(None)
            self._thread.join()
            self._thread = None

    def _do(self, work: Callable[[], None]) -> None:
        if self._thread is None:
            # It dies with the program even if nobody closes this: a lost row of figures is no lost word.
            self._thread = threading.Thread(target=self._run, name="slipstream-telemetry", daemon=True)
            self._thread.start()
        self._work.put(work)

    # On the file's thread.

    def _run(self) -> None:
        is_broken = False
        while (work := self._work.get()) is not None:
            if is_broken:
                continue
            try:
                work()
            except (sqlite3.Error, OSError) as error:
                is_broken = True
                logger.warning("the history of speeds cannot be kept in %s: %s", self._file, error)
        if self._base is not None:
            self._base.close()
            self._base = None

    def _open(self) -> sqlite3.Connection:
        if self._base is None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            base = sqlite3.connect(self._file, isolation_level=None)
            base.execute("PRAGMA journal_mode=WAL")
            base.execute("PRAGMA synchronous=NORMAL")
            base.execute(_TABLE)
            base.execute("DELETE FROM requests WHERE at < ?", (self._clock() - KEPT_DAYS * _DAY_S,))
            self._base = base
        return self._base

    def _add(self, ended: Ended) -> None:
        timings = ended.timings
        row = (
            ended.at_s,
            ended.source,
            timings.output_tokens,
            timings.prompt_tokens,
            timings.reused_tokens,
            timings.decode_tps,
            timings.ttft_s,
        )
        self._open().execute("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def _read(self) -> None:
        kept = "SELECT at, source, output, prompt, reused, tps FROM requests WHERE at >= ? ORDER BY at"
        groups: dict[tuple[date, str], list[tuple[int, int, int, float]]] = defaultdict(list)
        for at, source, *figures in self._open().execute(kept, (self._clock() - KEPT_DAYS * _DAY_S,)):
            groups[datetime.fromtimestamp(at).date(), source].append(tuple(figures))
        rows = [_day(day, source, requests) for (day, source), requests in groups.items()]
        rows.sort(key=lambda row: row.source)
        rows.sort(key=lambda row: row.day, reverse=True)
        # The program may be ending, and its objects with it.
        with suppress(RuntimeError):
            self.read.emit(tuple(rows))

    def _clear(self) -> None:
        self._open().execute("DELETE FROM requests")


def _day(day: date, source: str, requests: list[tuple[int, int, int, float]]) -> DayRow:
    speeds = sorted(tps for *_, tps in requests if tps > 0)
    prompt = sum(prompt for _, prompt, _, _ in requests)
    return DayRow(
        day,
        source,
        len(requests),
        sum(output for output, *_ in requests),
        statistics.median(speeds) if speeds else None,
        speeds[(len(speeds) - 1) // 10] if speeds else None,
        sum(reused for _, _, reused, _ in requests) / prompt if prompt else None,
    )


def history_csv(rows: tuple[DayRow, ...]) -> str:
    lines = ["day,source,requests,tokens,tps_median,tps_p10,cached_share"]
    for row in rows:
        figures = ("" if value is None else f"{value:.3f}" for value in (row.tps_median, row.tps_p10, row.cached_share))
        lines.append(f"{row.day},{csv_text(row.source)},{row.requests},{row.tokens},{','.join(figures)}")
    return "\n".join(lines) + "\n"
