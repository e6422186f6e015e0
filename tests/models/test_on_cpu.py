"""What is done otherwise on a CPU with OpenBLAS, against MLX's own. Here it runs on MLX's own BLAS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest

import tiny
import tiny_families
from slipstream.engine.load import Precision, load_drafter
from slipstream.measure.verdict import Verdict
from slipstream.models import on_cpu
from slipstream.models.packed import Packing
from slipstream.models.target import Target
from slipstream.types import Mode, Options
from tiny_families import FAMILIES
from tiny_runs import decode, half, judge, plain

IDS = mx.array([3, 1, 4, 1, 5, 9, 2])
SHAPES = {  # batch, heads, kv heads, rows, keys, size
    "one row": (1, 9, 3, 1, 158, 64),
    "a round": (1, 9, 3, 8, 158, 64),
    "two texts": (2, 4, 4, 5, 40, 32),
    "a prompt": (1, 8, 1, 64, 64, 16),
}


def random(*shape: int, seed: int = 0) -> mx.array:
    return mx.random.normal(shape, key=mx.random.key(seed))


def apart(one: mx.array, other: mx.array) -> float:
    return float(mx.max(mx.abs(one - other)))


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(on_cpu, "is_ours", lambda: True)
    yield


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["none", "causal", "bool", "blind row", "added", "heads", "of heads", "of texts"])
def test_attention_is_mlx_s(shape: str, kind: str) -> None:
    batch, heads, groups, rows, keys, size = SHAPES[shape]
    queries = random(batch, rows, heads, size).transpose(0, 2, 1, 3)  # as mlx-lm's layers hand them over
    k, v = random(batch, groups, keys + 9, size, seed=1)[:, :, :keys], random(batch, groups, keys, size, seed=2)
    visible = (mx.random.uniform(shape=(rows, keys), key=mx.random.key(3)) > 0.3) | (mx.arange(keys) == 0)
    mask: Any = {
        "none": None,
        "causal": "causal",
        "bool": visible,
        "blind row": visible & (mx.arange(rows)[:, None] > 0),
        "added": random(rows, keys, seed=4),
        "heads": random(heads, rows, keys, seed=5),
        "of heads": random(1, heads, rows, keys, seed=5),
        "of texts": random(batch, 1, rows, keys, seed=6),
    }[kind]
    own = mx.fast.scaled_dot_product_attention(queries, k, v, scale=0.3, mask=mask)
    assert apart(on_cpu.attend(queries, k, v, 0.3, mask), own) < 1e-5


def test_weights_of_far_away_keys_keep_their_digits() -> None:
    """exp(-16) is about a rounding of one: from one and `expm1` of it a quarter of it would be lost."""
    queries, keys = mx.ones((1, 1, 1, 16)), mx.concatenate([mx.ones((1, 1, 1, 16)), -mx.ones((1, 1, 1, 16))], axis=2)
    values = mx.array([0.0, 1e12]).reshape(1, 1, 2, 1)
    seen = float(on_cpu.attend(queries, keys, values, 16 / 32, None)[0, 0, 0, 0])
    assert seen == pytest.approx(float(mx.exp(mx.array(-16.0))) * 1e12, rel=1e-3)


def test_a_table_turns_heads_as_mlx_does() -> None:
    own: Any = nn.RoPE(64, base=1e5)
    turned = on_cpu.Rotation(own, on_cpu.Tables(64, 1e5, 1.0))
    heads = random(1, 9, 8, 64)
    for offset in (0, 150, on_cpu.POSITIONS - 4, 5000, 3):
        assert apart(turned(heads, offset=offset), own(heads, offset=offset)) < 1e-5
    each = mx.array([4, 70])  # of two texts
    two = random(2, 3, 1, 64)
    assert mx.array_equal(turned(two, offset=each), own(two, offset=each))
    half_heads = nn.RoPE(32)
    tables = on_cpu.Tables(32, 1e4, 1.0)
    assert mx.array_equal(on_cpu.Rotation(half_heads, tables)(heads, offset=2), half_heads(heads, 2))


def test_a_gate_is_mlx_s_from_end_to_end() -> None:
    x = mx.linspace(-120, 120, 2401)
    assert mx.allclose(on_cpu.silu(x), nn.silu(x), rtol=5e-6, atol=1e-36)


def logits(target: Target) -> mx.array:
    out = target.forward(IDS, target.make_cache()).logits
    assert out is not None
    return out.astype(mx.float32)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_the_same_logits(family: str, ours: None) -> None:
    target = tiny_families.target(family)
    after = logits(target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_cpu, "is_ours", lambda: False)
        before = logits(tiny_families.target(family))
    assert mx.allclose(after, before, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3", "granite"])
def test_rows_of_several_texts_still_share_all_but_their_attention(family: str, ours: None) -> None:
    target = tiny_families.target(family)
    target.pack()
    assert target.packing is Packing.ATTENTION


def test_weights_lie_column_by_column(ours: None) -> None:
    target = tiny.target()
    weights = [part.weight for _, part in target.model.named_modules() if isinstance(part, nn.Linear)]
    assert weights
    for weight in weights:
        strides = memoryview(weight).strides  # pyright: ignore[reportArgumentType]
        assert strides is not None
        assert strides[0] == weight.itemsize


@pytest.mark.parametrize(("mode", "width"), [(Mode.DSPARK, 8), (Mode.DSPARK, 3), (Mode.DFLASH, 7), (Mode.DFLASH, 1)])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_it_changes_no_answer(mode: Mode, width: int, temperature: float, ours: None, tmp_path: Path) -> None:
    """Heads that share a product may round otherwise by its rows: at most a tie."""
    onto = tiny.target()
    tiny.write_drafter(tmp_path, mode, block=9)
    drafter = load_drafter(tmp_path, onto, Precision(drafter_bits=0))
    prompt = (5, 9, 33, 71, 5, 9, 33, 70, 12)
    options = Options(temperature=temperature, max_tokens=24, seed=3, max_draft=width)
    own = plain(onto, options, prompt)
    for make in (lambda: (drafter,), lambda: (half(drafter, own.tokens, len(prompt)),)):
        other = decode(onto, make(), options, prompt)
        assert judge(onto, make, options, prompt, own, other).verdict is not Verdict.DIFFERENT


def test_no_mask_stays_when_an_engine_rests() -> None:
    on_cpu._causal(4, 8)
    assert on_cpu._causal.cache_info().currsize == 1
    on_cpu.forget()
    assert on_cpu._causal.cache_info().currsize == 0
