"""Every target family with every drafter packaging: loaded from disk, and the same text as plain decoding.

As in test_equality.py, MLX's own BLAS makes equality exact here, so every difference is a bug.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import cast

import pytest

import tiny_families
import tiny_mtp
from slipstream.drafters.lookup import Lookup
from slipstream.drafters.protocol import Drafter
from slipstream.engine.load import Precision, load_drafter
from slipstream.measure.verdict import Verdict
from slipstream.models import backend
from slipstream.models.target import Target
from slipstream.types import Options
from tiny_drafters import PACKAGINGS, write_drafter
from tiny_families import FAMILIES
from tiny_runs import PATTERNS, Run, Scripted, decode, half, judge, plain

PROMPT = (5, 9, 33, 71, 5, 9, 33, 70, 12, 40, 41)
REPEATING = (11, 12, 13, 14, 15, 16) * 3
TEMPERATURES = (0.0, 0.8)
WIDTHS = (1, 2, 3, 5, 8, None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("matrix")


@cache
def target(family: str) -> Target:
    return tiny_families.target(family)


_loaded: dict[tuple[str, str], Drafter] = {}


def drafter(folder: Path, family: str, packaging: str) -> Drafter:
    if (family, packaging) not in _loaded:
        onto = target(family)
        at = folder / f"{packaging} {onto.layer_count}"
        if not at.exists():
            write_drafter(at, packaging, target_layers=onto.layer_count)
        _loaded[family, packaging] = load_drafter(at, onto, Precision(drafter_bits=0))
    return _loaded[family, packaging]


@cache
def own(family: str, temperature: float, length: int, kv_bits: int = 0, prompt: tuple[int, ...] = PROMPT) -> Run:
    return plain(target(family), options(temperature, length), prompt, kv_bits=kv_bits)


def options(temperature: float, length: int, width: int | None = None) -> Options:
    return Options(temperature=temperature, max_tokens=length, seed=3, max_draft=width)


def check(
    family: str,
    by: Drafter,
    temperature: float,
    width: int | None,
    length: int = 20,
    kv_bits: int = 0,
    prompt: tuple[int, ...] = PROMPT,
) -> Run:
    onto, said = target(family), own(family, temperature, 20, kv_bits, prompt)
    said = Run(said.tokens[:length], said.steps)
    asked = options(temperature, length, width)
    run = decode(onto, (by,), asked, prompt, kv_bits=kv_bits)
    comparison = judge(onto, lambda: (by,), asked, prompt, said, run, kv_bits=kv_bits)
    assert comparison.verdict is not Verdict.DIFFERENT, comparison.sentence
    if backend._loaded is None:
        assert comparison.verdict is Verdict.IDENTICAL, comparison.sentence
    return run


def check_pair(folder: Path, family: str, packaging: str, temperature: float, width: int | None) -> None:
    by = drafter(folder, family, packaging)
    check(family, by, temperature, width, length=8)
    partly = half(by, own(family, temperature, 20).tokens, len(PROMPT))
    run = check(family, partly, temperature, width)
    assert run.accepted > 0


# A thin cut: every family, packaging, temperature and width occurs; not every combination.
_THIN = [
    (family, packaging, TEMPERATURES[number % 2], WIDTHS[number % len(WIDTHS)])
    for number, (family, packaging) in enumerate(
        itertools.islice(zip(itertools.cycle(FAMILIES), itertools.cycle(PACKAGINGS), strict=False), 2 * len(FAMILIES))
    )
]


def test_the_thin_cut_leaves_nothing_out() -> None:
    families, packagings, temperatures, widths = (set(column) for column in zip(*_THIN, strict=True))
    assert families == FAMILIES.keys()
    assert packagings == PACKAGINGS.keys()
    assert (temperatures, widths) == (set(TEMPERATURES), set(WIDTHS))


@pytest.mark.parametrize(("family", "packaging", "temperature", "width"), _THIN)
def test_a_pair_changes_nothing(
    family: str, packaging: str, temperature: float, width: int | None, folder: Path
) -> None:
    check_pair(folder, family, packaging, temperature, width)


@pytest.mark.parametrize("family", FAMILIES)
def test_partial_acceptance_changes_nothing(family: str) -> None:
    for number, pattern in enumerate(("mixed", "last wrong")):
        temperature, width = TEMPERATURES[number % 2], WIDTHS[number % len(WIDTHS)]
        said = own(family, temperature, 20)
        check(family, scripted(said, pattern, family), temperature, width)
    run = check(family, cast(Drafter, Lookup()), 0.0, None, prompt=REPEATING)
    assert run.steps


@pytest.mark.parametrize("family", ["llama", "gemma4", "nanbeige", "qwen3_5", "nemotron_h"])
def test_a_packed_cache_changes_nothing(family: str) -> None:
    said = own(family, 0.8, 20, kv_bits=8)
    check(family, scripted(said, "mixed", family), 0.8, None, kv_bits=8)


def scripted(said: Run, pattern: str, family: str) -> Drafter:
    return cast(Drafter, Scripted(said.tokens, len(PROMPT), pattern, target(family).vocabulary))


_heads: dict[tuple[str, str], Drafter] = {}


def heads(folder: Path, family: str, layout: str) -> Drafter:
    if (family, layout) not in _heads:
        _, at = tiny_mtp.write(folder / f"{family} {layout}", family, layout)
        _heads[family, layout] = load_drafter(at, target(family), Precision(drafter_bits=0))
    return _heads[family, layout]


def check_heads(folder: Path, family: str, layout: str, temperature: float, width: int | None) -> None:
    by = heads(folder, family, layout)
    check(family, by, temperature, width, length=8)
    partly = half(by, own(family, temperature, 20).tokens, len(PROMPT))
    assert check(family, partly, temperature, width).accepted > 0


# A layout changes nothing in what is computed (test_mtp.py): one for each family.
_THIN_HEADS = [
    (family, layout, TEMPERATURES[number % 2], number + 2)
    for number, (family, layout) in enumerate(
        zip(tiny_mtp.FAMILIES, ("converted", "published", "sidecar"), strict=True)
    )
]


@pytest.mark.parametrize(("family", "layout", "temperature", "width"), _THIN_HEADS)
def test_a_models_own_heads_change_nothing(
    family: str, layout: str, temperature: float, width: int, folder: Path
) -> None:
    check_heads(folder, family, layout, temperature, width)


@pytest.mark.slow
@pytest.mark.parametrize("layout", tiny_mtp.LAYOUTS)
@pytest.mark.parametrize("family", tiny_mtp.FAMILIES)
def test_every_familys_own_heads_change_nothing(family: str, layout: str, folder: Path) -> None:
    for temperature, width in itertools.product(TEMPERATURES, (1, 2, 3, 4, None)):
        check_heads(folder, family, layout, temperature, width)
        said = own(family, temperature, 20, 8)
        by = half(heads(folder, family, layout), said.tokens, len(PROMPT))
        check(family, by, temperature, width, kv_bits=8)


@pytest.mark.slow
@pytest.mark.parametrize("packaging", PACKAGINGS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_whole_matrix_changes_nothing(family: str, packaging: str, folder: Path) -> None:
    for temperature, width in itertools.product(TEMPERATURES, (*range(1, 9), 15)):
        check_pair(folder, family, packaging, temperature, width)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_pattern_at_every_width_changes_nothing(family: str) -> None:
    for temperature, pattern, width in itertools.product(TEMPERATURES, [*PATTERNS, "mixed"], range(1, 9)):
        check(family, scripted(own(family, temperature, 20), pattern, family), temperature, width)
