from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models import cache as mlx_caches

import tiny
from slipstream.engine.guard import Guard
from slipstream.errors import UnsupportedModel, WontFit
from slipstream.models.cache import QuantisedCache
from slipstream.store import converted, demo, memory, shape
from slipstream.store.candidate import Candidate, of_folder, of_gguf
from slipstream.store.memory import Limit, Verdict
from slipstream.types import Mode
from tiny_gguf import tiny_gguf

ROWS = 300
_BASE: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 6,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rms_norm_eps": 1e-5,
    "vocab_size": 96,
    "max_position_embeddings": 2048,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}
_EXPERTS: dict[str, Any] = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
}
_DELTA: dict[str, Any] = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 24,
    "linear_conv_kernel_dim": 4,
}
_WINDOWS = ["sliding_attention", "sliding_attention", "full_attention"] * 2
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen3": {"layer_types": ["full_attention"] * 6, "use_sliding_window": False, "sliding_window": None},
    "qwen3_moe": _EXPERTS,
    "gemma3_text": {"sliding_window": 16, "sliding_window_pattern": 3},
    "gemma4_text": {
        "sliding_window": 16,
        "global_head_dim": 48,
        "num_global_key_value_heads": 1,
        "attention_k_eq_v": True,
        "num_kv_shared_layers": 0,
        "hidden_size_per_layer_input": 0,
        "layer_types": _WINDOWS,
    },
    "olmo3": {"sliding_window": 16, "layer_types": _WINDOWS, "attention_bias": False},
    "qwen3_next": {**_EXPERTS, **_DELTA, "shared_expert_intermediate_size": 32, "partial_rotary_factor": 0.25},
    "lfm2": {
        "head_dim": None,
        "norm_eps": 1e-5,
        "conv_bias": False,
        "conv_L_cache": 3,
        "block_dim": 64,
        "block_ff_dim": 128,
        "block_multiple_of": 32,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": False,
        "full_attn_idxs": [2, 5],
    },
    "nemotron_h": {
        "attention_bias": False,
        "mamba_num_heads": 4,
        "mamba_head_dim": 16,
        "mamba_proj_bias": False,
        "ssm_state_size": 24,
        "conv_kernel": 4,
        "n_groups": 2,
        "mlp_bias": False,
        "layer_norm_epsilon": 1e-5,
        "use_bias": False,
        "use_conv_bias": True,
        "hybrid_override_pattern": "M-M*M-",
    },
    "nanbeige": {"num_loops": 2},
}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_cache_is_as_large_as_mlx_lm_makes_it(name: str) -> None:
    """Layer by layer, from shapes alone: the pass is never run."""
    config = {**_BASE, **FAMILIES[name], "model_type": name}
    module = importlib.import_module(f"mlx_lm.models.{name}")
    model = module.Model(module.ModelArgs.from_dict(config))
    caches = mlx_caches.make_prompt_cache(model)
    model(mx.zeros((1, ROWS), dtype=mx.int32), cache=caches)
    ours = shape.of_config(config)
    assert ours is not None
    assert len(ours.layers) == len(caches)
    for layer, theirs in zip(ours.layers, caches, strict=True):
        match layer, theirs:
            case shape.Fixed(), mlx_caches.ArraysCache():
                assert layer.bytes(ROWS, 4) == sum(array.nbytes for array in theirs.cache if array is not None)
            case shape.Rows(window=None), mlx_caches.KVCache():
                assert layer.bytes(ROWS, 4) == nbytes(theirs)
            case shape.Rows(window=16), mlx_caches.RotatingKVCache():
                assert layer.values * ROWS * 4 == nbytes(theirs)
                assert layer.bytes(100_000, 4) <= layer.values * 4 * 2 * shape.STEP  # however long the context
            case _:
                pytest.fail(f"{layer} for a {type(theirs).__name__}")


def nbytes(cache: Any) -> int:
    return cache.keys.nbytes + cache.values.nbytes


