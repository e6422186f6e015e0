from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn
import pytest

import tiny
from slipstream.drafters.dflash import DFlash
from slipstream.drafters.dspark import DSpark
from slipstream.drafters.network import BlockDrafter, packing_of
from slipstream.drafters.protocol import Proposal
from slipstream.engine.load import Precision, load_drafter
from slipstream.errors import PairMismatch, UnsupportedModel
from slipstream.models.host import floats, ints, number
from slipstream.models.target import Target
from slipstream.types import Mode

KINDS = {"vanilla": Mode.DSPARK, "gated": Mode.DSPARK, "rnn": Mode.DSPARK, "dflash": Mode.DFLASH}


def write(folder: Path, kind: str, *, own_tables: bool = False) -> Path:
    extra: dict[str, Any] = {} if kind == "dflash" else {"markov": kind}
    return tiny.write_drafter(folder, KINDS[kind], own_tables=own_tables, **extra)


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny.target(model_type="qwen3")


def load(folder: Path, target: Target, bits: int = 0) -> DSpark | DFlash:
    drafter = load_drafter(folder, target, Precision(drafter_bits=bits))
    assert isinstance(drafter, DSpark | DFlash)
    return drafter


def features(count: int, seed: int = 1) -> dict[int, mx.array]:
    keys = mx.random.split(mx.random.key(seed), len(tiny.TAPS))
    return {tap: mx.random.normal((count, tiny.HIDDEN), key=key) for tap, key in zip(tiny.TAPS, keys, strict=True)}


def propose(drafter: DSpark | DFlash, *, limit: int = 99, count: int = 20, chunk: int = 20) -> Proposal:
    state, taps = drafter.begin(), features(count)
    for at in range(0, count, chunk):
        part = {tap: rows[at : at + chunk] for tap, rows in taps.items()}
        drafter.observe(state, [1] * len(part[tiny.TAPS[0]]), part)
    assert state.length == count
    return drafter.propose(state, 7, limit, lambda logits, _: mx.argmax(logits, axis=-1).astype(mx.int32))


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_its_own_or_the_targets(kind: str, target: Target, tmp_path: Path) -> None:
    """A drafter whose own tables equal the target's proposes the same as one without."""
    bound = load(write(tmp_path / "bound", kind), target)
    folder = write(tmp_path / "own", kind, own_tables=True)
    weights = mx.load(str(folder / "model.safetensors"))
    without = mx.load(str(tmp_path / "bound" / "model.safetensors"))
    assert isinstance(weights, dict)
    assert isinstance(without, dict)
    model = cast(Any, target.model)
    weights |= without
    weights["embed_tokens.weight"] = model.model.embed_tokens.weight
    weights["lm_head.weight"] = model.lm_head.weight
    mx.eval(weights)
    mx.save_safetensors(str(folder / "model.safetensors"), weights)
    own = load(folder, target)
    assert own.descriptor.own_embed
    assert own.descriptor.own_head
    one, two = propose(bound), propose(own)
    assert ints(one.tokens) == ints(two.tokens)
    assert one.logits is not None
    assert two.logits is not None
    assert mx.allclose(one.logits, two.logits, atol=1e-4)


def test_a_narrower_drafter_needs_tables_of_its_own(target: Target, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny, "HIDDEN", 32)
        write(tmp_path / "narrow", "dflash")
        write(tmp_path / "whole", "dflash", own_tables=True)
    for name in ("narrow", "whole"):  # their taps are still the target's, 64 wide
        path = tmp_path / name / "model.safetensors"
        weights = mx.load(str(path))
        assert isinstance(weights, dict)
        weights["fc.weight"] = mx.random.normal((32, 3 * 64), key=mx.random.key(0)) * 0.1
        mx.eval(weights)
        mx.save_safetensors(str(path), weights)
    with pytest.raises(PairMismatch, match=r"width is 32 and .* the target's is 64"):
        load(tmp_path / "narrow", target)
    assert len(propose(load(tmp_path / "whole", target))) == 6


