"""Our drafters against reference outputs of tiny checkpoints in their published layouts.

`pytest tests/goldens --goldens DIR` checks any folder of folders with `checkpoint/`, inputs, outputs, verify vectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from slipstream.drafters import formats
from slipstream.drafters.context import Rows
from slipstream.drafters.descriptor import Checkpoint
from slipstream.drafters.dflash import DFlash
from slipstream.drafters.dspark import DSpark
from slipstream.drafters.network import BlockState, spread_over
from slipstream.engine.load import DRAFTERS
from slipstream.engine.sampling import rejection, truncate
from slipstream.models.host import floats, ints

Arrays = dict[str, mx.array]


class GoldenTables:
    """The target's tables as a golden gives them; zeros where the checkpoint has its own."""

    model_type = "golden"
    embed_scale = 1.0
    dtype = mx.float32

    def __init__(self, checkpoint: Checkpoint, inputs: Arrays) -> None:
        d = checkpoint.descriptor
        self.hidden_size = checkpoint.weights["fc.weight"].shape[1] // len(d.taps)
        self.layer_count = d.target_layers or max(d.taps) + 2
        self.vocabulary = d.vocabulary
        none = mx.zeros((d.vocabulary, self.hidden_size))
        self._embed = inputs.get("target.embed_tokens.weight", none).astype(mx.float32)
        self._head = inputs.get("target.lm_head.weight", none).astype(mx.float32)

    def embed_rows(self, tokens: mx.array) -> mx.array:
        return self._embed[tokens]

    def head_rows(self, hidden: mx.array) -> mx.array:
        return hidden @ self._head.T

    def head_part(self, ids: mx.array) -> Callable[[mx.array], mx.array]:
        return lambda hidden: hidden @ self._head[ids].T


class Golden:
    def __init__(self, folder: Path) -> None:
        self.inputs = load(folder / "inputs.safetensors")
        self.outputs = load(folder / "outputs.safetensors")
        checkpoint = formats.read(folder / "checkpoint")
        kind = DRAFTERS[checkpoint.descriptor.mode]
        self.drafter: DSpark | DFlash = kind(
            checkpoint, GoldenTables(checkpoint, self.inputs), dtype=mx.float32, bits=0
        )
        self.descriptor = checkpoint.descriptor
        readme = (folder / "README.md").read_text()
        self.temperature = sampling_temperature(readme)
        self.is_one_context = "empty drafter cache each time" not in readme
        self.rounds = sum(name.endswith(".anchor") for name in self.inputs)
        self.checked: set[str] = set()

    def has(self, name: str) -> bool:
        return name in self.outputs

    def close(self, name: str, actual: mx.array, atol: float = 1e-4) -> None:
        """Within atol + atol * |reference|. Goldens differ in how much of the inside they show."""
        if not self.has(name):
            return
        expected = np.array(self.outputs[name].astype(mx.float32))
        np.testing.assert_allclose(np.array(actual), expected, rtol=atol, atol=atol, err_msg=name)
        self.checked.add(name)


def load(path: Path) -> Arrays:
    arrays = mx.load(str(path))
    assert isinstance(arrays, dict)
    return arrays


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    root = Path(str(metafunc.config.getoption("goldens")))
    folders = sorted(path.parent for path in root.glob("*/checkpoint"))
    assert folders, f"no golden folders in {root}"
    if "folder" in metafunc.fixturenames:
        metafunc.parametrize("folder", folders, ids=[folder.name for folder in folders])


def test_a_drafter_computes_what_its_reference_does(folder: Path) -> None:
    golden = Golden(folder)
    state = golden.drafter.begin()
    for index in range(golden.rounds):
        if not golden.is_one_context:
            state = golden.drafter.begin()
        check_round(golden, state, f"r{index}.")
    # Nothing of the reference was left out, but what is informational or checked by value below.
    left = {
        name
        for name in golden.outputs.keys() - golden.checked
        if ".bf16." not in name and not name.startswith("confidence.")
    }
    assert left == set()


