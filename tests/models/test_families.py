"""Every target family against mlx-lm's own forward, and caches that go back to the very state they had.

In this process MLX uses its own BLAS, whose products do not depend on how many rows are computed together, so states
and logits must agree to the bit. Mamba-2 included: mlx-lm's chunked form rounds differently from single steps, which
is why a round steps row by row (`recurrence.RECURRENCES`).
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx.utils import tree_flatten
from mlx_lm.models.cache import KVCache

import tiny_families
from slipstream.models.cache import ROUND, TargetCache, WindowCache
from slipstream.models.families import FAMILIES as TABLE
from slipstream.models.host import ints
from slipstream.models.recurrence import StateCache
from slipstream.models.target import EMBEDDING_TAP, Target, _file_of
from tiny_families import FAMILIES, MORE, RECURRENT
from tiny_states import arrays, same

PROMPT = tuple((7 * n * n + 3) % 90 for n in range(20))


@cache
def target(family: str) -> Target:
    return tiny_families.target(family)


EVERY = (*FAMILIES, *MORE)


def test_every_file_of_the_table_is_here() -> None:
    files = {_file_of(tiny_families.model(family)) for family in EVERY}
    # "mistral" is a llama to mlx-lm, and a config may call itself by the name of a text model inside another.
    assert TABLE.keys() - files <= {"mistral", "gemma4_text"}


@pytest.mark.parametrize("family", EVERY)
def test_logits_are_mlx_lms_own_beyond_windows_and_in_chunks(family: str) -> None:
    onto = target(family)
    assert onto.has_taps
    assert onto.fixed_kinds == ()
    model = cast(Any, onto.model)
    cache = onto.make_cache()
    theirs = model.make_cache() if hasattr(model, "make_cache") else [KVCache() for _ in model.layers]
    tokens = mx.array(PROMPT * 2)
    for start, end in ((0, 13), (13, 14), (14, 30), (30, 31), (31, 40)):
        ours = onto.forward(tokens[start:end], cache, rows=end - start).logits
        reference = model(tokens[None, start:end], cache=theirs)[0]
        assert ours is not None
        assert mx.allclose(ours, reference, atol=1e-4, rtol=1e-4), f"rows {start} to {end}"


@pytest.mark.parametrize("family", [*FAMILIES, *(pytest.param(more, marks=pytest.mark.slow) for more in MORE)])
def test_a_tap_is_the_stream_between_two_layers(family: str) -> None:
    """The last tap through the final norm and the head must give the logits; the first one is the embedding."""
    onto = target(family)
    last = onto.layer_count - 1
    taps = (EMBEDDING_TAP, 0, last)
    forward = onto.forward(mx.array(PROMPT), onto.make_cache(), taps, rows=len(PROMPT))
    parts = onto._parts
    assert parts is not None
    assert forward.logits is not None
    assert mx.allclose(parts.logits(onto.norm_rows(forward.taps[last])), forward.logits, atol=1e-4)
    if family != "muse_glimmer":  # which norms its embeddings
        scaled = onto.embed_rows(mx.array(PROMPT)) * onto.embed_scale
        assert mx.allclose(forward.taps[EMBEDDING_TAP], scaled, atol=1e-4)
    assert not mx.allclose(forward.taps[0], forward.taps[EMBEDDING_TAP], atol=1e-2)


def test_the_tap_between_two_loops_is_behind_their_norm() -> None:
    """Nanbeige: id 21 of 22 layers gone through twice (drafters.md §1.1)."""
    onto = target("nanbeige")
    assert onto.layer_count == 6
    taps = onto.forward(mx.array(PROMPT), onto.make_cache(), (2, 5)).taps
    body = cast(Any, onto._parts).body
    normed = mx.fast.rms_norm(taps[2], None, 1e-6)
    assert mx.allclose(taps[2] / body.norm.weight, mx.fast.rms_norm(taps[2] / body.norm.weight, None, 1e-6), atol=1e-3)
    assert not mx.allclose(taps[5] / body.norm.weight, normed, atol=1e-1)


class Adversary:
    """Right with a probability that changes from round to round, at every position by itself."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def width(self, most: int) -> int:
        return self._random.choice((0, 1, 1, 2, 3, most))

    def drafts(self, truth: list[int], vocabulary: int) -> list[int]:
        right = self._random.choice((0.2, 0.6, 0.9, 1.0))
        return [token if self._random.random() < right else (token + 1) % vocabulary for token in truth]


def fuzz(family: str, count: int) -> int:
    """Rounds of drafts, some wrong, against plain single steps. Returns how many rounds were compared."""
    onto, adversary = target(family), Adversary(5)
    plain, cache = onto.make_cache(), onto.make_cache()
    for each in (plain, cache):
        first = onto.forward(mx.array(PROMPT), each, rows=1).logits
    assert first is not None
    last, rounds, said = ints(mx.argmax(first, axis=-1))[0], 0, 0
    ahead: list[tuple[int, TargetCache]] = []  # what plain decoding says next, and its cache before it is fed back
    while said < count:
        width = adversary.width(8)
        while len(ahead) <= width:
            token = ahead[-1][0] if ahead else last
            plain = (ahead[-1][1] if ahead else plain).fork()
            logits = onto.forward(mx.array([token]), plain).logits
            assert logits is not None
            # A bias that wanders keeps the text from going round in circles.
            logits = logits + 3.0 * mx.random.normal(logits.shape, key=mx.random.key(plain.length))
            ahead.append((ints(mx.argmax(logits, axis=-1))[0], plain))
        drafts = adversary.drafts([token for token, _ in ahead[:width]], onto.vocabulary)
        logits = onto.forward(mx.array([last, *drafts]), cache).logits
        assert logits is not None
        kept = next((i for i, draft in enumerate(drafts) if draft != ahead[i][0]), width)
        cache.rewind(cache.length - (width - kept))
        last, plain = ahead[kept]
        assert cache.length == plain.length
        for ours, theirs in zip(arrays(cache), arrays(plain), strict=True):
            assert same(ours, theirs), f"round {rounds}: {kept} of {width} kept, state differs"
        ahead = ahead[kept + 1 :]
        said, rounds = said + kept + 1, rounds + 1
    return rounds


