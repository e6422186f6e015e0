"""The training step against the reference's: loss, its terms, what would be accepted, and every gradient."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from slipstream.drafters import formats
from slipstream.drafters.descriptor import Checkpoint
from slipstream.models.host import floats, number
from slipstream.train.batches import lay_out
from slipstream.train.step import Precision, Trainee, Weighting, arrays_of

HOME = Path(__file__).parents[1] / "data" / "training"
FOLDERS = sorted(path for path in HOME.iterdir() if path.is_dir())


class States:
    """A target that says what the golden's said."""

    embed_scale = 1.0
    has_plain_head = True

    def __init__(self, checkpoint: Checkpoint, inputs: dict[str, mx.array]) -> None:
        self._inputs = inputs
        self.hidden_size = inputs["target_last_hidden_states"].shape[-1]
        weights = checkpoint.weights
        self._embed = weights["embed_tokens.weight"].astype(mx.float32)
        self.head = Table(weights["lm_head.weight"].astype(mx.float32))

    def states(self, tokens: mx.array, taps: tuple[int, ...]) -> tuple[mx.array, mx.array]:
        names = ("target_hidden_states", "target_last_hidden_states")
        features, last = (self._inputs[name].astype(mx.float32) for name in names)
        return features, last

    def embed_rows(self, tokens: mx.array) -> mx.array:
        return self._embed[tokens]


class Table:
    def __init__(self, weight: mx.array) -> None:
        self.weight = weight


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
@pytest.mark.parametrize("part", [16, 8192])
def test_a_step_is_the_references(folder: Path, part: int) -> None:
    inputs, outputs = (load(folder / f"train_{name}.safetensors") for name in ("inputs", "outputs"))
    checkpoint = formats.read(HOME.parent / "goldens" / folder.name / "checkpoint")
    d = checkpoint.descriptor
    ids, mask = np.array(inputs["input_ids"]), np.array(inputs["loss_mask"]).astype(bool)
    kept = np.array(inputs["block_keep_mask"]).astype(bool)
    anchors = np.array(inputs["anchor_positions"]).astype(np.int32)
    batch = lay_out(list(ids), anchors, kept, d.proposals, ids.shape[1])
    # The golden's masks have gaps that conversations never have: a block ends at the first of them.
    ahead = np.minimum(anchors[..., None] + np.arange(1, d.proposals + 1), ids.shape[1] - 1)
    answered = np.cumprod(mask[np.arange(len(ids))[:, None, None], ahead], axis=-1)
    batch.weights[:] *= answered
    valid = np.array(outputs["eval_mask"]).astype(bool)
    assert ((batch.weights > 0) == valid).all()

    states = States(checkpoint, inputs)
    trainee = Trainee(d, states, Precision(mx.float32, mx.float32), part)  # type: ignore[arg-type]
    own = {"embed_tokens.weight", "lm_head.weight"}
    weights = {name: value.astype(mx.float32) for name, value in checkpoint.weights.items() if name not in own}
    arrays = arrays_of(batch) | {"total": mx.array(float(batch.weights.sum()))}
    found = trainee.figures(weights, arrays, Weighting())
    assert number(found.loss) == pytest.approx(number(outputs["loss"]), rel=1e-5)
    accept = np.array(found.accept)[valid]
    np.testing.assert_allclose(accept, np.array(outputs["accept_rate"])[valid], atol=1e-5)
    confidence = np.array(found.confidence)[valid]
    np.testing.assert_allclose(confidence, np.array(outputs["confidence_pred"])[valid], rtol=1e-4, atol=1e-4)
    chance = np.cumprod(np.array(found.accept) * valid, axis=-1).sum(-1)[valid[..., 0]]
    assert 1 + chance.mean() == pytest.approx(floats(outputs["tau_probabilistic"].reshape(-1))[0], rel=1e-5)

    gradients = mx.grad(lambda weights: trainee.figures(weights, arrays, Weighting()).loss)(weights)
    expected = {name.removeprefix("grad."): value for name, value in outputs.items() if name.startswith("grad.")}
    assert gradients.keys() == expected.keys()
    for name, reference in expected.items():
        error = number(mx.linalg.norm(gradients[name] - reference)) / max(number(mx.linalg.norm(reference)), 1e-9)
        assert error < 1e-3, (name, error)


def load(path: Path) -> dict[str, mx.array]:
    arrays = mx.load(str(path))
    assert isinstance(arrays, dict)
    return arrays