@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_shortens_a_proposal_and_changes_nothing_else(kind: str, target: Target, tmp_path: Path) -> None:
    drafter = load(write(tmp_path / "d", kind), target)
    whole = propose(drafter)
    assert len(whole) == drafter.block
    for limit in (1, 3, drafter.block):
        short = propose(drafter, limit=limit)
        assert ints(short.tokens) == ints(whole.tokens)[:limit]
        if whole.confidence is not None:
            assert short.confidence is not None
            assert floats(short.confidence) == pytest.approx(floats(whole.confidence)[:limit], abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_context_may_come_in_any_pieces(kind: str, target: Target, tmp_path: Path) -> None:
    """Also beyond the room that buffers start with."""
    drafter = load(write(tmp_path / "d", kind), target)
    whole = propose(drafter, count=300, chunk=300)
    for chunk in (1, 7, 256):
        assert ints(propose(drafter, count=300, chunk=chunk).tokens) == ints(whole.tokens)


@pytest.mark.parametrize("kind", KINDS)
def test_proposing_leaves_no_trace(kind: str, target: Target, tmp_path: Path) -> None:
    drafter = load(write(tmp_path / "d", kind), target)
    state = drafter.begin()
    drafter.observe(state, [1] * 9, features(9))

    def once(last: int) -> list[int]:
        return ints(drafter.propose(state, last, 9, lambda logits, _: mx.argmax(logits, axis=-1)).tokens)

    first = once(7)
    once(8)
    assert once(7) == first
    assert state.length == 9


def packed_folder(folder: Path, kind: str, bits: int, *, mixed: bool = False) -> tuple[Path, Path]:
    """A drafter in 4 or 8 bits in mlx's convention, and the same numbers unpacked."""
    packed, plain = write(folder / "packed", kind, own_tables=True), folder / "plain"
    weights = mx.load(str(packed / "model.safetensors"))
    assert isinstance(weights, dict)
    out, numbers, overrides = {}, {}, {}
    for name, tensor in weights.items():
        path = name.removesuffix(".weight")
        if not name.endswith(".weight") or tensor.ndim != 2 or ("gate_proj" in name and "mlp" not in name):
            out[name] = numbers[name] = tensor
            continue
        if "joint_proj" in name or "confidence" in name:
            out[name] = numbers[name] = tensor
            continue
        own = 8 if mixed and path.endswith("k_proj") else bits
        if own != bits:
            overrides[path] = {"bits": own, "group_size": 32}
        weight, scales, biases = mx.quantize(tensor, group_size=32, bits=own)
        out |= {name: weight, f"{path}.scales": scales, f"{path}.biases": biases}
        numbers[name] = mx.dequantize(weight, scales, biases, group_size=32, bits=own)
    mx.eval(out, numbers)
    plain.mkdir()
    config = json.loads((packed / "config.json").read_text())
    (plain / "config.json").write_text(json.dumps(config))
    config["quantization"] = {"bits": bits, "group_size": 32, **overrides}
    (packed / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(packed / "model.safetensors"), out)
    mx.save_safetensors(str(plain / "model.safetensors"), numbers)
    return packed, plain


@pytest.mark.parametrize(("bits", "mixed"), [(4, False), (4, True), (8, False)])
@pytest.mark.parametrize("kind", KINDS)
def test_packed_checkpoints_load_packed_and_unpacked(
    kind: str, bits: int, mixed: bool, target: Target, tmp_path: Path
) -> None:
    packed, plain = packed_folder(tmp_path, kind, bits, mixed=mixed)
    expected = propose(load(plain, target))
    unpacked, repacked = load(packed, target, 0), load(packed, target, 8)
    assert not has_packed(unpacked)
    assert has_packed(repacked)
    logits = propose(unpacked).logits
    assert logits is not None
    assert expected.logits is not None
    assert mx.allclose(logits, expected.logits, atol=1e-3, rtol=1e-3)
    assert similarity(propose(repacked), expected) > 0.99


@pytest.mark.parametrize("kind", KINDS)
def test_plain_checkpoints_are_packed_when_asked(kind: str, target: Target, tmp_path: Path) -> None:
    folder = write(tmp_path / "d", kind, own_tables=True)
    plain, eight = load(folder, target, 0), load(folder, target, 8)
    assert has_packed(eight)
    assert not has_packed(plain)
    assert similarity(propose(plain), propose(eight)) > 0.99


def similarity(one: Proposal, two: Proposal) -> float:
    """Cosine between the logits of the first draft, which do not depend on other drafts."""
    assert one.logits is not None
    assert two.logits is not None
    first, second = one.logits[0], two.logits[0]
    return number(mx.sum(first * second) / mx.sqrt(mx.sum(first**2) * mx.sum(second**2)))


def has_packed(drafter: BlockDrafter) -> bool:
    modules = [module for _, module in drafter.backbone.named_modules()]
    return any(isinstance(module, nn.QuantizedLinear) for module in modules)


@pytest.mark.parametrize("kind", ["vanilla", "dflash"])
@pytest.mark.parametrize("precision", ["float32", "8-bit"])
@pytest.mark.parametrize("model_type", ["llama", "qwen3"])
def test_a_bound_head_multiplies_only_what_can_be_proposed(
    tmp_path: Path, kind: str, precision: str, model_type: str
) -> None:
    """A drafter with fewer tokens than its target and no head of its own gives the whole head's numbers of those."""
    target, ids = tiny.target(precision, model_type=model_type), [0, 3, 4, 9, 17, 30]
    whole = load(write(tmp_path / "whole", kind), target)
    part = load(reduced(tmp_path / "whole", tmp_path / "part", mx.array(ids)), target)
    hidden = mx.random.normal((3, tiny.HIDDEN), key=mx.random.key(0)).astype(target.dtype)
    logits, expected = part.spread(part.base_logits(hidden)), whole.base_logits(hidden)
    others = [token for token in range(tiny.VOCABULARY) if token not in ids]
    assert mx.allclose(logits[:, mx.array(ids)], expected[:, mx.array(ids)], atol=1e-4)
    assert mx.all(logits[:, mx.array(others)] == -mx.inf)
    assert set(ints(propose(part).tokens)) <= set(ids)


@pytest.mark.parametrize("ids", [[0, 3, 3], [0, 3, tiny.VOCABULARY], [-1, 3, 4], [0.0, 3.0, 4.0]])
def test_a_draft_vocabulary_outside_the_targets_is_refused(tmp_path: Path, target: Target, ids: list[int]) -> None:
    """MLX would read past the end of the head without a word."""
    part = reduced(write(tmp_path / "whole", "dflash"), tmp_path / "part", mx.array(ids))
    with pytest.raises(UnsupportedModel, match="d2t does not name 3 different tokens"):
        load(part, target)


def reduced(folder: Path, to: Path, ids: mx.array) -> Path:
    """The checkpoint with `ids` as its draft vocabulary."""
    to.mkdir()
    config = json.loads((folder / "config.json").read_text())
    (to / "config.json").write_text(json.dumps(config | {"draft_vocab_size": len(ids)}))
    weights = cast("dict[str, mx.array]", mx.load(str(folder / "model.safetensors")))
    if (name := "markov_head.markov_w2.weight") in weights:
        weights[name] = weights[name][ids]
    mx.save_safetensors(str(to / "model.safetensors"), weights | {"d2t": ids - mx.arange(len(ids))})
    return to


@pytest.mark.parametrize(("width", "group"), [(32, None), (48, None), (64, 32), (96, 32), (128, 64), (576, 64)])
def test_packed_rows_have_two_groups_at_least(width: int, group: int | None) -> None:
    """MLX's CUDA products of rows with a single group are wrong, and say nothing."""
    assert packing_of(nn.Linear(width, 8), 4) == ({"bits": 4, "group_size": group} if group else False)