@pytest.mark.parametrize(("head_dim", "group"), [(32, 32), (64, 64), (96, 32), (128, 64)])
def test_a_packed_cache_is_as_large_as_it_really_is(head_dim: int, group: int) -> None:
    cache = QuantisedCache(4)
    cache.update_and_fetch(mx.zeros((1, 2, ROWS, head_dim)), mx.zeros((1, 2, ROWS, head_dim)))
    assert cache.group_size == group
    packed: Any = (cache.keys, cache.values)
    real = sum(array.nbytes for part in packed for array in part)
    assert shape.Rows(2 * 2 * head_dim, group=shape._group(head_dim)).bytes(ROWS, 4, kv_bits=4) == real


@pytest.mark.parametrize(
    "config",
    [{}, {"hidden_size": 64}, {**_BASE, "layer_types": ["retention"] * 6}, {**_BASE, "num_attention_heads": 0}],
)
def test_a_config_that_does_not_say_enough_gives_no_shape(config: dict[str, Any]) -> None:
    assert shape.of_config(config) is None


def test_the_weights_are_counted_from_their_headers(tmp_path: Path) -> None:
    candidate = of_folder(demo.target())
    assert candidate.elements * 4 == 538_060_032  # the float32 model, to the byte
    assert candidate.stored == (demo.target() / "model.safetensors").stat().st_size - _header(demo.target())
    drafter = of_folder(tiny.write_drafter(tmp_path / "d", Mode.DSPARK))
    assert drafter.element_bytes == 4


def _header(folder: Path) -> int:
    with (folder / "model.safetensors").open("rb") as file:
        return 8 + int.from_bytes(file.read(8), "little")


GPU = Limit(10**9, "GPU working set", 2 * 10**9, on_gpu=True, packs_drafters=True)
CONFIG = {**_BASE, "max_position_embeddings": 8192, "num_hidden_layers": 24, "head_dim": 64, "hidden_size": 256}


def model(stored: int) -> Candidate:
    return Candidate(CONFIG, stored, stored * 2, 2)


def test_the_verdict_and_the_longest_context_follow_from_the_numbers() -> None:
    fits = memory.fit(model(10**8), context=1024, against=GPU)
    assert fits.verdict is Verdict.FITS
    assert fits.total == fits.target + fits.kv + fits.working
    loading = memory.fit(Candidate(CONFIG, 10**8, 5 * 10**7, 2, 10**9), context=256, against=replace(GPU, on_gpu=False))
    assert loading.total == loading.target + 10**9
    assert fits.kv == 24 * 2 * 2 * 64 * 1024 * 2
    assert fits.longest_context == 8192
    tight = memory.fit(model(8 * 10**8), context=8192, against=GPU)
    large = memory.fit(model(9 * 10**8), context=8192, against=GPU)
    assert (tight.verdict, large.verdict) == (Verdict.TIGHT, Verdict.TOO_LARGE)
    assert 0 < large.longest_context < 8192
    at_longest = memory.fit(model(9 * 10**8), context=large.longest_context, against=GPU)
    beyond = memory.fit(model(9 * 10**8), context=large.longest_context + 256, against=GPU)
    assert (at_longest.total <= GPU.bytes, beyond.total <= GPU.bytes) == (True, False)
    with pytest.raises(WontFit, match=r"at most [\d,]+ tokens, or --kv-bits 8"):
        large.check("it")
    with pytest.raises(WontFit, match="choose a smaller model"):
        memory.fit(model(2 * 10**9), context=8192, against=GPU).check("it")
    fits.check("it")


def test_drafters_and_packed_caches_count() -> None:
    plain = memory.fit(model(10**8), context=8192, against=GPU)
    packed = memory.fit(model(10**8), context=8192, kv_bits=4, against=GPU)
    drafted = memory.fit(model(10**8), [model(10**7)], context=8192, against=GPU)
    assert packed.kv < plain.kv * 0.4
    assert drafted.drafter == int(2 * 10**7 * 4.5 / 8)
    assert drafted.drafter_kv > 0


