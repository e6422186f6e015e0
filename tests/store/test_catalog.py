from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from slipstream.errors import InvalidRequest
from slipstream.store import catalog, shape
from slipstream.store.catalog import KINDS, Catalog, load, stem_of

Reader = Callable[[str], Catalog]

SEEDS = {
    *("Gemma-4", "Qwen3", "Qwen3.6", "Qwen3.8", "Muse-Glimmer", "Nemotron"),
    *("LFM2.5", "Ornith-1.0", "MiniCPM5", "Nanbeige", "Bonsai"),
}
GOOD = """
[[target]]
name = "A"
family = "A"
repo = "maker/A"
source = "a test"

[[target.drafter]]
repo = "maker/A-DSpark"
kind = "dspark"
source = "a test"

[[target]]
name = "B"
family = "B"
repo = "maker/B"
quants = { "4-bit" = "other/B-4bit" }
recommended = "4-bit"
source = "a test"

[[target.drafter]]
repo = "maker/B-DFlash"
kind = "dflash"
acceptance = 4.5
taps = [1, 2]
source = "a test"
"""


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    def from_text(text: str) -> catalog.Catalog:
        (tmp_path / "catalog.toml").write_text(text)
        return load(tmp_path / "catalog.toml")

    return from_text


def test_the_wanted_precision_is_taken_where_there_is_one(read: Reader) -> None:
    one, other = read(GOOD).targets
    assert one.precision("4-bit") == ("", "maker/A")
    assert other.precision("8-bit") == other.precision() == ("4-bit", "other/B-4bit")
    gemma = catalog.default().find("google/gemma-4-12B-it")
    assert gemma is not None
    assert gemma.precision() == ("8-bit", "mlx-community/gemma-4-12B-it-8bit")
    assert gemma.precision("4-bit") == ("4-bit", "mlx-community/gemma-4-12B-it-4bit")


def test_every_promised_family_is_there_with_a_drafter() -> None:
    targets = catalog.default().targets
    assert {target.family for target in targets} >= SEEDS
    for target in targets:
        assert target.drafters, target.name
    kinds = {drafter.kind for target in targets for drafter in target.drafters}
    assert {"dspark", "dflash", "dflash2"} <= kinds <= set(KINDS)


def test_every_entry_names_a_repository_and_its_source() -> None:
    for target in catalog.default().targets:
        for repo in (target.repo, *target.also, *(target.quants or {}).values(), *(d.repo for d in target.drafters)):
            assert re.fullmatch(r"[\w.-]+/[\w.-]+", repo), repo
        for drafter in target.drafters:
            assert drafter.source
            assert (drafter.acceptance is None and drafter.speedup is None) or drafter.measured
            if target.layers and target.family != "Nanbeige":  # it runs its layers twice and counts on
                assert all(-1 <= tap < target.layers for tap in drafter.taps)
            assert list(drafter.taps) == sorted(drafter.taps)


def test_a_shape_says_what_a_context_takes() -> None:
    """As the model's own config.json would: Qwen3-8B keeps 144 kB a token, Qwen3.8-27B a fourth of its layers' rows."""
    known = {target.name: target for target in catalog.default().targets}
    shapes = {name: shape.of_config(target.config(target.recommended) or {}) for name, target in known.items()}
    assert all(shapes[name] is not None for name, target in known.items() if target.shape)
    qwen3, hybrid = shapes["Qwen3-8B"], shapes["Qwen3.8-27B"]
    assert qwen3 is not None
    assert hybrid is not None
    assert qwen3.cache_bytes(32768, 2) == 32768 * 36 * 2 * 8 * 128 * 2
    assert hybrid.cache_bytes(65536, 2) - hybrid.cache_bytes(32768, 2) == 32768 * 16 * 2 * 4 * 256 * 2
    assert (known["Qwen3-8B"].config("8-bit") or {})["quantization"] == {"bits": 8, "group_size": 64}
    assert "quantization" not in (known["LFM2.5-1.2B-Instruct"].config("bf16") or {})
    assert known["Gemma-4 12B"].config("8-bit") is None


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("mlx-community/Qwen3-4B-8bit", "Qwen3-4B"),
        ("mlx-community/Qwen3-4B-4bit-DWQ", "Qwen3-4B"),
        ("Qwen/Qwen3-4B-MLX-bf16", "Qwen3-4B"),
        ("/models/someone/Qwen3-4B-Q4_K_M.gguf", "Qwen3-4B"),
        ("unsloth/Qwen3-8B-GGUF", "Qwen3-8B"),
        ("mlx-community/gemma-4-12B-it-qat-4bit", "Gemma-4 12B"),
        ("mlx-community/Qwen3.8-27B-mxfp4", "Qwen3.8-27B"),
        ("Qwen/Qwen3.8-27B-FP8", "Qwen3.8-27B"),
        ("nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4", "Nemotron-3.5-Lightning-30B-A3B"),
        ("bartowski/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-GGUF", "Nemotron-3.5-Lightning-30B-A3B"),
        ("mlx-community/LFM2.5-1.2B-Instruct-MLX-4bit", "LFM2.5-1.2B-Instruct"),
        ("prism-ml/Ternary-Bonsai-27B-mlx-2bit", "Ternary-Bonsai-27B"),
        ("vote-for-pedro/Nanbeige4.2-3B-mlx-8bit", "Nanbeige4.2-3B"),
        ("mlx-community/MiniCPM5-2B-bf16", "MiniCPM5-2B"),
    ],
)
def test_any_quant_of_a_target_matches(name: str, target: str) -> None:
    found = catalog.default().find(name)
    assert found is not None
    assert found.name == target