def check_round(golden: Golden, state: BlockState, at: str) -> None:
    drafter, d = golden.drafter, golden.descriptor
    features = golden.inputs[at + "context_features"].astype(mx.float32)
    anchor = ints(golden.inputs[at + "anchor"])[0]
    golden.close(at + "context_fused", drafter.backbone.fuse(features))
    drafter.backbone.observe([state.context], [features])
    check_context(golden, state, at)

    slots = drafter.slots(anchor)
    golden.close(at + "block_embeddings", slots)
    hidden, rows = slots, Rows([state.context], [slots.shape[0]])
    for layer in range(d.layers):
        hidden = drafter.backbone.layer(layer, rows, hidden)
        golden.close(f"{at}layer{layer}.out", hidden)
    hidden = drafter.backbone.norm(hidden)
    golden.close(at + "hidden", hidden)
    base = drafter.base_logits(hidden[d.first :])
    proposal = drafter.propose(state, anchor, d.proposals, lambda logits, _: mx.argmax(logits, axis=-1))
    assert proposal.tokens.tolist() == golden.outputs[at + "greedy_tokens"].tolist()
    golden.checked.add(at + "greedy_tokens")
    # After the block its rows are gone: the context is what it was.
    check_context(golden, state, at)
    if isinstance(drafter, DSpark):
        check_dspark(golden, drafter, at, hidden, base, proposal.logits, proposal.confidence)
        return
    golden.close(at + "logits", base)
    if d.selector_rank:
        check_selector(golden, drafter, at, hidden[d.first :], base)
        return
    scores = base / golden.temperature
    golden.close(at + "q", mx.softmax(scores, axis=-1), 1e-5)
    for name in golden.outputs:
        if name.startswith(at + "q_topp"):
            top_p, top_k = name.removeprefix(at + "q_topp").split("_topk")
            kept = truncate(scores, top_k=int(top_k), top_p=float(top_p))
            golden.close(name, mx.softmax(kept, axis=-1), 1e-5)


def check_selector(golden: Golden, drafter: DFlash, at: str, hidden: mx.array, base: mx.array) -> None:
    candidates = mx.sort(drafter.candidates(base), axis=-1)
    name = at + "candidates_sorted_by_id"
    assert candidates.tolist() == golden.outputs[name].tolist()
    golden.checked.add(name)
    anchor = ints(golden.inputs[at + "anchor"])[0]
    for name, tokens in (
        ("greedy", ints(golden.outputs[at + "greedy_tokens"])),
        ("forced", ints(golden.inputs[at + "forced_tokens"])),
    ):
        scores = drafter.scores(base, candidates, hidden, mx.array([anchor, *tokens[:-1]]))
        golden.close(f"{at}{name}_scores", scores)
        golden.close(f"{at}{name}_q", mx.softmax(scores / golden.temperature, axis=-1), 1e-5)


def check_context(golden: Golden, state: BlockState, at: str) -> None:
    for layer in range(golden.descriptor.layers):
        for kind, arrays in (("k", state.context.keys), ("v", state.context.values)):
            name = f"{at}layer{layer}.cache_{kind}"
            if not golden.has(name):
                continue
            rows = golden.outputs[name].shape[1]  # sliding layers of the reference keep the last window - 1 rows
            array = arrays[layer]
            assert array is not None
            golden.close(name, array[0, :, state.length - rows : state.length])


def check_dspark(
    golden: Golden,
    drafter: DSpark,
    at: str,
    hidden: mx.array,
    base: mx.array,
    corrected: mx.array | None,
    confidence: mx.array | None,
) -> None:
    golden.close(at + "base_logits", base)
    anchor = ints(golden.inputs[at + "anchor"])[0]
    greedy = ints(golden.outputs[at + "greedy_tokens"])
    if at + "forced_prev_token_ids" in golden.inputs:
        forced = ints(golden.inputs[at + "forced_prev_token_ids"])
    else:
        forced = [anchor, *ints(golden.inputs[at + "forced_tokens"])[:-1]]
    for name, previous in (("greedy", [anchor, *greedy[:-1]]), ("forced", forced)):
        logits, judged = teacher_forced(drafter, hidden, base, previous)
        golden.close(f"{at}{name}_corrected_logits", logits)
        if judged is not None:
            golden.close(f"{at}{name}_confidence_logits", judged)
            if name == "greedy":
                assert confidence is not None
                np.testing.assert_allclose(np.array(confidence), np.array(mx.sigmoid(judged)), atol=1e-5)
                check_prefix_lengths(golden, int(at[1:-1]), judged)
        if name == "greedy":
            assert corrected is not None
            if drafter.draft_ids is not None:
                corrected = corrected[:, drafter.draft_ids]
            golden.close(f"{at}{name}_corrected_logits", corrected)
        else:
            golden.close(at + "forced_q", mx.softmax(logits / golden.temperature, axis=-1), 1e-5)


