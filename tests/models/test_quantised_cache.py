"""Keys and values in few bits: what they save at a long context, and that they come back as they were."""

from __future__ import annotations

import mlx.core as mx
import pytest

import tiny
from slipstream.models import kept
from slipstream.models.cache import QuantisedCache, TargetCache
from slipstream.models.target import Target

LONG = 16_384


@pytest.fixture(scope="module")
def wide() -> Target:
    """Heads of 64, as most published models have or a multiple of it."""
    with pytest.MonkeyPatch.context() as patch:
        config = tiny.target_config() | {"head_dim": 64}
        patch.setattr(tiny, "target_config", lambda *_: config)
        return tiny.target("bfloat16")


def filled(target: Target, kv_bits: int, rows: int) -> TargetCache:
    """A real cache of so many rows, repeated from those of a few tokens."""
    short, long = target.make_cache(kv_bits), target.make_cache(kv_bits)
    mx.eval(target.forward(mx.arange(32), short, rows=1).logits)
    kept.stretch(long, short, rows)
    return long


def test_eight_bits_take_little_more_than_half_of_bfloat16s_memory(wide: Target) -> None:
    plain, eight, four = (filled(wide, kv_bits, LONG).bytes for kv_bits in (0, 8, 4))
    assert eight <= 0.55 * plain
    assert four <= 0.30 * plain


@pytest.mark.parametrize("kv_bits", [4, 8])
def test_a_long_cache_takes_a_round_and_gives_it_back(wide: Target, kv_bits: int) -> None:
    length = LONG // 16
    cache = filled(wide, kv_bits, length)
    before = kept.rows(cache, length - 8, length)
    first = wide.forward(mx.arange(8), cache).logits
    cache.rewind(length)
    assert cache.floor == 0
    after = kept.rows(cache, length - 8, length)
    assert all(mx.array_equal(before[name], after[name]) for name in before)
    again = wide.forward(mx.arange(8), cache).logits
    assert first is not None
    assert again is not None
    assert mx.array_equal(first, again)


@pytest.mark.parametrize(("head_dim", "group"), [(32, 32), (64, 64), (96, 32)])
def test_groups_are_those_of_the_arrays_that_were_kept(head_dim: int, group: int) -> None:
    cache = QuantisedCache(8)
    rows = mx.random.normal((1, 2, 5, head_dim))
    cache.update_and_fetch(rows, rows)
    restored = QuantisedCache(8)
    restored.put(list(cache.keys), list(cache.values), 5)
    assert restored.group_size == cache.group_size == group
