"""Before anything is made: which drafter suits a target, how long it takes, and what it is likely to bring.

Standard library alone, so that the window may ask too. Estimates say what was assumed; measured numbers go before them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slipstream.errors import InvalidRequest

LEAST_GAIN = 1.10  # times plain decoding, below which nothing is made unless asked for
PROPOSALS = 7  # that costs are measured for, and most figures are known of
LENGTHS = (5, 7, 10)  # drafts a round that are considered
LAYERS = (1, 2, 3, 5)
# Tokens per round of the built-in pair's DSpark (3 layers, 14 million tokens to learn from), and how they change with
# layers and tokens: DSpark's paper, figure 3 (1, 2 and 5 layers: 4.6, 5.7, 6.1 on GSM8K), and our runs (docs/train.md).
USUAL, USUAL_LAYERS, USUAL_TOKENS = 3.25, 3, 14e6
BY_LAYERS, BY_TOKENS = 0.16, 0.14
MOST = 5.5  # whatever is spent, with seven drafts
HEAD_OVERHEAD = 0.1  # of one row through the output table, what seven cost beside it
ANSWER = 220  # tokens, on average
SHARD, SHARD_SECONDS = 512, 60.0  # conversations in a file: as many as are written in so long, or fewer
LEAST_SHARD = 16  # texts at once, below which writing gets slower


@dataclass(frozen=True, slots=True)
class Size:
    """What a target's config says of it."""

    parameters: float  # all of them
    active: float  # that one token meets
    layers: int
    hidden: int
    vocabulary: int
    bits: float  # of a weight

    @property
    def is_sparse(self) -> bool:
        return self.active < 0.6 * self.parameters

    @property
    def head_share(self) -> float:
        """Of a forward of one token, what the output table takes."""
        return self.vocabulary * self.hidden / self.active


@dataclass(frozen=True, slots=True)
class Machine:
    """Sustained rates; what was measured with the target itself goes before what they imply."""

    bandwidth: float  # bytes per second
    flops: float  # in half precision
    watts: float
    plain_s: float | None = None  # a forward of one token, measured
    verify_s: float | None = None  # and of one more than are drafted


@dataclass(frozen=True, slots=True)
class Estimate:
    layers: int
    rank: int
    taps: int
    proposals: int
    writing_s: float
    training_s: float
    watt_hours: float
    per_round: float
    gain: float  # times plain decoding
    reason: str  # why not, where the gain is too small; else empty
    gains: tuple[float, ...] = ()  # by each measurement of the costs; none: they were not measured

    @property
    def is_worth_it(self) -> bool:
        return self.gain >= LEAST_GAIN


MACHINES = {
    # Apple's figures for memory; arithmetic as MLX reaches it in half precision, power of the whole chip at work.
    "M1": Machine(60e9, 2.2e12, 20),
    "M2": Machine(90e9, 3.0e12, 22),
    "M3": Machine(90e9, 3.4e12, 22),
    "M4": Machine(110e9, 4.0e12, 25),
    "Pro": Machine(220e9, 8e12, 40),
    "Max": Machine(400e9, 15e12, 70),
    "Ultra": Machine(700e9, 28e12, 140),
    "CPU": Machine(8e9, 6e10, 60),
    "H200": Machine(3.5e12, 2.5e14, 500),
}


def machine_of(chip: str) -> Machine:
    """By the chip's name, such as "Apple M4 Pro"."""
    for name in ("Ultra", "Max", "Pro", "M4", "M3", "M2", "M1", "H200"):
        if name in chip:
            return MACHINES[name]
    return MACHINES["M4"] if "Apple" in chip else MACHINES["CPU"]