def teacher_forced(
    drafter: DSpark, hidden: mx.array, base: mx.array, previous: list[int]
) -> tuple[mx.array, mx.array | None]:
    """Corrected and confidence logits when the token before each prediction is given."""
    first = drafter.descriptor.first
    rows = hidden[first:]
    if drafter.descriptor.markov is None:
        return base, drafter.confidence_logits(rows, None)
    memory: mx.array | None = None
    if first:  # the recurrence has seen slot 0, and before it the anchor
        _, _, memory = drafter.bias(mx.array([previous[0]]), hidden[:1], memory)
    biases: list[mx.array] = []
    embedded: list[mx.array] = []
    for index, token in enumerate(previous):
        bias, before, memory = drafter.bias(mx.array([token]), rows[index : index + 1], memory)
        biases.append(bias)
        embedded.append(before)
    return base + mx.concatenate(biases), drafter.confidence_logits(rows, mx.concatenate(embedded))


def check_prefix_lengths(golden: Golden, index: int, judged: mx.array) -> None:
    """How many proposals stay when each must reach a threshold."""
    if not golden.has("confidence.prefix_lengths"):
        return
    expected = golden.outputs["confidence.prefix_lengths"][index].tolist()
    probabilities = np.array(mx.sigmoid(judged))
    thresholds = np.array(golden.outputs["confidence.thresholds"])
    kept = [int(np.cumprod(probabilities >= threshold).sum()) for threshold in thresholds]
    assert kept == expected


def sampling_temperature(readme: str) -> float:
    """A golden's README states it."""
    found = re.search(r"temperature T = ([\d.]+)", readme)
    assert found, "the README states no temperature"
    return float(found[1])


def test_the_rejection_rule_matches_the_reference(folder: Path) -> None:
    if not (folder / "verify_inputs.safetensors").exists():
        return  # some goldens are of the network alone
    inputs, outputs = load(folder / "verify_inputs.safetensors"), load(folder / "verify_outputs.safetensors")
    cases = sorted({name.split(".")[0] for name in inputs})
    assert cases
    for case in cases:
        check_verification(inputs, outputs, case + ".")


def check_verification(inputs: Arrays, outputs: Arrays, at: str) -> None:
    def value(arrays: Arrays, name: str) -> float:
        return floats(arrays[at + name])[0]

    temperature = value(inputs, "temperature")
    drafted = inputs[at + "drafted_tokens"]

    def distribution(logits: mx.array) -> mx.array:
        if temperature == 0:
            return (mx.argmax(logits, axis=-1)[:, None] == mx.arange(logits.shape[-1])).astype(mx.float32)
        return mx.softmax(logits / temperature, axis=-1)

    if at + "draft_candidates" in inputs:  # probabilities of a few tokens each; the rest have none
        few = mx.log(inputs[at + "draft_probs"])
        wide = spread_over(few, inputs[at + "draft_candidates"], inputs[at + "target_logits"].shape[-1])
        draft_probs = mx.exp(wide)
    elif at + "draft_probs" in inputs:
        draft_probs = inputs[at + "draft_probs"]
    else:
        draft_probs = distribution(inputs[at + "draft_logits"])
    target_probs = distribution(inputs[at + "target_logits"])
    accepted, next_probs = rejection(drafted, draft_probs, target_probs, inputs[at + "uniforms"])
    kept = int(np.cumprod(np.array(accepted)).sum())
    assert kept == value(outputs, "accepted")
    if at + "stop_tokens" in inputs:
        stops = set(ints(inputs[at + "stop_tokens"]))
        ends = [i for i, token in enumerate(ints(drafted)[:kept]) if token in stops]
        assert bool(ends) == bool(value(outputs, "terminated_by_stop"))
        effective = ends[0] + 1 if ends else drafted.shape[0]
        assert effective == value(outputs, "effective_proposal_length")
    expected = np.array(outputs[at + "next_token_distribution"])
    np.testing.assert_allclose(np.array(next_probs[kept]), expected, atol=1e-5, err_msg=at)