@pytest.mark.parametrize("family", [*RECURRENT, "gemma3", "mistral", "nanbeige"])
def test_after_every_round_the_state_is_plain_decodings(family: str) -> None:
    assert fuzz(family, 60) > 10


@pytest.mark.slow
@pytest.mark.parametrize("family", RECURRENT)
def test_after_every_round_of_5000_tokens_the_state_is_plain_decodings(family: str) -> None:
    assert fuzz(family, 5000) > 1000


def test_a_round_can_be_taken_back_in_steps_and_wholly() -> None:
    onto = target("qwen3_5")
    cache, expected = onto.make_cache(), onto.make_cache()
    for each in (cache, expected):
        onto.forward(mx.array(PROMPT), each, rows=0)
    onto.forward(mx.array([1, 2, 3, 4]), cache)
    assert cache.floor == len(PROMPT)
    for length in (len(PROMPT) + 3, len(PROMPT) + 1, len(PROMPT)):
        cache.rewind(length)
    assert all(same(ours, theirs) for ours, theirs in zip(arrays(cache), arrays(expected), strict=True))


def test_how_far_a_cache_goes_back() -> None:
    """Keys and values to nothing, windows over a round, states over the last round and not over a prefill."""
    caches = {name: target(name).make_cache() for name in ("llama", "gemma3", "qwen3_5")}
    for name, made in caches.items():
        target(name).forward(mx.array(PROMPT * 20), made, rows=0)
    assert caches["llama"].floor == 0
    assert caches["qwen3_5"].floor == 400
    assert caches["gemma3"].floor == 0  # one chunk is kept whole until the next comes
    target("gemma3").forward(mx.array(PROMPT * 20), caches["gemma3"], rows=0)
    assert 800 - caches["gemma3"].floor >= ROUND


def test_a_window_keeps_no_more_than_it_needs() -> None:
    onto = target("gemma3")
    cache = onto.make_cache()
    for _ in range(1000 // 20):
        onto.forward(mx.array(PROMPT), cache, rows=0)
        mx.eval(cache.state)
    window, whole = cache.layers[0], cache.layers[1]
    assert isinstance(window, WindowCache)
    assert window.keys.shape[2] == WindowCache.step
    assert whole.keys.shape[2] >= 1000


@pytest.mark.parametrize("family", ["llama", "gemma3", "qwen3_5"])
def test_a_fork_goes_its_own_way(family: str) -> None:
    onto = target(family)
    cache = onto.make_cache()
    onto.forward(mx.array(PROMPT), cache, rows=0)
    twin = cache.fork()
    onto.forward(mx.array([1, 2, 3]), twin)
    ours = onto.forward(mx.array([4, 5, 6]), cache).logits
    fresh = onto.make_cache()
    onto.forward(mx.array(PROMPT), fresh, rows=0)
    expected = onto.forward(mx.array([4, 5, 6]), fresh).logits
    assert same(ours, expected)
    assert (cache.length, twin.length) == (len(PROMPT) + 3, len(PROMPT) + 3)


class Unlisted(nn.Module):
    """A model laid out like no family: its parts cannot be told apart."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.inner = model

    @property
    def layers(self) -> list[Any]:
        return cast(Any, self.inner).layers

    def make_cache(self) -> list[Any]:
        return cast(Any, self.inner).make_cache()

    def __call__(self, tokens: mx.array, cache: Any = None) -> mx.array:
        return cast(Any, self.inner)(tokens, cache=cache)


@pytest.mark.parametrize("family", ["gemma3", "nemotron_h"])
def test_a_model_that_is_not_known_inside_runs_as_it_is(family: str, caplog: pytest.LogCaptureFixture) -> None:
    onto = Target(Unlisted(tiny_families.model(family)), {"model_type": "unheard_of"})
    assert not onto.has_taps
    assert "'unheard_of' is not known inside: it runs plain and with lookup" in caplog.text
    assert onto.fixed_kinds == ()
    known = target(family).forward(mx.array(PROMPT), target(family).make_cache()).logits
    assert same(onto.forward(mx.array(PROMPT), onto.make_cache()).logits, known)


def test_a_state_of_an_unknown_recurrence_is_found_out() -> None:
    """Not by name: the layer's new state is nothing that was noted."""
    state = StateCache(1)
    state.start(3, noted=True)
    state[0] = mx.zeros((1, 4))
    assert not state.is_trimmable()
    assert state.reach == 0


def test_published_layouts_load_from_disk(tmp_path: Path) -> None:
    """One dense, one hybrid: what mlx-lm converts is what we load."""
    from slipstream.engine.load import Precision, load_target

    for family in ("qwen3", "qwen3_5", "nemotron_h"):
        folder = tmp_path / family
        folder.mkdir()
        model = tiny_families.model(family)
        mx.save_safetensors(str(folder / "model.safetensors"), dict(cast(Any, tree_flatten(model.parameters()))))
        (folder / "config.json").write_text(tiny_families.config_json(family))
        loaded = load_target(folder, Precision())
        ours = loaded.forward(mx.array(PROMPT), loaded.make_cache()).logits
        assert same(ours, target(family).forward(mx.array(PROMPT), target(family).make_cache()).logits)
