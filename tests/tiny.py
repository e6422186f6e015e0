"""Tiny random models in their true published layouts, for tests that run the real engine in milliseconds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.models import llama, qwen3

from slipstream.drafters.dflash import DFlash
from slipstream.drafters.dspark import DSpark
from slipstream.drafters.mtp import Mtp
from slipstream.drafters.protocol import Drafter, Draw, Proposal, Wish
from slipstream.models.host import ints
from slipstream.models.target import Target
from slipstream.types import Mode
from tiny_drafters import Parts, random_weights

VOCABULARY = 96
HIDDEN = 64
LAYERS = 4
TAPS = (0, 1, 2)


def target_config(model_type: str = "llama") -> dict[str, Any]:
    return {
        "model_type": model_type,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "rms_norm_eps": 1e-5,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 2048,
        "rope_theta": 10000.0,
        "tie_word_embeddings": model_type == "llama",
    }


def target(precision: str = "float32", *, model_type: str = "llama", seed: int = 0) -> Target:
    """A random target. `precision`: float32, bfloat16, 8-bit or 4-bit (packed weights, float32 arithmetic)."""
    config = target_config(model_type)
    module = {"llama": llama, "qwen3": qwen3}[model_type]
    model: nn.Module = module.Model(module.ModelArgs.from_dict(config))
    randomise(model, seed)
    if precision == "bfloat16":
        model.set_dtype(mx.bfloat16)
    elif precision.endswith("-bit"):
        nn.quantize(model, group_size=32, bits=int(precision[0]))
    mx.eval(model.parameters())
    return Target(model, config)


def _parameters(model: nn.Module) -> list[tuple[str, mx.array]]:
    return cast(list[tuple[str, mx.array]], tree_flatten(model.parameters()))


def randomise(model: nn.Module, seed: int) -> None:
    """Weights large enough that the model's choices depend on its context."""
    keys = iter(mx.random.split(mx.random.key(seed), 200))
    weights = [
        (
            name,
            value if "norm" in name else mx.random.normal(value.shape, key=next(keys)) * value.shape[-1] ** -0.5 * 2,
        )
        for name, value in _parameters(model)
    ]
    model.update(tree_unflatten(weights))


def drafter_config(mode: Mode, *, markov: str = "vanilla", block: int = 7) -> dict[str, Any]:
    config: dict[str, Any] = {
        "model_type": "qwen3",
        "hidden_size": HIDDEN,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "vocab_size": VOCABULARY,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "num_target_layers": LAYERS,
        "block_size": block,
    }
    if mode is Mode.DSPARK:
        return config | {
            "architectures": ["Qwen3DSparkModel"],
            "mask_token_id": 3,
            "target_layer_ids": list(TAPS),
            "markov_head_type": markov,
            "markov_rank": 32,
            "enable_confidence_head": True,
            "confidence_head_with_markov": True,
        }
    return config | {
        "architectures": ["DFlashDraftModel"],
        "dflash_config": {"mask_token_id": 3, "target_layer_ids": list(TAPS)},
    }


def write_drafter(folder: Path, mode: Mode, *, own_tables: bool = False, seed: int = 1, **config: Any) -> Path:
    """A random drafter checkpoint on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = drafter_config(mode, **config)
    (folder / "config.json").write_text(json.dumps(settings))
    is_dspark = mode is Mode.DSPARK
    parts = Parts(
        markov=settings["markov_head_type"] if is_dspark else "",
        confidence=is_dspark,
        embed=own_tables,
        head=own_tables,
        taps=len(TAPS),
        hidden=HIDDEN,
        vocabulary=VOCABULARY,
    )
    mx.save_safetensors(str(folder / "model.safetensors"), random_weights(parts, seed))
    return folder


class HalfAlone:
    """Makes a real drafter right about half of the time, by replacing drafts with what the target will say.

    `answer` is the plain run's ids from the first position after the prompt on.
    """

    def __init__(self, drafter: DSpark | DFlash | Mtp, answer: Sequence[int], prompt_length: int) -> None:
        self._drafter: Any = drafter
        self._answer = answer
        self._prompt_length = prompt_length
        self.mode, self.taps, self.block = drafter.mode, drafter.taps, drafter.block

    def __getattr__(self, name: str) -> Any:
        return getattr(self._drafter, name)

    def buffers(self, state: Any) -> Any:
        return self._drafter.buffers(state)

    def restore(self, buffers: Any, length: int) -> Any:
        return self._drafter.restore(buffers, length)

    def propose(self, state: Any, last: int, limit: int, draw: Draw) -> Proposal:
        return self._righted(state, self._drafter.propose(state, last, limit, draw))

    def _righted(self, state: Any, proposal: Proposal) -> Proposal:
        tokens = half_right(ints(proposal.tokens), self._answer, state.length + 1 - self._prompt_length)
        return Proposal(tokens, proposal.confidence, proposal.logits)


class Half(HalfAlone):
    """The same for a drafter that drafts for several requests at once."""

    def propose(self, state: Any, last: int, limit: int, draw: Draw) -> Proposal:
        return self.propose_together([Wish(cast(Drafter, self), state, last, limit, draw)])[0]

    def propose_together(self, wishes: Sequence[Wish]) -> list[Proposal]:
        proposals = self._drafter.propose_together(wishes)
        return [self._righted(wish.state, proposal) for wish, proposal in zip(wishes, proposals, strict=True)]

    def observe_together(self, states: Any, tokens: Any, taps: Any) -> None:
        self._drafter.observe_together(states, tokens, taps)


def half_right(drafts: Sequence[int], answer: Sequence[int], at: int) -> mx.array:
    """Drafts for answer[at], answer[at + 1], …, most of them replaced with what is right."""
    tokens = list(drafts)
    for index in range(len(tokens)):
        if at + index < len(answer) and (at + index) * 2654435761 % 7 < 5:
            tokens[index] = answer[at + index]
    return mx.array(tokens, dtype=mx.int32)
