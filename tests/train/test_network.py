"""The network in training is the one that decodes, and its gradients are right."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from slipstream.drafters import formats
from slipstream.drafters.dflash import DFlash
from slipstream.drafters.dspark import DSpark
from slipstream.engine.load import DRAFTERS
from slipstream.models.host import ints, number
from slipstream.models.target import Target
from slipstream.train.batches import Batch, lay_out
from slipstream.train.corpus import Conversation
from slipstream.train.design import Design, TargetShape
from slipstream.train.export import export, most_said, reduced
from slipstream.train.network import fresh
from slipstream.train.step import Precision, Trainee, Weighting, arrays_of
from tiny_training import design, noisy

EXACT = Precision(mx.float32, mx.float32)
DESIGNS = {
    "dspark": design(),
    "dspark, gated": design(markov="gated"),
    "dspark, rnn": design(markov="rnn"),
    "dspark, causal": design(causal=True),
    "dspark, no markov": design(rank=0),
    "dflash": design(kind="dflash"),
    "dspark, fewer tokens": design(draft_vocabulary=64),
    "dflash, fewer tokens": design(kind="dflash", draft_vocabulary=64),
}


def begun(target: Target, shape: TargetShape, chosen: Design) -> tuple[Trainee, dict[str, mx.array]]:
    d = chosen.descriptor(shape)
    counts = np.random.default_rng(2).permutation(shape.vocabulary)
    ids = most_said(counts, d.draft_vocabulary) if d.is_reduced else None
    trainee = Trainee(d, target, EXACT, part=16, draft_ids=ids)
    return trainee, noisy(fresh(d, len(d.taps) * target.hidden_size, 1, target.final_norm))


def batch_of(conversations: list[Conversation], chosen: Design, places: list[list[int]]) -> Batch:
    texts = [np.array(one.ids, dtype=np.int32) for one in conversations[: len(places)]]
    anchors = np.array(places, dtype=np.int32)
    return lay_out(texts, anchors, np.ones(anchors.shape, dtype=bool), chosen.proposals, 48)


SLOW = ("dspark, gated", "dspark, causal", "dspark, no markov", "dflash, fewer tokens")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in DESIGNS]
)
def test_what_is_learned_is_what_drafts(
    name: str, target: Target, shape: TargetShape, conversations: list[Conversation], tmp_path: Path
) -> None:
    """Exported, read back and run by the decoder, with the target's own words drafted: the same drafts are right."""
    chosen = DESIGNS[name]
    trainee, weights = begun(target, shape, chosen)
    # What the file's bfloat16 holds.
    weights = {key: value.astype(mx.bfloat16).astype(mx.float32) for key, value in weights.items()}
    places = [[12, 17, 23], [13, 14, 20]]
    batch = batch_of(conversations, chosen, places)
    found = trainee.figures(weights, arrays_of(batch), Weighting())

    export(tmp_path / "drafter", trainee.descriptor, trainee.published(weights), {})
    checkpoint = formats.read(tmp_path / "drafter")
    assert checkpoint.descriptor == trainee.descriptor
    drafter = DRAFTERS[checkpoint.descriptor.mode](checkpoint, target, dtype=mx.float32, bits=0)
    assert isinstance(drafter, DSpark | DFlash)
    for text, anchors in enumerate(places):
        ids = list(conversations[text].ids)
        for index, anchor in enumerate(anchors):
            state = drafter.begin()
            forward = target.forward(mx.array(ids[:anchor]), target.make_cache(), drafter.taps, rows=0)
            drafter.observe(state, ids[:anchor], forward.taps)
            labels = ints(mx.array(batch.labels[text, index]))
            logits: list[mx.array] = []

            def say(row: mx.array, slot: int, labels: list[int] = labels, logits: list[mx.array] = logits) -> mx.array:
                logits.append(row)
                return mx.array(labels[slot : slot + row.shape[0]], dtype=mx.int32)

            proposal = drafter.propose(state, ids[anchor], chosen.proposals, say)
            likeliest = ints(mx.argmax(mx.concatenate(logits), axis=-1))
            valid = batch.weights[text, index] > 0
            right = np.array(found.right)[text, index]
            assert [a == b for a, b in zip(likeliest, labels, strict=True)][: valid.sum()] == list(right[valid])
            if proposal.confidence is not None:
                assert found.confidence is not None
                ours = mx.sigmoid(found.confidence[text, index])
                np.testing.assert_allclose(np.array(proposal.confidence), np.array(ours), atol=1e-5)
            targets = target.logits_of(target.states(mx.array([ids]), (0,))[1][0])[anchor : anchor + chosen.proposals]
            drawn = mx.softmax(mx.concatenate(logits)[: len(targets)], axis=-1)
            shared = mx.minimum(drawn, mx.softmax(targets, axis=-1)).sum(-1)
            accept = np.array(found.accept)[text, index]
            np.testing.assert_allclose(np.array(shared)[valid[: len(targets)]], accept[valid], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_gradients_are_finite_differences(
    name: str, target: Target, shape: TargetShape, conversations: list[Conversation]
) -> None:
    """Along the steepest direction of every tensor. The target of the confidence is fixed, as the gradient takes it."""
    chosen = DESIGNS[name]
    trainee, weights = begun(target, shape, chosen)
    arrays = arrays_of(batch_of(conversations, chosen, [[12, 17, 23, 28], [13, 14, 20, 27]]))
    # What the confidence is to foretell counts as fixed, but moves with the drafts: so its head is looked at alone.
    plain, judging = Weighting(confidence=0.0), Weighting(ce=0.0, l1=0.0)
    for weighting, mine in ((plain, lambda key: "confidence" not in key), (judging, lambda key: "confidence" in key)):
        gradients = mx.grad(lambda weights, w=weighting: trainee.figures(weights, arrays, w).loss)(weights)
        for key in filter(mine, weights):
            steepest = number(mx.linalg.norm(gradients[key]))
            direction = gradients[key] / steepest
            step = 1e-2

            def loss(along: float, key: str = key, direction: mx.array = direction, w: Weighting = weighting) -> float:
                return number(trainee.figures(weights | {key: weights[key] + along * direction}, arrays, w).loss)

            near = (loss(step) - loss(-step)) / (2 * step)
            far = (loss(2 * step) - loss(-2 * step)) / (4 * step)
            numeric = (4 * near - far) / 3  # the error's second order cancels
            assert numeric == pytest.approx(steepest, rel=0.02, abs=1e-4), key


def test_a_smaller_vocabulary_proposes_the_same_among_its_tokens(
    target: Target, shape: TargetShape, tmp_path: Path
) -> None:
    trainee, weights = begun(target, shape, design())
    counts = np.zeros(shape.vocabulary, dtype=np.int32)
    counts[10:80] = 5
    d, smaller = reduced(trainee.descriptor, weights, counts)
    assert d.draft_vocabulary == shape.vocabulary  # sizes come in steps
    counts[:] = 1
    d, smaller = reduced(trainee.descriptor, weights, counts, 60)
    assert d.draft_vocabulary == 64
    export(tmp_path / "whole", trainee.descriptor, weights, {})
    export(tmp_path / "part", d, smaller, {})
    proposals: list[mx.array] = []
    for name in ("whole", "part"):
        drafter = DSpark(formats.read(tmp_path / name), target, dtype=mx.float32, bits=0)
        state = drafter.begin()
        forward = target.forward(mx.array([1, 2, 3]), target.make_cache(), drafter.taps, rows=0)
        drafter.observe(state, [1, 2, 3], forward.taps)
        logits = drafter.propose(state, 4, 4, lambda rows, slot: mx.zeros((rows.shape[0],), dtype=mx.int32)).logits
        assert logits is not None
        proposals.append(logits[:, :64])  # these are the ones kept
    np.testing.assert_allclose(np.array(proposals[0]), np.array(proposals[1]), rtol=1e-3, atol=1e-3)
