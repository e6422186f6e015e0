"""What training makes small (drafters.md §2.6): 0.1 cross entropy + 0.9 L1 to the target's distribution + BCE.

Logits of one slot are as wide as the vocabulary, so rows go through the output table a part at a time, and gradients
are taken at once: nothing of that width outlives its part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

CE_WEIGHT, L1_WEIGHT, CONFIDENCE_WEIGHT = 0.1, 0.9, 1.0
PART_ROWS = 8192


@dataclass(slots=True)
class Taught:
    """What the target says of n rows, as far as the drafter can say it."""

    logits: mx.array  # [n, Vd] of the tokens that can be drafted
    total: mx.array  # [n, 1]: logsumexp of the logits of all tokens
    best: mx.array  # [n]: which of those that can be drafted is its likeliest token; -1: none of them

    @classmethod
    def of(cls, logits: mx.array) -> Taught:
        """Where every token can be drafted."""
        return cls(logits, mx.logsumexp(logits, axis=-1, keepdims=True), mx.argmax(logits, axis=-1).astype(mx.int32))


Teacher = Callable[[int, int], Taught]  # of the rows from one number to before another


@dataclass(slots=True)
class Head:
    """The loss of rows through the output table: sums over rows, weighted, and figures of each row."""

    loss: mx.array  # CE_WEIGHT * ce + L1_WEIGHT * l1: the only one with a gradient
    ce: mx.array
    l1: mx.array
    accept: mx.array  # [n]: probability that a draft drawn from the row is kept, sum of min(draft, target)
    right: mx.array  # [n] bool: the likeliest draft is the label
    agrees: mx.array  # [n] bool: the likeliest draft is the target's likeliest token


def head_loss(
    hidden: mx.array,
    through: mx.array | None,
    markov_out: mx.array | None,
    head: mx.array,
    teacher: Teacher,
    labels: mx.array,
    weights: mx.array,
    *,
    part: int = PART_ROWS,
    ce_weight: mx.array | float = CE_WEIGHT,
    l1_weight: mx.array | float = L1_WEIGHT,
) -> Head:
    """`hidden` [n, hidden] and `through` [n, rank] meet `head` [Vd, hidden] and `markov_out` [Vd, rank].

    Vd: the tokens that can be drafted, perhaps fewer than the target has. `labels` [n]: which of them, -1 for others;
    `weights` [n], 0 for rows that do not count. Gradients: to hidden, through and markov_out.
    """
    count = hidden.shape[0]
    ce_share, l1_share = mx.array(ce_weight), mx.array(l1_weight)
    has_markov = through is not None and markov_out is not None

    def run(inputs: mx.array, table: mx.array) -> list[mx.array]:
        """`inputs`: [hidden ; through], `table`: its output table. Values, and gradients of the loss to both."""
        sums = [mx.zeros(()), mx.zeros(())]
        d_inputs: list[mx.array] = []
        d_table = mx.zeros(markov_out.shape if markov_out is not None and has_markov else (1,), dtype=mx.float32)
        figures: list[list[mx.array]] = [[], [], []]
        for at in range(0, count, part):
            end = min(at + part, count)
            rows = inputs[at:end]
            logits = rows @ table.T
            taught = teacher(at, end)
            d_logits, ce, l1, *found = _terms(
                logits,
                taught.logits,
                taught.total,
                taught.best,
                labels[at:end],
                weights[at:end],
                ce_share,
                l1_share,
            )
            sums = [sums[0] + ce, sums[1] + l1]
            d_inputs.append(d_logits @ table)
            if has_markov:
                d_table = d_table + d_logits.T @ rows[:, hidden.shape[1] :]
            for kept, figure in zip(figures, found, strict=True):
                kept.append(figure)
        ce, l1 = sums
        return [
            ce_share * ce + l1_share * l1,
            mx.concatenate(d_inputs),
            d_table,
            ce,
            l1,
            *(mx.concatenate(kept) for kept in figures),
        ]

    kind = head.dtype
    inputs = hidden.astype(kind)
    if through is not None and markov_out is not None:
        inputs = mx.concatenate([inputs, through.astype(kind)], axis=-1)
        table_of = lambda out: mx.concatenate([head, out.astype(kind)], axis=-1)  # noqa: E731
    else:
        table_of = lambda _: head  # noqa: E731

    def values(inputs: mx.array, out: mx.array) -> list[mx.array]:
        return run(inputs, table_of(out))

    def gradients(primals: list[mx.array], cotangents: list[mx.array], outputs: list[mx.array]) -> list[mx.array]:
        scale = cotangents[0]
        d_out = outputs[2] * scale if has_markov else mx.zeros_like(primals[1])
        return [(outputs[1] * scale).astype(primals[0].dtype), d_out.astype(primals[1].dtype)]

    through_table: Any = mx.custom_function(values)  # Any: not typed by MLX
    through_table.vjp(gradients)
    loss, _d, _e, ce, l1, accept, right, agrees = through_table(
        inputs, markov_out if markov_out is not None and has_markov else mx.zeros((1,))
    )
    stop = mx.stop_gradient
    return Head(loss, stop(ce), stop(l1), stop(accept), stop(right), stop(agrees))


def _terms_of(
    logits: mx.array,
    teacher: mx.array,
    total: mx.array,
    best: mx.array,
    labels: mx.array,
    weights: mx.array,
    ce_weight: mx.array,
    l1_weight: mx.array,
) -> list[mx.array]:
    """Of rows [n, Vd]: the gradient of the weighted loss, its two sums, and each row's figures."""
    logits, teacher = logits.astype(mx.float32), teacher.astype(mx.float32)
    draft_log = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
    draft = mx.exp(draft_log)
    target = mx.exp(teacher - total)
    apart = draft - target
    sign = mx.sign(apart)
    # What the target says outside of the drafts' tokens is apart as well.
    l1 = mx.sum(mx.abs(apart), axis=-1) + mx.maximum(1 - mx.sum(target, axis=-1), 0.0)
    lean = mx.sum(draft * sign, axis=-1, keepdims=True)
    can_be_said = labels >= 0
    ce_each = (ce_weight * can_be_said.astype(mx.float32))[:, None]
    is_label = mx.arange(logits.shape[-1]) == labels[:, None]
    at_label = mx.take_along_axis(draft_log, mx.maximum(labels, 0)[:, None], axis=-1)[:, 0]
    ce = mx.where(can_be_said, -at_label, 0.0)
    d_logits = weights[:, None] * (
        draft * (ce_each + l1_weight * (sign - lean)) - mx.where(is_label, ce_weight, mx.zeros(()))
    )
    likeliest = mx.argmax(logits, axis=-1).astype(mx.int32)
    return [
        d_logits,
        mx.sum(weights * ce),
        mx.sum(weights * l1),
        1 - l1 / 2,
        likeliest == labels,
        likeliest == best,
    ]


_terms = mx.compile(_terms_of)


def confidence_loss(logits: mx.array, accept: mx.array, weights: mx.array) -> mx.array:
    """Binary cross entropy of confidences, before the sigmoid, against acceptance probabilities [n]; weighted sum."""
    each = mx.logaddexp(logits, mx.zeros_like(logits)) - logits * mx.stop_gradient(accept)
    return mx.sum(weights * each)