def test_a_containers_limit_counts(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "meminfo").write_text("MemTotal: 8000000 kB\nMemAvailable: 6000000 kB\n")
    groups = tmp_path / "groups" / "box"
    groups.mkdir(parents=True)
    (tmp_path / "self" / "cgroup").write_text("0::/box/inner\n")
    for name, text in (("max", "2000000000"), ("current", "900000000"), ("stat", "anon 1\ninactive_file 300000000\n")):
        (groups / f"memory.{name}").write_text(text)
    total, free, kind = memory._linux_memory(tmp_path, tmp_path / "groups")
    assert (total, free, kind) == (8_192_000_000, 1_400_000_000, "memory of this container")
    (groups / "memory.max").write_text("max\n")
    assert memory._linux_memory(tmp_path, tmp_path / "groups")[1:] == (6_144_000_000, "free memory")


def test_the_guard_gives_memory_back_before_it_refuses() -> None:
    free = [0]
    config = Candidate(tiny.target_config(), 1, 1, 4)
    target = tiny.target()
    cache = target.make_cache()
    guard = Guard(config, target, GPU, headroom=lambda _: free[0])
    given_back: list[str] = []
    guard.sheds = [lambda: given_back.append("buffers"), lambda: given_back.append("prompts")]
    with pytest.raises(WontFit, match=r"a prompt of 1,000 tokens needs .* --kv-bits 8"):
        guard.admit(1000, 10, cache)
    assert given_back == ["buffers", "prompts"]
    given_back.clear()
    free[0] = 10**9
    guard.admit(1000, 10, cache)
    assert not given_back
    free[0] = 0
    guard.sheds = [lambda: free.__setitem__(0, 10**9), lambda: given_back.append("prompts")]
    guard.admit(1000, 10, cache)
    assert not given_back


def test_the_guard_keeps_what_requests_under_way_will_grow_into() -> None:
    target = tiny.target()
    free = [0]
    guard = Guard(Candidate(tiny.target_config(), 1, 1, 4), target, GPU, headroom=lambda _: free[0])
    guard.sheds = []
    first, second = target.make_cache(), target.make_cache()
    with pytest.raises(WontFit) as refused:
        guard.admit(1000, 10, first)
    free[0] = int(str(refused.value.facts["needed"]))  # room for one
    guard.admit(1000, 10, first)
    with pytest.raises(WontFit):
        guard.admit(1000, 10, second)
    first.length = 1280  # it has grown, which the free memory shows
    guard.admit(1000, 10, second)
    del second
    guard.admit(1000, 10, target.make_cache())  # one that has ended needs nothing


def test_a_gguf_is_counted_without_converting_it(tmp_path: Path) -> None:
    """As its folder would be, but for what norms become there."""
    for kind in ("llama", "qwen3"):
        file = tiny_gguf(kind=kind).write(tmp_path / f"{kind}.gguf")
        counted = of_gguf(file)
        folder = converted.converted(file, tmp_path / kind)
        assert counted.elements == of_folder(folder).elements
        ours, theirs = (memory.fit(each, context=256) for each in (counted, folder))
        assert (ours.target, ours.kv, ours.longest_context) == (theirs.target, theirs.kv, theirs.longest_context)
    drafter = tiny_gguf()
    drafter.metadata["general.architecture"] = "dspark"
    assert of_gguf(drafter.write(tmp_path / "drafter.gguf")).elements == of_gguf(tmp_path / "llama.gguf").elements
    packed = tiny_gguf()
    packed.tensors["blk.0.attn_q.weight"].kind = "Q4_K"
    with pytest.raises(UnsupportedModel, match="is Q4_K"):
        of_gguf(packed.write(tmp_path / "packed.gguf"))
