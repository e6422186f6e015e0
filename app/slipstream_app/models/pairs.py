"""Pairs of a target and its drafter: what the Models screen shows and asks. What answers is in `models/store.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from slipstream.store.candidate import Candidate
from slipstream.store.local import Place
from slipstream.store.memory import Kind
from slipstream.types import Mode
from slipstream_app.bridge.pair import BUILT_IN, PairChoice
from slipstream_app.numbers import number_text, size_text
from slipstream_app.precision import precision_text

Index = QModelIndex | QPersistentModelIndex
PAIR, BITS, DISK, PEAK, SPEED, KEEP, STATE = range(7)
MUCH, WHOLE = 1.1, 3.0  # times the limit: from there on it is said, and in whole numbers
CONTEXTS = tuple(2**power for power in range(12, 19))  # 4k to 256k


class Shelf(StrEnum):
    ON_MAC = "on this machine"
    SUGGESTED = "suggested"


class FitWord(StrEnum):
    FITS = "fits"
    TIGHT = "tight"
    TOO_LARGE = "too large"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Missing:
    """A half that is not on this machine."""

    repo: str
    bytes: int | None  # None: nobody knows before the hub was asked
    files: tuple[str, ...] = ()  # beside the usual ones


@dataclass(frozen=True, slots=True)
class Half:
    """A model or a drafter that is on this machine."""

    name: str
    folder: Path
    files: tuple[tuple[str, int], ...]  # names in the folder, and bytes
    licence: str = ""  # as its files or the catalogue say; empty: neither does


@dataclass(frozen=True, slots=True)
class PairRow:
    """A pair as it is on disk now, or as it could be had."""

    key: str  # stays the same from look to look
    choice: PairChoice
    shelf: Shelf
    bits: str
    bytes: int | None  # on disk, or to be fetched; None: unknown
    context: int | None  # the model's own limit
    missing: tuple[Missing, ...] = ()
    problem: str = ""  # why it cannot be used, in a sentence with what to do
    facts: tuple[str, ...] = ()  # where its figures come from, and what else there is to know
    place: Place | None = None  # where it was found
    folder: Path | None = None
    halves: tuple[Half, ...] = ()  # what is here of it, the model first
    licence: str = ""  # of one that is not here
    modes: tuple[Mode, ...] = ()  # who drafts in it
    published_speedup: float | None = None  # against plain decoding, on somebody else's machine
    is_removable: bool = False
    is_made_here: bool = False  # its drafter was trained on this machine

    @property
    def title(self) -> str:
        return self.choice.title

    @property
    def target_title(self) -> str:
        return self.title.partition(" + ")[0]

    @property
    def is_ready(self) -> bool:
        return not self.missing and not self.problem

    @property
    def is_built_in(self) -> bool:
        return self.choice == BUILT_IN


@dataclass(frozen=True, slots=True)
class PairFit:
    """What a pair takes at a context, in bytes, against what this machine can give."""

    word: FitWord
    target: int = 0
    drafter: int = 0
    cache: int = 0
    working: int = 0
    limit: int = 0
    limit_name: Kind = "free memory"
    longest_context: int = 0
    loading: int = 0  # beside the weights, before there is a context
    is_estimate: bool = False  # by what was published of it; the hub was not asked
    lacks_drafter: bool = False  # whose size nobody published: it is not counted

    @property
    def is_known(self) -> bool:
        return self.word is not FitWord.UNKNOWN

    @property
    def total(self) -> int:
        """At the worst moment, as `slipstream models fit` counts it."""
        return self.target + self.drafter + max(self.cache + self.working, self.loading)


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """What deleting would take away, to the file."""

    title: str
    files: tuple[tuple[Path, int], ...]
    kept: tuple[tuple[Path, str], ...] = ()
    shared_with: str = ""
    handle: object = None  # for the store

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)


class Fetch(StrEnum):
    WAITING = "waiting"
    LOOKING = "looking"
    RUNNING = "running"
    RETRYING = "retrying"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DownloadState:
    repo: str
    fetch: Fetch
    done: int = 0
    total: int = 0
    files: tuple[tuple[str, int, int], ...] = ()  # name, bytes here, bytes in all
    bytes_per_s: float = 0.0
    remaining_s: float | None = None
    words: str = ""  # why it waits or failed
    page: str = ""  # where terms are accepted
    is_offline: bool = False
    wants_token: bool = False  # the hub wants to know who asks
    is_full: bool = False  # the disk

    @property
    def is_over(self) -> bool:
        return self.fetch is Fetch.DONE


class Store(Protocol):
    """Everything here but `start`, `pause` and `close` may wait for the disk: call it off the main thread.

    Each raises SlipstreamError when it cannot be done.
    """

    def pairs(self) -> Sequence[PairRow]: ...
    def unfinished(self) -> Sequence[DownloadState]: ...
    def fit(self, row: PairRow, context: int, kv_bits: int) -> PairFit: ...
    def look_up(self, row: PairRow) -> None:
        """Ask the hub about a pair that is not here; `fit` knows more then."""
        ...

    def plan_removal(self, row: PairRow) -> RemovalPlan: ...
    def remove(self, plan: RemovalPlan) -> str: ...
    def target_numbers(self, row: PairRow) -> Candidate:
        """Of a pair whose model is here, by its config and headers alone: nothing is converted."""
        ...

    def add_folder(self, folder: Path) -> None: ...
    def save_token(self, token: str) -> None:
        """Of the Hugging Face hub, for this and later downloads."""
        ...

    def start(self, missing: Missing) -> None: ...
    def pause(self, repo: str) -> None: ...
    def discard(self, repo: str) -> None:
        """Delete what is here of a download that is not finished."""
        ...

    def close(self) -> None: ...


OpenStore = Callable[[Callable[[DownloadState], None]], Store]  # the function hears of downloads, on any thread


@dataclass(slots=True)
class _Seen:
    """What is known beside a row."""

    fits: dict[str, PairFit] = field(default_factory=dict[str, PairFit])
    speeds: dict[str, str] = field(default_factory=dict[str, str])  # by title, as a race measured them here
    stays: dict[str, int] = field(default_factory=dict[str, int])  # by key: minutes that hold; 0: always
    pinned: frozenset[str] = frozenset()  # keys of pairs whose own word that is
    loaded: PairChoice | None = None


class PairTable(QAbstractTableModel):
    """The rows of one shelf that match the words looked for."""

    FIT = int(Qt.ItemDataRole.UserRole)  # PairFit, for the bar
    ROW = FIT + 1  # PairRow

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._all: tuple[PairRow, ...] = ()
        self._rows: list[PairRow] = []
        self._seen = _Seen()
        self._shelf = Shelf.ON_MAC
        self._words: list[str] = []
        self._fits_only = False

    @property
    def everything(self) -> tuple[PairRow, ...]:
        return self._all

    def row(self, number: int) -> PairRow:
        return self._rows[number]

    def number_of(self, key: str) -> int | None:
        return next((number for number, row in enumerate(self._rows) if row.key == key), None)

    def number_with(self, choice: PairChoice) -> int | None:
        """Of the row that this choice loads."""
        return next((number for number, row in enumerate(self._rows) if row.choice == choice), None)

    def fit_of(self, row: PairRow) -> PairFit | None:
        return self._seen.fits.get(row.key)

    def take(self, rows: Sequence[PairRow]) -> None:
        self._all = tuple(rows)
        self._choose()

    def take_fits(self, fits: dict[str, PairFit]) -> None:
        self._seen.fits = fits
        if self._fits_only:
            self._choose()
        elif self._rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._rows) - 1, STATE))

    def take_loaded(self, choice: PairChoice | None) -> None:
        self._seen.loaded = choice
        if self._rows:
            self.dataChanged.emit(self.index(0, STATE), self.index(len(self._rows) - 1, STATE))

    def take_speeds(self, speeds: dict[str, str]) -> None:
        self._seen.speeds = speeds
        if self._rows:
            self.dataChanged.emit(self.index(0, SPEED), self.index(len(self._rows) - 1, SPEED))

    def take_stays(self, stays: dict[str, int], pinned: frozenset[str]) -> None:
        """How long each stays loaded while nothing is asked, by key: minutes, 0: always."""
        self._seen.stays, self._seen.pinned = stays, pinned
        if self._rows:
            self.dataChanged.emit(self.index(0, KEEP), self.index(len(self._rows) - 1, KEEP))

    def filter(self, shelf: Shelf, words: str, *, fits_only: bool) -> None:
        self._shelf, self._words, self._fits_only = shelf, words.lower().split(), fits_only
        self._choose()

    def _choose(self) -> None:
        self.beginResetModel()
        self._rows = [row for row in self._all if self._matches(row)]
        self.endResetModel()

    def _matches(self, row: PairRow) -> bool:
        if row.shelf is not self._shelf:
            return False
        fit = self._seen.fits.get(row.key)
        if self._fits_only and (fit is None or fit.word not in (FitWord.FITS, FitWord.TIGHT)):
            return False
        text = " ".join((row.title, row.bits, *(half.repo for half in row.missing))).lower()
        return all(word in text for word in self._words)

    def is_loaded(self, row: PairRow) -> bool:
        """Also without its drafter: then it is the first of the pairs with this model."""
        loaded = self._seen.loaded
        if loaded is None or loaded == row.choice:
            return loaded is not None
        if loaded.drafters != () or any(one.choice == loaded for one in self._all):
            return False
        same = (one for one in self._all if one.shelf is Shelf.ON_MAC and one.choice.target == loaded.target)
        return next(same, None) is row

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else 7

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if section in (DISK, SPEED) else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        if orientation != Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        return (
            self.tr("Pair"),
            self.tr("Bits"),
            self.tr("Disk"),
            self.tr("Memory at this context"),
            self.tr("Speed here"),
            self.tr("Stays loaded"),
            self.tr("State"),
        )[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], index.column()
        if role == Qt.ItemDataRole.TextAlignmentRole and column in (DISK, SPEED):
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        text = self._text(row, column)
        return {
            int(Qt.ItemDataRole.DisplayRole): text,
            int(Qt.ItemDataRole.AccessibleTextRole): f"{self.headerData(column, Qt.Orientation.Horizontal)}: {text}",
            int(Qt.ItemDataRole.ToolTipRole): row.problem or None,
            self.FIT: self._seen.fits.get(row.key),
            self.ROW: row,
        }.get(int(role))

    def _text(self, row: PairRow, column: int) -> str:
        return {
            PAIR: row.title,
            BITS: precision_text(row.bits),
            DISK: "–" if row.bytes is None else size_text(row.bytes),
            PEAK: self._fit_text(row),
            SPEED: self._seen.speeds.get(row.title, self.tr("not measured") if row.is_ready else "–"),
            KEEP: self._keep_text(row),
            STATE: self.state_text(row),
        }[column]

    def _keep_text(self, row: PairRow) -> str:
        minutes = self._seen.stays.get(row.key)
        if minutes is None:
            return "–"
        if row.key in self._seen.pinned:
            return self.tr("pinned")
        return self.tr("%n min", "", minutes) if minutes else self.tr("always")

    def _fit_text(self, row: PairRow) -> str:
        fit = self._seen.fits.get(row.key)
        if fit is None:
            return "…"  # it is being worked out
        if fit.word is FitWord.UNKNOWN:
            return self.tr("unknown")
        words = {
            FitWord.FITS: self.tr("fits"),
            FitWord.TIGHT: self.tr("tight"),
            FitWord.TOO_LARGE: self.tr("too large"),
        }
        return f"{words[fit.word]}, {size_text(fit.total)} / {size_text(fit.limit)}"

    def state_text(self, row: PairRow) -> str:
        if self.is_loaded(row):
            is_whole = self._seen.loaded == row.choice
            return self.tr("Loaded") if is_whole else self.tr("Loaded without drafter")
        if row.problem:
            return self.tr("Cannot be used")
        if not row.missing:
            return self.tr("Ready")
        if row.shelf is Shelf.ON_MAC:
            size = sum(half.bytes or 0 for half in row.missing)
            return self.tr("Drafter missing, {0}").format(size_text(size)) if size else self.tr("Drafter missing")
        fit = self._seen.fits.get(row.key)
        if fit is not None and fit.word is FitWord.TOO_LARGE and fit.total >= MUCH * fit.limit > 0:
            return self.tr("Needs {0}× the memory here").format(_times(fit.total / fit.limit))
        return self.tr("Not downloaded")


def _times(ratio: float) -> str:
    return number_text(ratio, 0) if round(ratio, 1) >= WHOLE else number_text(ratio)
