"""The built-in target and its drafters against a reference run, round by round.

`pytest tests/traces --traces FILE [--limit N] [--drafters DIR]` checks any file of that form. The reference used the
unpacked drafters: DIR holds their two folders; when it is not given they are looked for near FILE and the checkout.
Without them, as in the default run, the drafters of `resources/demo` must come close instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pair_process import PairProcess
from slipstream.types import Mode

DEFAULT = Path(__file__).parents[1] / "data" / "traces.json"
FOLDERS = {Mode.DSPARK: "SmolLM2-135M-DSpark-block7", Mode.DFLASH: "SmolLM2-135M-DFlash-block8"}
SPARE = 8  # tokens asked for beyond the reference, so that its last round is a whole one for us too


def exact_drafters(config: pytest.Config, traces: Path | None) -> list[Path]:
    """The unpacked drafters' folders, or none."""
    given: Path | None = config.getoption("drafters")
    near = [] if traces is None else [traces.parent, traces.parent.parent / "models"]
    places = [given] if given is not None else [*near, config.rootpath.parent / "shared" / "models"]
    for place in places if traces is not None or given is not None else []:
        folders = [place / name for name in FOLDERS.values()]
        if all((folder / "model.safetensors").is_file() for folder in folders):
            return folders
    assert given is None, f"{given} lacks {' and '.join(FOLDERS.values())}"
    return []


@pytest.fixture(scope="module")
def exact(pytestconfig: pytest.Config) -> list[Path]:
    return exact_drafters(pytestconfig, pytestconfig.getoption("traces"))


@pytest.fixture(scope="module")
def pair(exact: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairProcess]:
    with PairProcess(exact, drafter_bits=0 if exact else None) as process:
        yield process


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "row" not in metafunc.fixturenames:
        return
    path = Path(str(metafunc.config.getoption("traces") or DEFAULT))
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"][: metafunc.config.getoption("limit")]
    metafunc.parametrize("row", rows, ids=[f"{number}-{row['prompt'][:20]!r}" for number, row in enumerate(rows)])


@pytest.mark.parametrize("mode", FOLDERS, ids=str)
def test_ids_and_rounds_equal_the_reference(
    pair: PairProcess, exact: list[Path], row: dict[str, Any], mode: Mode
) -> None:
    ids: list[int] = row["greedy_ids"]
    answer = pair.answer(row["prompt_ids"], mode, max_tokens=len(ids) + SPARE)
    assert answer["token_ids"][: len(ids)] == ids
    reference: list[dict[str, Any]] = row[mode.value]
    ours: list[dict[str, Any]] = answer["rounds"][: len(reference)]
    if not exact:
        # The built-in drafters have learned more than the reference's: they keep more over all prompts, not on each.
        kept = sum(made["accepted"] + 1 for made in ours) / len(ours)
        expected = sum(made["accepted"] + 1 for made in reference) / len(reference)
        assert kept >= 0.75 * expected
        return
    assert len(ours) == len(reference)
    last = len(row["prompt_ids"]) + len(ids) - 1  # position of the reference's last token
    for made, expected in zip(ours, reference, strict=True):
        assert made["position"] == expected["anchor"]
        assert made["drafted"] == expected["drafted"]
        # The reference counts drafts up to its length limit; ours was asked for more tokens.
        assert min(made["accepted"], last - made["position"]) == expected["accepted"]
        if "confidence" in expected:
            assert made["confidence"] == pytest.approx(expected["confidence"], abs=1e-3)
