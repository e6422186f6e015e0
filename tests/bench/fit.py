"""The estimate of `slipstream models fit` against the peak that MLX reports, for made models in published layouts.

    python tests/bench/fit.py build/fit [--context 1024] [--only gemma3_text]

Each model is loaded by the real engine in a process of its own and answers a prompt that fills the context.
"""

from __future__ import annotations

from slipstream.models.backend import prepare

prepare()

import argparse  # noqa: E402 - MLX must find its BLAS first
import importlib  # noqa: E402
import json  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

TOKENISER_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")
_BASE: dict[str, Any] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "intermediate_size": 2048,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "rms_norm_eps": 1e-5,
    "vocab_size": 49152,
    "max_position_embeddings": 32768,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}
_EXPERTS: dict[str, Any] = {
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 256,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
}
# By architecture of mlx-lm: what its published configs add.
MODELS: dict[str, dict[str, Any]] = {
    "llama": {},  # grouped queries
    "qwen3_moe": {**_EXPERTS, "tie_word_embeddings": False},
    "gemma3_text": {"sliding_window": 512, "sliding_window_pattern": 6, "head_dim": 128},
    "qwen3_next": {
        **_EXPERTS,
        "linear_num_value_heads": 8,
        "linear_num_key_heads": 4,
        "linear_key_head_dim": 64,
        "linear_value_head_dim": 64,
        "linear_conv_kernel_dim": 4,
        "shared_expert_intermediate_size": 256,
        "partial_rotary_factor": 0.25,
    },
    "lfm2": {
        "norm_eps": 1e-5,
        "conv_bias": False,
        "conv_L_cache": 3,
        "block_dim": 768,
        "block_ff_dim": 2048,
        "block_multiple_of": 256,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": False,
        "full_attn_idxs": [2, 5, 8, 11],
    },
    "nemotron_h": {
        "attention_bias": False,
        "mamba_num_heads": 24,
        "mamba_head_dim": 64,
        "mamba_proj_bias": False,
        "ssm_state_size": 128,
        "conv_kernel": 4,
        "n_groups": 8,
        "mlp_bias": False,
        "layer_norm_epsilon": 1e-5,
        "use_bias": False,
        "use_conv_bias": True,
        "hybrid_override_pattern": "M-M-M*-M-M*-",
        "tie_word_embeddings": False,
    },
}


def make(folder: Path, name: str) -> Path:
    """A random model on disk, with the built-in model's tokenizer. What is there already is kept."""
    import mlx.core as mx
    from mlx.utils import tree_flatten, tree_map

    from slipstream.store import demo
    from slipstream.store.atomic import atomic_folder

    final = folder / name
    if final.is_dir():
        return final
    config = {**_BASE, **MODELS[name], "model_type": name, "torch_dtype": "bfloat16"}
    module = importlib.import_module(f"mlx_lm.models.{name}")
    model = module.Model(module.ModelArgs.from_dict(config))
    model.update(tree_map(lambda array: (array * 0.5).astype(mx.bfloat16), model.parameters()))
    with atomic_folder(final) as made:
        weights: dict[str, mx.array] = dict(tree_flatten(model.parameters()))  # pyright: ignore[reportAssignmentType]
        mx.save_safetensors(str(made / "model.safetensors"), weights, metadata={"format": "mlx"})
        (made / "config.json").write_text(json.dumps(config, indent=2))
        for file in TOKENISER_FILES:
            shutil.copy(demo.target() / file, made / file)
    return final


def measure(folder: Path, context: int, drafters: list[Path]) -> dict[str, int]:
    """Load and answer here, and report the peak. Once in a process: the peak never goes down."""
    import mlx.core as mx

    from slipstream.engine.engine import open_engine
    from slipstream.engine.pair import Pair
    from slipstream.events import Done
    from slipstream.jobs import Job
    from slipstream.store import memory
    from slipstream.types import Mode, Options, Request, Tokens

    estimate = memory.fit(folder, drafters, context=context)
    engine = open_engine(Pair(folder, tuple(drafters)))
    at_load = mx.get_peak_memory()
    mx.reset_peak_memory()
    mode = Mode.AUTO if drafters else Mode.BASELINE
    prompt = Tokens(tuple(17 + index % 4000 for index in range(context - 32)))
    events = list(engine.run(Job(Request(prompt, Options(max_tokens=32, ignore_eos=True, mode=mode)), lambda _: None)))
    assert isinstance(events[-1], Done)
    peak = mx.get_peak_memory()
    engine.close()
    weights = estimate.target + estimate.drafter
    return {
        "weights": weights,
        "load_estimate": weights + estimate.loading,
        "load_peak": at_load,
        "cache": estimate.kv + estimate.drafter_kv,
        "answer_estimate": weights + estimate.kv + estimate.drafter_kv + estimate.working,
        "answer_peak": peak,
        "resident": _peak_resident(),
    }


def _peak_resident() -> int:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        drafters: list[Path] = []
        if args.one == "built-in pair":
            from slipstream.store import demo

            folder, drafters = demo.target(), list(demo.drafters().values())
        else:
            folder = make(args.folder, args.one)
        print(json.dumps(measure(folder, args.context, drafters)))
        return
    print("| model | context | weights | cache | loading: estimate, peak, ratio | answering: the same | both |")
    print("|---|---|---|---|---|---|---|")
    for name in args.only or [*MODELS, "built-in pair"]:
        command = [sys.executable, __file__, str(args.folder), "--context", str(args.context), "--one", name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            print(f"| {name} | {args.context} | failed |")
            continue
        got: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
        pairs = [(got[f"{what}_estimate"], got[f"{what}_peak"]) for what in ("load", "answer")]
        pairs.append((max(pairs[0][0], pairs[1][0]), max(pairs[0][1], pairs[1][1])))
        cells = [f"{ours / 1e6:.0f}, {peak / 1e6:.0f}, {ours / peak:.3f}" for ours, peak in pairs]
        sizes = f"{got['weights'] / 1e6:.0f} | {got['cache'] / 1e6:.0f}"
        print(f"| {name} | {args.context} | {sizes} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