def size_of(config: Mapping[str, Any]) -> Size | None:
    """From a model's config.json; None when it does not say enough."""
    text: Mapping[str, Any] = config.get("text_config") or config
    try:
        hidden, layers, vocabulary = (int(text[key]) for key in ("hidden_size", "num_hidden_layers", "vocab_size"))
        heads = int(text["num_attention_heads"])
        head_dim = int(text.get("head_dim") or hidden // heads)
        kv_heads = int(text.get("num_key_value_heads") or heads)
        plain = int(text.get("intermediate_size") or 3 * hidden)
        experts = int(text.get("num_experts") or text.get("num_local_experts") or 0)
        chosen = int(text.get("num_experts_per_tok") or 0)
        expert = int(text.get("moe_intermediate_size") or plain)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None
    attention = 2 * hidden * head_dim * (heads + kv_heads)
    all_mlp, active_mlp = (3 * hidden * expert * n for n in (experts, chosen)) if experts else (3 * hidden * plain,) * 2
    table = vocabulary * hidden
    quantisation: Mapping[str, Any] = config.get("quantization") or {}
    bits = float(quantisation.get("bits") or 16) + (0.5 if quantisation else 0)
    return Size(
        layers * (attention + all_mlp) + table,
        layers * (attention + active_mlp) + table,
        layers,
        hidden,
        vocabulary,
        bits,
    )


def estimate(
    size: Size,
    machine: Machine,
    *,
    conversations: int,
    minutes: float | None = None,
    layers: int | None = None,
    proposals: int | None = None,
) -> Estimate:
    """The best of the usual shapes, or of those with so many layers or drafts a round.

    `minutes`: of training; None: two passes. Raises InvalidRequest for a target with too few layers.
    """
    made = [
        _of(size, machine, count, length, conversations, minutes)
        for count in (LAYERS if layers is None else (layers,))
        for length in (LENGTHS if proposals is None else (proposals,))
        if count < size.layers
    ]
    if not made:
        raise InvalidRequest(f"a target of {size.layers} layers is too small for a drafter; use --mode lookup")
    return max(made, key=lambda one: one.gain)


def shard_rows(conversation_s: float) -> int:
    """Conversations for a file, between which writing can stop. `conversation_s`: what each takes."""
    rows = LEAST_SHARD
    while 2 * rows <= SHARD and 2 * rows * conversation_s <= SHARD_SECONDS:
        rows *= 2
    return rows


def _of(
    size: Size, machine: Machine, layers: int, proposals: int, conversations: int, minutes: float | None
) -> Estimate:
    plain_s = machine.plain_s or size.active * size.bits / 8 / machine.bandwidth + 2e-5 * size.layers
    per_layer = (size.active - size.vocabulary * size.hidden) / size.layers  # parameters
    length = proposals / PROPOSALS
    drafted = plain_s * (layers / size.layers * (1 - size.head_share) + (1 + HEAD_OVERHEAD * length) * size.head_share)
    tokens = conversations * ANSWER
    read_flops = 2 * size.active + 3 * 2 * proposals * (layers * per_layer + 2 * size.vocabulary * size.hidden) / 4
    training_s = 60 * minutes if minutes else 2 * tokens * read_flops / machine.flops
    passes = training_s * machine.flops / (tokens * read_flops)
    seen = tokens * min(passes, 4.0)
    per_round = USUAL * (layers / USUAL_LAYERS) ** BY_LAYERS * (seen / USUAL_TOKENS) ** BY_TOKENS
    per_round = _with_drafts(min(max(per_round, 1.0), MOST), proposals)
    # The cost of checking goes up about evenly with the rows; where they bring experts, the first ones bring most.
    checked = plain_s + (_verify_s(size, machine, plain_s) - plain_s) * length ** (0.75 if size.is_sparse else 1.0)
    gain = per_round * plain_s / (drafted + checked)
    writing_s = 1.4 * tokens * max(2 * size.active / machine.flops, plain_s / 32)
    reason = ""
    if gain < LEAST_GAIN:
        reason = "few of its weights are used for each token, so checking drafts costs as much as writing"
        if not size.is_sparse:
            reason = "it is so small that drafting costs nearly as much as writing"
    return Estimate(
        layers=layers,
        rank=64 if size.hidden < 1024 else 128 if size.hidden < 2560 else 256,
        taps=min(5, size.layers - 3),
        proposals=proposals,
        writing_s=writing_s,
        training_s=training_s,
        watt_hours=machine.watts * (writing_s + training_s) / 3600,
        per_round=per_round,
        gain=gain,
        reason=reason,
    )


def _with_drafts(per_round: float, proposals: int) -> float:
    """Tokens per round with so many drafts, from those with PROPOSALS: each is kept as often, the ones before given."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if sum(middle**drafts for drafts in range(PROPOSALS + 1)) < per_round:
            low = middle
        else:
            high = middle
    return sum(low**drafts for drafts in range(proposals + 1))


def _verify_s(size: Size, machine: Machine, plain_s: float) -> float:
    """A forward over the drafts. Experts are the cost: each row brings its own, and few rows share them."""
    if machine.verify_s is not None:
        return machine.verify_s
    if size.is_sparse:
        return plain_s * min(1 + 0.25 * PROPOSALS, size.parameters / size.active)
    return plain_s * 1.25


def estimate_measured(
    size: Size,
    machine: Machine,
    costs: Sequence[tuple[float, float]],
    *,
    conversations: int,
    minutes: float | None = None,
    layers: int | None = None,
    proposals: int | None = None,
) -> Estimate:
    """The same by measured seconds of a forward of one token and of one more than are drafted.

    The least of each chooses, since whatever disturbs only adds time; what each pair alone would promise is noted.
    """
    plain_s, verify_s = (min(each) for each in zip(*costs, strict=True))
    chosen = estimate(
        size,
        measured(machine, plain_s, verify_s),
        conversations=conversations,
        minutes=minutes,
        layers=layers,
        proposals=proposals,
    )
    gains = tuple(
        _of(size, measured(machine, *each), chosen.layers, chosen.proposals, conversations, minutes).gain
        for each in costs
    )
    return replace(chosen, gains=gains)


def measured(machine: Machine, plain_s: float, verify_s: float) -> Machine:
    return replace(machine, plain_s=plain_s, verify_s=verify_s)
