"""A forward in few operations, its CUDA kernels run on the CPU (`cuda_on_cpu.py`). In float32, so ids must be equal."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import ref

import mlx.core as mx
import pytest
from mlx_lm.models.rope_utils import initialize_rope

import cuda_on_cpu
import tiny
from slipstream.drafters.dflash import DFlash
from slipstream.drafters.dspark import DSpark
from slipstream.drafters.fused import FusedBlock
from slipstream.drafters.protocol import Wish
from slipstream.engine.load import Precision, load_drafter
from slipstream.engine.round import Decoding
from slipstream.models import few_rows, fused, fused_kernels, in_place, kept
from slipstream.models.cache import TargetCache
from slipstream.models.fused import Graphs, turning
from slipstream.models.host import ints, number
from slipstream.models.target import Target
from slipstream.types import Mode, Options
from tiny_runs import decode, half, plain

pytestmark = pytest.mark.skipif(cuda_on_cpu.COMPILER is None, reason="needs a C++ compiler (apt-get install g++)")
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is done on an NVIDIA GPU, on the CPU."""
    monkeypatch.setattr(mx.cuda, "is_available", lambda: True)
    monkeypatch.setattr(mx, "default_device", lambda: mx.gpu)
    monkeypatch.setattr(mx.fast, "cuda_kernel", cuda_on_cpu.kernel)
    monkeypatch.setattr(few_rows, "_is_right", lambda size, dtype: False)
    monkeypatch.setattr(few_rows, "HEAD_SIZES", (32,))
    for name, few in (("WARPS", 2), ("THREADS", 32), ("CHOOSERS", 32)):
        monkeypatch.setattr(fused_kernels, name, few)
    monkeypatch.setattr(Decoding, "_describe", lambda self: None)  # nothing is kept here, so it would be run
    for made in (fused_kernels._add_norm, fused_kernels._attend, fused_kernels._place, fused_kernels._choose):
        made.cache_clear()


def logits_after(target: Target, cache: TargetCache, tokens: list[int]) -> mx.array:
    found = target.forward(mx.array(tokens, dtype=mx.int32), cache).logits
    assert found is not None
    return found


def apart(a: mx.array, b: mx.array) -> float:
    return number(mx.max(mx.abs(a - b)).astype(mx.float32))


@pytest.mark.parametrize(
    ("model_type", "precision", "most"),
    [("llama", "float32", 1e-4), ("qwen3", "float32", 1e-4), ("llama", "bfloat16", 1.0)],
)
def test_logits_and_taps_are_the_models_own(cuda: None, model_type: str, precision: str, most: float) -> None:
    target = tiny.target(precision, model_type=model_type)
    assert target.is_fused
    whole = target.forward(mx.array(PROMPT), target.make_cache(), tiny.TAPS, rows=len(PROMPT))
    cache = target.make_cache()
    target.forward(mx.array(PROMPT[:3]), cache, rows=0)
    for start, end in ((3, 4), (4, 8)):
        part = target.forward(mx.array(PROMPT[start:end]), cache, tiny.TAPS)
        assert part.logits is not None
        assert whole.logits is not None
        assert apart(part.logits, whole.logits[start:end]) < most
        for tap in tiny.TAPS:
            assert apart(part.taps[tap], whole.taps[tap][start:end]) < most
    assert cache.length == 8
    assert [layer.offset for layer in cache.layers] == [8] * tiny.LAYERS


def test_what_is_written_in_place_is_seen_by_everybody_and_changes_nobodys(cuda: None) -> None:
    """Rewinding, forks, what is kept for other requests, and a chunk that MLX runs itself, in one history."""
    target = tiny.target()
    fresh = lambda tokens: logits_after(target, target.make_cache(), tokens)  # noqa: E731
    cache = target.make_cache()
    target.forward(mx.array(PROMPT), cache, rows=0)
    logits_after(target, cache, [7, 8, 9])
    rows = kept.rows(cache, 0, 10)
    before = {name: mx.array(each) for name, each in rows.items()}
    twin = cache.fork()
    cache.rewind(9)
    assert apart(logits_after(target, cache, [11, 12]), fresh([*PROMPT, 7, 11, 12])[-2:]) < 1e-4
    assert apart(logits_after(target, twin, [13]), fresh([*PROMPT, 7, 8, 9, 13])[-1:]) < 1e-4
    assert apart(logits_after(target, cache, [14]), fresh([*PROMPT, 7, 11, 12, 14])[-1:]) < 1e-4
    assert all(mx.array_equal(rows[name], before[name]) for name in rows)
    target.forward(mx.array([15, 16]), cache, rows=0)  # as a prefill does, by MLX
    assert apart(logits_after(target, cache, [17]), fresh([*PROMPT, 7, 11, 12, 14, 15, 16, 17])[-1:]) < 1e-4
    again = target.make_cache()
    kept.restore(again, [rows], {}, 10)
    assert apart(logits_after(target, again, [9]), fresh([*PROMPT, 7, 8, 9])[-1:]) < 1e-4