@pytest.mark.parametrize(
    "name",
    ["mlx-community/Qwen3-4B-Thinking-2507-4bit", "mlx-community/Qwen3-0.6B-4bit", "prism-ml/Bonsai-27B-mlx-1bit", "x"],
)
def test_another_model_does_not_match(name: str) -> None:
    assert catalog.default().find(name) is None


def test_the_card_of_a_renamed_copy_says_what_it_is() -> None:
    found = catalog.default().find("someone/my-favourite-4bit", ["Qwen/Qwen3-14B"])
    assert found is not None
    assert found.name == "Qwen3-14B"


def test_a_drafter_is_found_with_its_target() -> None:
    found = catalog.default().drafter("deepseek-ai/DSpark_qwen3_4b_block7")
    assert found is not None
    assert (found[0].name, found[1].taps) == ("Qwen3-4B", (1, 9, 17, 25, 33))


def test_search_wants_every_word() -> None:
    assert [target.name for target in catalog.default().search("qwen3.8 dflash2")] == ["Qwen3.8-27B"]
    assert catalog.default().search("qwen3.8 llama") == []


def test_a_good_file_is_read(read: Reader) -> None:
    found = read(GOOD)
    assert [target.name for target in found.targets] == ["A", "B"]
    assert found.targets[1].drafters[0].taps == (1, 2)


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('repo = "maker/B"', 'repos = "maker/B"', "unknown key 'repos'"),
        ("acceptance = 4.5", "acceptence = 4.5", "unknown key 'acceptence'"),
        ("acceptance = 4.5", 'acceptance = "high"', "a number above 0"),
        ("taps = [1, 2]", 'taps = ["one"]', "a list of whole numbers"),
        ('kind = "dflash"', 'kind = "eagle"', "one of dspark, dflash"),
        ('recommended = "4-bit"', 'recommended = "5-bit"', "one of 4-bit"),
        ('repo = "maker/B"', 'repo = "maker/A"', "listed twice"),
        ("acceptance = 4.5", "acceptance = 4..5", "Invalid"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(read: Reader, old: str, new: str, says: str) -> None:
    text = GOOD.replace(old, new)
    with pytest.raises(InvalidRequest, match=re.escape(says).replace("Invalid", "(Invalid|Expected)")) as caught:
        read(text)
    number = len(text[: text.rindex(new)].splitlines()) + 1
    assert f"line {number}" in caught.value.message


def test_unknown_tables_and_missing_keys_are_refused(read: Reader) -> None:
    with pytest.raises(InvalidRequest, match="line 1: unknown key 'targets'"):
        read("[[targets]]\nname = 'A'\n")
    with pytest.raises(InvalidRequest, match="line 8: source is missing"):
        read(GOOD.replace('kind = "dspark"\nsource = "a test"', 'kind = "dspark"'))


def test_names_without_precision() -> None:
    assert stem_of("a/Qwen3-4B-MLX-8bit") == stem_of("Qwen3-4B") == "qwen3-4b"
    assert stem_of("a/gpt-oss-20b-MXFP4-Q8") == "gpt-oss-20b"
    assert stem_of("microsoft/phi-4") == "phi-4"
    assert stem_of("x/gemma-4-12b-it-UD-Q4_K_XL.gguf") == "gemma-4-12b-it"
