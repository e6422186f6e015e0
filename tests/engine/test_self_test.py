"""A drafter that hardly understands its target is found out on loading, and told what it would take."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import pytest

import tiny
from slipstream.drafters import formats
from slipstream.drafters.descriptor import Descriptor
from slipstream.drafters.protocol import Drafter, Draw, Proposal
from slipstream.engine import self_test
from slipstream.engine.load import Precision, load_drafter, load_target
from slipstream.errors import UnsupportedModel
from slipstream.models.host import ints
from slipstream.models.target import Target
from slipstream.types import Mode
from tiny_runs import ScriptedState, write_target

pytestmark = pytest.mark.usefixtures("unknown_pairs")

SAMPLE = [3, 4, 5] * 16


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny.target()


class Knowing:
    """Says what the target says, `shift` places off."""

    mode, taps, block = Mode.DSPARK, (), 4

    def __init__(self, target: Target, ids: Sequence[int], shift: int = 0) -> None:
        logits = target.forward(mx.array(list(ids)), target.make_cache()).logits
        assert logits is not None
        self._truth = ints(mx.argmax(logits, axis=-1))
        self._shift = shift

    def begin(self) -> ScriptedState:
        return ScriptedState()

    def observe(self, state: ScriptedState, tokens: Sequence[int], taps: Mapping[int, mx.array]) -> None:
        state.length += len(tokens)

    def arrays(self, state: ScriptedState) -> list[mx.array]:
        return []

    def propose(self, state: ScriptedState, last: int, limit: int, draw: Draw) -> Proposal:
        at = state.length + self._shift
        return Proposal(mx.array(self._truth[at : at + min(limit, self.block)], dtype=mx.int32))


def agreeing(target: Target) -> list[int]:
    """A text of which the target itself says most: its own greedy answer."""
    ids, cache = [5, 9, 33, 71], target.make_cache()
    tokens = mx.array(ids)
    while len(ids) < 60:
        logits = target.forward(tokens, cache, rows=1).logits
        assert logits is not None
        tokens = mx.argmax(logits, axis=-1)
        ids += ints(tokens)
    return ids


def test_a_drafter_that_knows_is_all_right(target: Target) -> None:
    ids = agreeing(target)
    found = self_test.measure(target, cast(Drafter, Knowing(target, ids)), ids)
    assert found.right == found.possible >= self_test.ENOUGH
    assert not found.is_suspicious


def test_a_drafter_one_place_off_is_found_out_with_the_remedy(
    target: Target, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ids = agreeing(target)
    d = formats.read(tiny.write_drafter(tmp_path / "d", Mode.DSPARK)).descriptor

    def remake(other: Descriptor) -> Drafter:
        return cast(Drafter, Knowing(target, ids, shift=d.first + 1 - other.first))

    found = self_test.check(
        target,
        remake(d),
        ids,
        "odd-drafter",
        lambda found: self_test.better_reading(target, d, remake, ids, found),
    )
    assert found.is_suspicious
    assert f"odd-drafter is right in only {found.right} of {found.possible} drafts" in caplog.text
    assert f"with logits_start 1 it would be right in {found.possible} of {found.possible}" in caplog.text


def test_a_random_drafter_is_warned_of_at_every_load_and_a_good_one_measured_once(
    target: Target, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(self_test, "cache_dir", lambda: tmp_path / "cache")
    ids, beside = agreeing(target), tmp_path / "target"
    beside.mkdir()
    folder = tiny.write_drafter(tmp_path / "random", Mode.DSPARK)
    measured: list[self_test.Understanding] = []
    measure = self_test.measure

    def noted(*args: Any) -> self_test.Understanding:
        measured.append(measure(*args))
        return measured[-1]

    monkeypatch.setattr(self_test, "measure", noted)
    for _ in range(2):
        load_drafter(folder, target, Precision(drafter_bits=0), sample=ids, beside=beside)
    assert [found.is_suspicious for found in measured] == [True] * len(measured)
    assert len(measured) >= 2
    assert caplog.text.count("random is right in only") == 2

    measured.clear()
    monkeypatch.setattr(self_test, "SUSPICIOUS", -1.0)
    for _ in range(2):
        load_drafter(folder, target, Precision(drafter_bits=0), sample=ids, beside=beside)
    assert len(measured) == 1
    (folder / "config.json").write_text((folder / "config.json").read_text() + "\n")  # another download of it
    load_drafter(folder, target, Precision(drafter_bits=0), sample=ids, beside=beside)
    assert len(measured) == 2


def test_code_of_a_model_runs_only_when_trusted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    folder = write_target(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "own.py").write_text("from mlx_lm.models.llama import Model, ModelArgs\n")
    (folder / "config.json").write_text(json.dumps(config | {"model_file": "own.py"}))
    with pytest.raises(UnsupportedModel, match=r"own\.py \(49 bytes\), with all your rights; .*--trust-remote-code"):
        load_target(folder, Precision())
    trusted = load_target(folder, Precision(), trust_code=True)
    assert trusted.has_taps