def test_the_arrays_grow(cuda: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_place, "LEAST", 16)
    target = tiny.target()
    cache = target.make_cache()
    tokens = [at * 7 % tiny.VOCABULARY for at in range(19)]
    target.forward(mx.array(tokens[:14]), cache, rows=0)
    logits_after(target, cache, tokens[14:16])
    assert cache.buffers(0)[0][0].shape[2] == 16
    found = logits_after(target, cache, tokens[16:])
    assert cache.buffers(0)[0][0].shape[2] == 32
    assert apart(found, logits_after(target, target.make_cache(), tokens)[-3:]) < 1e-4


def test_what_was_described_is_what_rounds_run(cuda: None) -> None:
    """So that the first round of each width is as fast as later ones; and nothing of the cache is touched."""
    target = tiny.target()
    assert target._fused is not None
    cache = target.make_cache()
    target.forward(mx.array(PROMPT), cache, rows=0)
    before = [mx.array(each) for layer in cache.layers for each in (layer.keys, layer.values)]
    target.describe(cache, tiny.TAPS, 2)
    assert all(
        mx.array_equal(each, own)
        for each, own in zip(
            before, (each for layer in cache.layers for each in (layer.keys, layer.values)), strict=True
        )
    )
    known = set(target._fused._graphs._shapes)
    for width in (1, 2):
        target.forward(mx.array(PROMPT[:width]), cache, tiny.TAPS)
    assert target._fused._graphs._shapes == known


