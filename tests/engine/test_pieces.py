"""A load in pieces: it says how far it is by bytes that were read, and can be given up in between."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import pytest

import tiny_gguf
from slipstream.engine import pieces
from slipstream.engine.engine import open_engine
from slipstream.engine.load import Precision, load_target
from slipstream.engine.pair import Pair
from slipstream.engine.pieces import Progress, drafter_bytes
from slipstream.errors import SlipstreamError
from slipstream.events import Report
from slipstream.models import gguf, streams
from slipstream.models.target import Target
from slipstream.types import Mode
from tiny_runs import write_byte_drafter, write_target


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each module of a tiny model is a piece."""
    streams.renew()  # an engine that was closed here took them along
    monkeypatch.setattr(pieces, "LEAST_PIECE", 1)


def load(folder: Path, precision: Precision, report: Report) -> Target:
    return load_target(folder, precision, progress=Progress(report))


def test_bytes_add_up_to_the_weights_on_disk(tmp_path: Path) -> None:
    folder = write_target(tmp_path / "target")
    told: list[tuple[int, int]] = []
    load(folder, Precision(), lambda done, total: told.append((done, total)))
    stored = sum(array.nbytes for array in mx.load(str(folder / "model.safetensors")).values())  # pyright: ignore
    assert {total for _, total in told} == {stored}
    done = [done for done, _ in told]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, stored)
    assert len(set(done)) > 10, "not at the end alone"


def test_packed_weights_count_as_they_are_stored_whatever_they_become(tmp_path: Path) -> None:
    """Unpacked to float32, as on a CPU, they take several times as much memory; the bar is about the disk."""
    source = tiny_gguf.tiny_gguf().write(tmp_path / "model.gguf")
    gguf.convert(source, tmp_path / "model")
    told: list[tuple[int, int]] = []
    target = load(tmp_path / "model", Precision("float32", unpack=True), lambda *at: told.append(at))
    stored = sum(a.nbytes for a in mx.load(str(tmp_path / "model" / "model.safetensors")).values())  # pyright: ignore
    assert told[-1] == (stored, stored)
    assert target.read_bytes > stored


def test_pieces_give_the_same_weights_as_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_target(tmp_path / "target")
    in_pieces = load_target(folder, Precision())
    monkeypatch.setattr(pieces, "LEAST_PIECE", 2**40)
    at_once = load_target(folder, Precision())
    assert len(pieces.stored_bytes(at_once.model)) > 10
    one, other = (pieces._by_module(target.model) for target in (in_pieces, at_once))
    for name, arrays in one.items():
        assert all(mx.array_equal(a, b) for a, b in zip(arrays, other[name], strict=True)), name


def test_drafters_are_part_of_the_whole_and_come_last(tmp_path: Path) -> None:
    folder = write_target(tmp_path / "target")
    drafter = write_byte_drafter(tmp_path / "drafter", Mode.DSPARK)
    told: list[tuple[int, int]] = []
    open_engine(Pair(folder, (drafter,), guard_memory=False), report=lambda *at: told.append(at)).close()
    size = drafter_bytes(drafter)
    assert size == (drafter / "model.safetensors").stat().st_size
    assert told[-1][0] == told[-1][1]
    assert told[-2] == (told[-1][0] - size, told[-1][1])


def test_a_drafter_whose_weights_are_a_dead_link_is_refused_in_words(tmp_path: Path) -> None:
    folder = write_target(tmp_path / "target")
    drafter = write_byte_drafter(tmp_path / "drafter", Mode.DSPARK)
    (drafter / "model.safetensors").unlink()
    (drafter / "model.safetensors").symlink_to(tmp_path / "gone")
    with pytest.raises(SlipstreamError):
        open_engine(Pair(folder, (drafter,), guard_memory=False), report=lambda *_: None)


@pytest.mark.parametrize("after", [0, 1, 5])
def test_a_report_that_raises_ends_the_load(tmp_path: Path, after: int) -> None:
    class GivenUp(Exception):
        pass

    told: list[int] = []

    def report(done: int, _: int) -> None:
        told.append(done)
        if len(told) > after:
            raise GivenUp

    folder = write_target(tmp_path / "target")
    with pytest.raises(GivenUp):
        open_engine(Pair(folder, guard_memory=False), report=report)
    assert len(told) == after + 1
