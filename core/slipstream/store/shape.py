"""What a model remembers of a request, by its config.json: rows of keys and values, and states of a fixed size.

The rules are mlx-lm's (`make_cache` of each architecture) with our caches for windows; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STEP = 256  # rows by which mlx-lm's caches grow
WINDOW_SLACK = 64  # rows that a window's cache keeps beyond the window, to be able to go back
KV_GROUPS = (64, 32)  # values that share a scale and an offset in a packed cache: the first that divides the heads


@dataclass(frozen=True, slots=True)
class Rows:
    """One layer's keys and values: a row for each token, of a window if there is one."""

    values: int  # in one row, keys and values together
    window: int | None = None
    group: int = KV_GROUPS[-1]

    def bytes(self, context: int, element_bytes: int, kv_bits: int = 0) -> int:
        rows = context
        if self.window is not None:
            rows = min(rows, self.window + WINDOW_SLACK + STEP)
        rows = -(-rows // STEP) * STEP
        if kv_bits and self.window is None:
            return int(rows * self.values * (kv_bits / 8 + 2 * element_bytes / self.group))
        return rows * self.values * element_bytes


@dataclass(frozen=True, slots=True)
class Fixed:
    """One layer's recurrent state, whatever the context."""

    values: int  # in the model's own type
    float32_values: int = 0

    def bytes(self, context: int, element_bytes: int, kv_bits: int = 0) -> int:
        return self.values * element_bytes + self.float32_values * 4


@dataclass(frozen=True, slots=True)
class Shape:
    """A model's cache, layer by layer, and the sizes that its passes work in."""

    layers: tuple[Rows | Fixed, ...]
    hidden: int
    heads: int
    intermediate: int
    vocabulary: int
    context: int  # that the model was made for

    def cache_bytes(self, context: int, element_bytes: int, kv_bits: int = 0) -> int:
        return sum(layer.bytes(context, element_bytes, kv_bits) for layer in self.layers)


def of_config(config: Mapping[str, Any]) -> Shape | None:
    """None when the config does not say enough, or says something this does not know."""
    text: Mapping[str, Any] = config.get("text_config") or config
    try:
        shape = Shape(
            layers=tuple(_layers(text)),
            hidden=int(text["hidden_size"]),
            heads=int(text["num_attention_heads"]),
            intermediate=_intermediate(text),
            vocabulary=int(text["vocab_size"]),
            context=int(text.get("max_position_embeddings") or 4096),
        )
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
        return None
    return shape if min(shape.hidden, shape.heads, shape.vocabulary, shape.context) > 0 else None


def _intermediate(text: Mapping[str, Any]) -> int:
    """The widest that a token gets inside a layer, over the experts it visits."""
    plain = int(text.get("intermediate_size") or text.get("block_ff_dim") or 0)
    expert = int(text.get("moe_intermediate_size") or 0)
    chosen = text.get("num_experts_per_tok") or text.get("num_experts_per_token") or text.get("top_k_experts") or 0
    return max(plain, expert * int(chosen))


def _layers(text: Mapping[str, Any]) -> list[Rows | Fixed]:
    kinds = _kinds(text)
    heads = int(text["num_attention_heads"])
    kv_heads = int(text.get("num_key_value_heads") or heads)
    head_dim = int(text.get("head_dim") or int(text["hidden_size"]) // heads)
    window = text.get("sliding_window")
    if rank := text.get("kv_lora_rank"):  # latent attention keeps the compressed row and the rotated part
        rotated = int(text["qk_rope_head_dim"])
        plain = Rows(int(rank) + rotated, group=_group(int(rank), rotated))
    else:
        plain = Rows(2 * kv_heads * head_dim, group=_group(head_dim))
    wide = plain
    if text.get("global_head_dim"):  # Gemma 4: layers without a window have other heads
        wide_heads = (
            int(text.get("num_global_key_value_heads") or kv_heads) if text.get("attention_k_eq_v") else kv_heads
        )
        wide_dim = int(text["global_head_dim"])
        wide = Rows(2 * wide_heads * wide_dim, group=_group(wide_dim))
    made: list[Rows | Fixed] = []
    for kind in kinds:
        match kind:
            case "full_attention" | "attention" | "*":
                made.append(wide)
            case "sliding_attention" if window:
                made.append(Rows(plain.values, int(window)))
            case "sliding_attention":
                made.append(plain)
            case "linear_attention":
                made.append(_delta_net(text))
            case "mamba" | "M":
                made.append(_mamba(text))
            case "conv":
                kernel = int(text.get("conv_L_cache") or 3)
                made.append(Fixed((kernel - 1) * int(text["hidden_size"])))
            case "mlp" | "moe" | "-" | "E":
                pass  # remembers nothing
            case _:
                raise ValueError(kind)
    return made[: len(made) - int(text.get("num_kv_shared_layers") or 0)]


def _group(*sizes: int) -> int:
    return next((group for group in KV_GROUPS if not any(size % group for size in sizes)), KV_GROUPS[-1])


def _kinds(text: Mapping[str, Any]) -> Sequence[str]:
    """What each layer is, in the words of `layer_types`."""
    model = str(text.get("model_type", ""))
    if blocks := text.get("hybrid_override_pattern") or text.get("layers_block_type"):  # Nemotron-H
        return list(blocks)
    layers = range(int(text.get("num_hidden_layers") or len(text["layer_types"])))
    window_every = text.get("sliding_window_pattern") or _PATTERNS.get(model)
    every: object = None
    other = "linear_attention"
    if (full := text.get("full_attn_idxs")) is not None:  # LFM2
        return ["full_attention" if index in full else "conv" for index in layers]
    if (types := text.get("layer_types")) and model not in _NO_WINDOWS:
        return list(types)
    if text.get("linear_num_value_heads"):  # Qwen3-Next and its kin
        every = text.get("full_attention_interval") or 4
    elif window_every and text.get("sliding_window"):
        every, other = window_every, "sliding_attention"
    if every is None:
        return ["full_attention"] * (len(layers) * int(text.get("num_loops") or 1))  # Nanbeige runs its layers twice
    return ["full_attention" if index % int(str(every)) == int(str(every)) - 1 else other for index in layers]


# Architectures whose published configs leave out what mlx-lm knows, or say what mlx-lm does not do.
_PATTERNS = {"gemma3_text": 6, "gemma4_text": 5, "cohere2": 4}
_NO_WINDOWS = {"gemma2", "qwen2", "qwen3", "qwen3_moe"}


def _delta_net(text: Mapping[str, Any]) -> Fixed:
    value_heads, key_heads = int(text["linear_num_value_heads"]), int(text["linear_num_key_heads"])
    key_dim, value_dim = int(text["linear_key_head_dim"]), int(text["linear_value_head_dim"])
    kernel = int(text.get("linear_conv_kernel_dim") or 4)
    width = 2 * key_heads * key_dim + value_heads * value_dim
    return Fixed((kernel - 1) * width, value_heads * value_dim * key_dim)


def _mamba(text: Mapping[str, Any]) -> Fixed:
    """Mamba 2. Both spellings: Nemotron-H's and Granite's."""
    heads = int(text.get("mamba_num_heads") or text["mamba_n_heads"])
    head_dim = int(text.get("mamba_head_dim") or text["mamba_d_head"])
    state = int(text.get("ssm_state_size") or text["mamba_d_state"])
    groups = int(text.get("n_groups") or text["mamba_n_groups"])
    kernel = int(text.get("conv_kernel") or text["mamba_d_conv"])
    inner = heads * head_dim
    return Fixed((kernel - 1) * (inner + 2 * groups * state), inner * state)