def test_a_packed_cache_and_a_long_one_are_left_to_the_model(cuda: None, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tiny.target()
    monkeypatch.setattr("slipstream.models.fused.KEYS", 14)
    cache = target.make_cache()
    target.forward(mx.array(PROMPT), cache, rows=0)
    expected = logits_after(target, target.make_cache(), [*PROMPT, 1, 2, 3, 4])[-4:]
    assert apart(logits_after(target, cache, [1, 2]), expected[:2]) < 1e-4
    assert apart(logits_after(target, cache, [3, 4]), expected[2:]) < 1e-4  # beyond what the kernel is for
    packed = target.make_cache(8)
    target.forward(mx.array(PROMPT), packed, rows=0)
    assert apart(logits_after(target, packed, [1, 2]), expected[:2]) < 1.0


def load(folder: Path, mode: Mode, target: Target, markov: str = "") -> DSpark | DFlash:
    kind: dict[str, Any] = {"markov": markov} if markov else {}
    written = tiny.write_drafter(folder, mode, **kind)
    drafter = load_drafter(written, target, Precision(drafter_bits=0))
    assert isinstance(drafter, DSpark | DFlash)
    assert drafter.is_fused
    return drafter


@pytest.mark.parametrize(
    ("mode", "markov"),
    [
        pytest.param(Mode.DSPARK, "vanilla", marks=pytest.mark.slow),
        pytest.param(Mode.DSPARK, "gated", marks=pytest.mark.slow),
        pytest.param(Mode.DSPARK, "rnn", marks=pytest.mark.slow),
        pytest.param(Mode.DFLASH, "", marks=pytest.mark.slow),
    ],
)
def test_drafts_are_those_of_the_layers(cuda: None, tmp_path: Path, mode: Mode, markov: str) -> None:
    """Greedy drafts, their logits and their confidences, for one request and for two at once."""
    target = tiny.target()
    ours = load(tmp_path, mode, target, markov)
    states, expected = [], []
    for length in (5, 8):
        states.append(ours.begin())
        taps = target.forward(mx.array(PROMPT[:length]), target.make_cache(), tiny.TAPS, rows=0).taps
        ours.observe(states[-1], PROMPT[:length], taps)
    for is_fused in (False, True):
        found = []
        for rows in ((0,), (1,), (0, 1)):
            wishes = [
                Wish(ours, states[row], 11 + row, 4, lambda logits, slot: mx.argmax(logits, axis=-1), is_fused)
                for row in rows
            ]
            found += ours.propose_together(wishes)
        expected = found if not is_fused else expected
    for own, other in zip(found, expected, strict=True):
        assert ints(own.tokens) == ints(other.tokens)
        assert own.logits is not None
        assert other.logits is not None
        assert apart(own.logits, other.logits) < 1e-4
        if other.confidence is not None:
            assert own.confidence is not None
            assert apart(own.confidence, other.confidence) < 1e-4


def check_ids(folder: Path, mode: Mode, temperature: float, width: int, tokens: int) -> None:
    target = tiny.target()
    own = load(folder, mode, target)
    options = Options(max_tokens=tokens, temperature=temperature, seed=width, max_draft=width)
    expected = plain(target, options, PROMPT)
    found = decode(target, (half(own, expected.tokens, len(PROMPT)),), options, PROMPT)
    assert found.tokens == expected.tokens
    assert found.accepted


def test_speculative_ids_are_the_plain_ones(cuda: None, tmp_path: Path) -> None:
    check_ids(tmp_path, Mode.DSPARK, 0.0, 3, 6)


@pytest.mark.slow
@pytest.mark.parametrize("width", range(1, 9))
@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("mode", [Mode.DSPARK, Mode.DFLASH])
def test_speculative_ids_are_the_plain_ones_at_every_width(
    cuda: None, tmp_path: Path, mode: Mode, temperature: float, width: int
) -> None:
    check_ids(tmp_path, mode, temperature, width, 14)


def test_rows_that_share_a_forward_get_what_they_get_alone(cuda: None) -> None:
    target = tiny.target()
    prompts, more = [PROMPT[:3], PROMPT, PROMPT[2:6]], [[7], [8, 9, 10], [11, 12]]
    alone, together = [target.make_cache() for _ in prompts], [target.make_cache() for _ in prompts]
    for caches in (alone, together):
        for prompt, cache in zip(prompts, caches, strict=True):
            target.forward(mx.array(prompt), cache, rows=0)
    for _ in range(2):
        rows = [(mx.array(tokens), cache) for tokens, cache in zip(more, together, strict=True)]
        for found, tokens, cache in zip(target.forward_rows(rows, tiny.TAPS), more, alone, strict=True):
            own = target.forward(mx.array(tokens), cache, tiny.TAPS)
            assert found.logits is not None
            assert own.logits is not None
            assert apart(found.logits, own.logits) < 1e-4
            assert all(apart(found.taps[tap], own.taps[tap]) < 1e-4 for tap in tiny.TAPS)
        together[1].rewind(together[1].length - 2)
        alone[1].rewind(alone[1].length - 2)


@contextmanager
def no_collector() -> Generator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_a_model_that_is_let_go_is_freed_with_its_graphs(cuda: None, tmp_path: Path) -> None:
    """At once, not when Python next looks for circles: another model may be waiting for the room."""
    target = tiny.target()
    drafter = load(tmp_path, Mode.DSPARK, target)
    cache, state = target.make_cache(), drafter.begin()
    drafter.observe(state, PROMPT, target.forward(mx.array(PROMPT), cache, tiny.TAPS, rows=0).taps)
    logits_after(target, cache, [7])
    drafter.propose_together([Wish(drafter, state, 7, 2, lambda logits, slot: mx.argmax(logits, axis=-1), True)])
    left = [ref(target._fused), ref(drafter._fused)]
    assert all(each() is not None for each in left)
    with no_collector():
        del drafter, state
        del target, cache
        assert [each() for each in left] == [None, None]


class Doubled:
    def __init__(self) -> None:
        self.graphs, self.weight = Graphs(), mx.array([2.0])

    def times(self, factor: int, x: mx.array) -> list[mx.array]:
        return [x * factor * self.weight]


def test_graphs_are_no_circle_with_whose_they_are() -> None:
    owner = Doubled()
    run = owner.graphs.of(owner.times, 3, (1,))
    assert run(mx.array([1.0]))[0].item() == 6.0
    with no_collector():
        left = ref(owner)
        del owner, run
        assert left() is None


@pytest.mark.parametrize("at", range(2))
def test_a_kernel_that_gives_no_numbers_is_not_used(cuda: None, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Neither at first nor later: NaN compares with nothing."""
    made, calls = fused.Fused.forward, list[int]()

    def broken(*arguments: Any) -> Any:
        logits, taps = made(*arguments)
        calls.append(1)
        return (logits * mx.nan if len(calls) == at + 1 else logits), taps

    monkeypatch.setattr(fused.Fused, "forward", broken)
    assert not tiny.target().is_fused


def test_a_drafters_kernel_that_gives_no_numbers_is_not_used(
    cuda: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = FusedBlock.run
    monkeypatch.setattr(FusedBlock, "run", lambda *arguments: run(*arguments) * mx.nan)
    drafter = load_drafter(tiny.write_drafter(tmp_path, Mode.DSPARK), tiny.target(), Precision(drafter_bits=0))
    assert isinstance(drafter, DSpark)
    assert not drafter.is_fused


LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
LONG = {"original_max_position_embeddings": 64, "short_factor": [1.0] * 16, "long_factor": [2.0] * 16}


@pytest.mark.parametrize(
    ("kind", "more", "is_ours"),
    [
        ("default", {}, True),
        ("linear", {}, True),
        ("llama3", LLAMA3, True),
        ("yarn", {"original_max_position_embeddings": 64}, False),  # also scales
        ("dynamic", {}, False),  # by the length
        ("longrope", LONG, False),  # also scales
    ],
)
def test_heads_are_turned_as_the_model_turns_them_or_left_to_it(kind: str, more: dict[str, Any], is_ours: bool) -> None:
    """Far behind the few tokens on which a model is tried."""
    rope = initialize_rope(32, 10000.0, False, {"rope_type": kind, "factor": 4.0} | more, 2048)
    freqs = turning(rope, 32)
    assert (freqs is not None) == is_ours
    assert turning(rope, 64) is None  # only a part of each head is turned
    assert turning(initialize_rope(32, 10000.0, True), 32) is None  # neighbours are pairs
    if freqs is not None:
        turned = rope(mx.concatenate([mx.ones((1, 1, 1, 16)), mx.zeros((1, 1, 1, 16))], axis=-1), offset=1500)
        assert apart(turned.flatten(), mx.concatenate([mx.cos(1500 * freqs), mx.sin(1500 * freqs)])) < 1e-3
