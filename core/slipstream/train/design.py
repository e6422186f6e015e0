"""What the drafter to be trained looks like, and the config of the checkpoint it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from slipstream.drafters.descriptor import Descriptor, Markov, Rope
from slipstream.errors import InvalidRequest, UnsupportedModel
from slipstream.types import Mode

Kind = Literal["dspark", "dflash"]
METADATA = "slipstream"  # the entry of config.json that is ours
STEP = 64  # rows of a smaller output table come in multiples of it


@dataclass(frozen=True, slots=True)
class TargetShape:
    """What of a target decides its drafter's shape."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    layers: int
    vocabulary: int
    eps: float
    rope_theta: float
    context: int

    @classmethod
    def of(cls, config: Mapping[str, Any], *, layers: int, hidden: int, vocabulary: int, context: int) -> TargetShape:
        """From a model's config; the numbers that the loaded target knows for certain are given."""
        text: Mapping[str, Any] = config.get("text_config") or config
        head_dim = int(text.get("head_dim") or hidden // int(text.get("num_attention_heads") or max(hidden // 64, 1)))
        heads = max(1, hidden // head_dim)
        kv_heads = int(text.get("num_key_value_heads") or heads)
        rope: Mapping[str, Any] = text.get("rope_parameters") or {}
        return cls(
            hidden=hidden,
            intermediate=int(text.get("intermediate_size") or 3 * hidden),
            heads=heads,
            kv_heads=kv_heads if heads % kv_heads == 0 else heads,
            head_dim=head_dim,
            layers=layers,
            vocabulary=vocabulary,
            eps=float(text.get("rms_norm_eps") or 1e-6),
            rope_theta=float(rope.get("rope_theta") or text.get("rope_theta") or 10000.0),
            context=context,
        )


@dataclass(frozen=True, slots=True)
class Design:
    """Choices about the drafter."""

    kind: Kind = "dspark"
    layers: int = 3
    taps: tuple[int, ...] = ()
    proposals: int = 7
    rank: int = 64  # of DSpark's Markov head
    markov: Markov = "vanilla"
    confidence: bool = True
    causal: bool = False  # whether slots see only those before them
    mask_id: int = 0
    draft_vocabulary: int = 0  # tokens that it can propose, those that are said most; 0: all

    def descriptor(self, shape: TargetShape) -> Descriptor:
        is_dspark = self.kind == "dspark"
        first = 0 if is_dspark else 1
        return Descriptor(
            mode=Mode.DSPARK if is_dspark else Mode.DFLASH,
            hidden=shape.hidden,
            intermediate=shape.intermediate,
            layers=self.layers,
            heads=shape.heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            vocabulary=shape.vocabulary,
            draft_vocabulary=min(self.draft_vocabulary or shape.vocabulary, shape.vocabulary),
            eps=shape.eps,
            rope=Rope(shape.head_dim, shape.rope_theta, interleaved=False, scaling=None),
            taps=self.taps or default_taps(5, shape.layers),
            target_layers=shape.layers,
            block=self.proposals + first,
            first=first,
            mask_id=self.mask_id,
            windows=(None,) * self.layers,
            causal=(self.causal,) * self.layers,
            is_gemma=False,
            keys_are_values=False,
            gated=False,
            sinks=False,
            offset_norms=False,
            markov=self.markov if is_dspark and self.rank else None,
            rank=self.rank if is_dspark else 0,
            confidence=is_dspark and self.confidence,
            confidence_with_markov=is_dspark and self.confidence and self.rank > 0,
            confidence_temperatures=(),
            own_embed=False,
            own_head=False,
            multiplier=1.0,
            softcap=None,
            embed_scale=1.0 if is_dspark else None,
            max_position=shape.context,
            conv_kernel=0,
            conv_group=0,
            selector_rank=0,
            selector_top=16,
            log_snr=None,
        )


def of_descriptor(d: Descriptor, shape: TargetShape, where: str) -> Design:
    """The choices behind a drafter that can be trained on. Raises UnsupportedModel for one of another build."""
    design = Design(
        kind="dspark" if d.mode is Mode.DSPARK else "dflash",
        layers=d.layers,
        taps=d.taps,
        proposals=d.proposals,
        rank=d.rank,
        markov=d.markov or "vanilla",
        confidence=d.confidence,
        causal=all(d.causal),
        mask_id=d.mask_id,
        draft_vocabulary=d.draft_vocabulary if d.is_reduced else 0,
    )
    ours = design.descriptor(replace(shape, eps=d.eps, context=d.max_position))
    theirs = replace(d, confidence_temperatures=(), target_layers=ours.target_layers, embed_scale=ours.embed_scale)
    if theirs != ours:
        fields = [name for name in Descriptor.__slots__ if getattr(ours, name) != getattr(theirs, name)]
        raise UnsupportedModel(
            f"{where} is built otherwise ({', '.join(fields)}); only ours can go on; leave --from out"
        )
    return design


def default_taps(count: int, layers: int) -> tuple[int, ...]:
    """z-lab's rule, spread from layer 1 to the third from the end (drafters.md §1.1); fewer where layers are few."""
    count = min(count, max(1, layers - 3))
    if count == 1:
        return (layers // 2,)
    return tuple(sorted({round(1 + index * (layers - 4) / (count - 1)) for index in range(count)}))


def config_of(d: Descriptor, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """config.json in DeepSpec's layout (DSpark) or z-lab's (DFlash), with our own entry beside it."""
    config: dict[str, Any] = {
        "model_type": "qwen3",
        "hidden_size": d.hidden,
        "intermediate_size": d.intermediate,
        "num_attention_heads": d.heads,
        "num_key_value_heads": d.kv_heads,
        "head_dim": d.head_dim,
        "num_hidden_layers": d.layers,
        "num_target_layers": d.target_layers,
        "vocab_size": d.vocabulary,
        "rms_norm_eps": d.eps,
        "rope_theta": d.rope.theta,
        "rope_scaling": None,
        "max_position_embeddings": d.max_position,
        "hidden_act": "silu",
        "attention_bias": False,
        "layer_types": ["full_attention"] * d.layers,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
        "block_size": d.block,
        "logits_start": d.first,
    }
    if d.is_reduced:
        config["draft_vocab_size"] = d.draft_vocabulary
    if d.mode is Mode.DSPARK:
        config |= {
            "architectures": ["Qwen3DSparkModel"],
            "mask_token_id": d.mask_id,
            "target_layer_ids": list(d.taps),
            "enable_confidence_head": d.confidence,
            "confidence_head_with_markov": d.confidence_with_markov,
            "markov_rank": d.rank,
            "markov_head_type": d.markov or "vanilla",
        }
        if d.causal[0]:
            config["dflash_query_causal"] = True
        if d.confidence_temperatures:
            config["confidence_temperatures"] = list(d.confidence_temperatures)
    else:
        config |= {
            "architectures": ["DFlashDraftModel"],
            "is_causal": d.causal[0],
            "dflash_config": {"mask_token_id": d.mask_id, "target_layer_ids": list(d.taps)},
        }
    return config | {METADATA: dict(metadata)}


def check(design: Design, shape: TargetShape) -> None:
    """Raises InvalidRequest for a drafter that this target cannot have."""
    if design.taps and (max(design.taps) >= shape.layers - 1 or min(design.taps) < -1):
        raise InvalidRequest(
            f"--taps must be layers from -1 to {shape.layers - 2}, not {list(design.taps)}", option="taps"
        )
    if not 0 <= design.mask_id < shape.vocabulary:
        raise InvalidRequest(f"--mask-id must be a token from 0 to {shape.vocabulary - 1}", option="mask_id")
    if design.draft_vocabulary < 0 or design.draft_vocabulary % STEP:
        raise InvalidRequest(
            f"--draft-vocabulary must be a multiple of {STEP}, not {design.draft_vocabulary}", option="draft_vocabulary"
        )
    if design.layers < 1 or not 1 <= design.proposals <= 32:
        raise InvalidRequest("a drafter needs a layer or more, and from 1 to 32 proposals", option="layers")
