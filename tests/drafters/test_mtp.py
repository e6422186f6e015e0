"""Native MTP heads: read from every layout, computed as specified, and bound to the target they belong to."""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from numpy.typing import NDArray

import tiny_families
import tiny_mtp
from slipstream.cli import main
from slipstream.commands import options
from slipstream.drafters import mtp_weights
from slipstream.drafters.mtp import PENDING, Mtp, MtpState
from slipstream.drafters.mtp_weights import INPUTS, LAYERS, OUTPUT, Reading
from slipstream.engine import head_reading
from slipstream.engine.engine import open_engine
from slipstream.engine.load import Precision, load_drafter, load_target
from slipstream.engine.pair import Pair, with_own_heads
from slipstream.errors import ModelIncomplete, PairMismatch, UnsupportedModel
from slipstream.models.host import ints
from slipstream.models.target import Target
from slipstream.store import candidate, files, heads, memory
from slipstream.types import Mode
from tiny_mtp import FAMILIES, LAYOUTS
from tiny_runs import write_target, write_tokenizer

Array = NDArray[np.float64]


def slow(value: str) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


TEXT = [(7 * n * n + 3) % 90 for n in range(24)]


def argmax(logits: mx.array, _: int) -> mx.array:
    return mx.argmax(logits, axis=-1)


@cache
def target(family: str) -> Target:
    return tiny_families.target(family)


@cache
def made(family: str) -> Mtp:
    onto = target(family)
    return Mtp(mtp_weights.HeadWeights(Path("made"), tiny_mtp.random_heads(family)), onto, dtype=onto.dtype, bits=0)


def streams(onto: Target, text: list[int]) -> mx.array:
    return onto.forward(mx.array(text), onto.make_cache(), (onto.layer_count - 1,)).taps[onto.layer_count - 1]


# In the thin cut every layout and every family; not each with each.
_BOTH = [
    pytest.param(family, layout, marks=() if (row + column) % 3 == 0 else pytest.mark.slow)
    for row, layout in enumerate(LAYOUTS)
    for column, family in enumerate(FAMILIES)
]


@pytest.mark.parametrize(("family", "layout"), _BOTH)
def test_every_layout_is_the_same_heads_and_leaves_the_target_alone(family: str, layout: str, tmp_path: Path) -> None:
    folder, apart = tiny_mtp.write(tmp_path / "model", family, layout)
    onto = load_target(folder, Precision())
    logits = [each.forward(mx.array(TEXT), each.make_cache(), rows=len(TEXT)).logits for each in (onto, target(family))]
    assert logits[0] is not None
    assert logits[1] is not None
    assert mx.allclose(logits[0], logits[1], atol=1e-5)
    drafter = load_drafter(apart, onto, Precision(drafter_bits=0))
    assert isinstance(drafter, Mtp)
    assert (drafter.mode, drafter.block, drafter.taps) == (Mode.MTP, 4, (onto.layer_count - 1,))
    if layout == "mixed norms":
        drafter.read_as(Reading(offset=frozenset((INPUTS, LAYERS))))
    is_offset = layout.startswith("published") or layout == "sidecar"
    if layout != "mixed norms":
        assert drafter.reading.offset == (frozenset((INPUTS, LAYERS, OUTPUT)) if is_offset else frozenset())
    is_packed = layout in ("converted", "own repository")
    stream = streams(onto, TEXT)
    ours, theirs = (each._logits(_rows(each, stream)) for each in (drafter, made(family)))
    assert mx.allclose(ours, theirs, atol=0.2 if is_packed else 1e-4, rtol=1e-4)


def _rows(drafter: Mtp, stream: mx.array) -> mx.array:
    state = drafter.begin()
    drafter.observe(state, TEXT[:4], {drafter.taps[0]: stream[:4]})
    return drafter._extended(state, [*state.pending, TEXT[4]], mx.concatenate(state.streams))


class Dense:
    """The heads in float64, row t from token t and the stream before it."""

    def __init__(self, family: str, onto: Target) -> None:
        self.w = {name: np.array(value, dtype=np.float64) for name, value in tiny_mtp.random_heads(family).items()}
        self.onto, self.args = onto, onto.args

    def norm(self, x: Array, name: str) -> Array:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.args.rms_norm_eps) * self.w[f"{name}.weight"]

    def rope(self, x: Array) -> Array:
        dims = int(self.args.head_dim * self.args.partial_rotary_factor)
        angle = np.arange(len(x))[:, None, None] * self.args.rope_theta ** (-2.0 * np.arange(dims // 2) / dims)
        one, two, rest = x[..., : dims // 2], x[..., dims // 2 : dims], x[..., dims:]
        cos, sin = np.cos(angle), np.sin(angle)
        return np.concatenate([one * cos - two * sin, two * cos + one * sin, rest], axis=-1)

    def heads(self, x: Array, name: str) -> Array:
        return (x @ self.w[f"layers.0.self_attn.{name}_proj.weight"].T).reshape(len(x), -1, self.args.head_dim)

    def attention(self, x: Array) -> Array:
        count, args = len(x), self.args
        both = (x @ self.w["layers.0.self_attn.q_proj.weight"].T).reshape(count, args.num_attention_heads, -1)
        queries, gate = np.split(both, 2, axis=-1)
        queries = self.rope(self.norm(queries, "layers.0.self_attn.q_norm"))
        keys = self.rope(self.norm(self.heads(x, "k"), "layers.0.self_attn.k_norm"))
        groups = args.num_attention_heads // args.num_key_value_heads
        keys, values = (np.repeat(each, groups, axis=1) for each in (keys, self.heads(x, "v")))
        scores = np.einsum("qhd,khd->hqk", queries, keys) * args.head_dim**-0.5
        scores = np.where(np.tril(np.ones((count, count)))[None] > 0, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        out = np.einsum("hqk,khd->qhd", weights, values).reshape(count, -1)
        out = out / (1 + np.exp(-gate.reshape(count, -1)))
        return out @ self.w["layers.0.self_attn.o_proj.weight"].T

    def dense(self, x: Array, at: str, expert: int | None = None) -> Array:
        gate, up, down = (self.w[f"{at}.{name}_proj.weight"] for name in ("gate", "up", "down"))
        if expert is not None:
            gate, up, down = gate[expert], up[expert], down[expert]
        opened = x @ gate.T
        return (opened / (1 + np.exp(-opened)) * (x @ up.T)) @ down.T

    def mlp(self, x: Array) -> Array:
        if "layers.0.mlp.gate.weight" not in self.w:
            return self.dense(x, "layers.0.mlp")
        scores = np.exp(x @ self.w["layers.0.mlp.gate.weight"].T)
        scores /= scores.sum(-1, keepdims=True)
        out = np.zeros_like(x)
        for row, own in enumerate(scores):
            chosen = np.argsort(-own)[: self.args.num_experts_per_tok]
            share = own[chosen] / (own[chosen].sum() if self.args.norm_topk_prob else 1.0)
            for expert, part in zip(chosen, share, strict=True):
                out[row] += part * self.dense(x[row : row + 1], "layers.0.mlp.switch_mlp", int(expert))[0]
        opened = 1 / (1 + np.exp(-(x @ self.w["layers.0.mlp.shared_expert_gate.weight"].T)))
        return out + opened * self.dense(x, "layers.0.mlp.shared_expert")

    def hidden(self, tokens: list[int], before: Array) -> Array:
        """After the heads' norm."""
        embedded = np.array(self.onto.embed_rows(mx.array(tokens)), dtype=np.float64)
        both = [self.norm(embedded, "pre_fc_norm_embedding"), self.norm(before, "pre_fc_norm_hidden")]
        x = np.concatenate(both, axis=-1) @ self.w["fc.weight"].T
        x = x + self.attention(self.norm(x, "layers.0.input_layernorm"))
        x = x + self.mlp(self.norm(x, "layers.0.post_attention_layernorm"))
        return self.norm(x, "norm")


@pytest.mark.parametrize("family", FAMILIES)
def test_drafts_are_the_specifications(family: str) -> None:
    """Four drafts, each made from the one before: committed rows by the target's streams, drafts by their own."""
    onto, drafter, dense = target(family), made(family), Dense(family, target(family))
    stream = streams(onto, TEXT)
    state = drafter.begin()
    drafter.observe(state, TEXT, {drafter.taps[0]: stream})
    ours = drafter.propose(state, 17, 4, argmax)
    normed = np.array(onto.norm_rows(stream), dtype=np.float64)
    tokens, before = [*TEXT, 17], np.concatenate([np.zeros((1, normed.shape[1])), normed])
    for slot in range(4):
        hidden = dense.hidden(tokens, before)[-1:]
        logits = np.array(onto.head_rows(mx.array(hidden.astype(np.float32))))
        assert ours.logits is not None
        np.testing.assert_allclose(np.array(ours.logits)[slot], logits[0], atol=2e-3)
        tokens.append(int(logits[0].argmax()))
        before = np.concatenate([before, hidden])
    assert ints(ours.tokens) == tokens[len(TEXT) + 1 :]
    assert ours.confidence is not None
    assert ours.logits is not None
    assert mx.allclose(ours.confidence, mx.max(mx.softmax(ours.logits, axis=-1), axis=-1))


def rounds(drafter: Mtp, stream: mx.array, cuts: list[tuple[int, bool]]) -> MtpState:
    """Commit a text in rounds of so many tokens, drafting before some of them."""
    state, at = drafter.begin(), 0
    for count, drafts in cuts:
        if drafts:
            drafter.propose(state, TEXT[at], 3, argmax)
        drafter.observe(state, TEXT[at : at + count], {drafter.taps[0]: stream[at : at + count]})
        at += count
        assert state.length == at
    return state


def kept(drafter: Mtp, state: MtpState) -> list[mx.array]:
    buffers = drafter.buffers(state)
    assert buffers.keys() == {"keys.0", "values.0"}
    return [array[:, :, : state.length] for array in buffers.values()]


@pytest.mark.parametrize("family", [slow(FAMILIES[0]), FAMILIES[1], slow(FAMILIES[2])])
def test_rows_do_not_depend_on_how_rounds_were_cut(family: str) -> None:
    drafter, stream = made(family), streams(target(family), TEXT)
    whole = kept(drafter, rounds(drafter, stream, [(24, False)]))
    for cuts in (
        [(10, False), (1, True), (4, True), (1, False), (3, True), (5, True)],
        [(1, False), (2, True), (1, True), (20, False)],
        [(24 - 3, False), (1, True), (1, True), (1, True)],
    ):
        for ours, theirs in zip(kept(drafter, rounds(drafter, stream, cuts)), whole, strict=True):
            assert mx.allclose(ours, theirs, atol=1e-5)


def test_a_prompt_in_chunks_waits_no_longer_than_it_must() -> None:
    drafter, onto = made("qwen3_5"), target("qwen3_5")
    text = TEXT * 6
    stream, state = streams(onto, text), drafter.begin()
    for at in range(0, len(text), 20):
        drafter.observe(state, text[at : at + 20], {drafter.taps[0]: stream[at : at + 20]})
        assert len(state.pending) <= PENDING
        assert sum(rows.shape[0] for rows in state.streams) == len(state.pending) + 1


def test_a_restored_context_goes_on_as_before() -> None:
    """But for one row, whose stream was not kept."""
    drafter, stream = made("qwen3_5"), streams(target("qwen3_5"), TEXT)
    state = rounds(drafter, stream, [(12, False)])
    back = drafter.restore({name: mx.array(rows) for name, rows in drafter.buffers(state).items()}, 12)
    assert back.length == 12
    for each in (state, back):
        drafter.observe(each, TEXT[12:], {drafter.taps[0]: stream[12:]})
    for ours, theirs in zip(kept(drafter, back), kept(drafter, state), strict=True):
        assert mx.allclose(ours[:, :, :12], theirs[:, :, :12])
        assert not mx.allclose(ours[:, :, 12], theirs[:, :, 12], atol=1e-2)
        assert mx.allclose(ours[:, :, 13:], theirs[:, :, 13:], atol=1e-5)


# -- conventions


def gains(key: mx.array, width: int, low: float = -0.5, high: float = 0.5) -> mx.array:
    """Norms whose meaning is lost when 1 is added to them or taken away."""
    return mx.where(mx.random.uniform(shape=(width,), key=key) < 0.5, low, high)


def chain(*, normed: bool) -> tuple[Any, tiny_mtp.Weights, list[int]]:
    """A model that says a chain of tokens, heads that know it from the model's stream alone, and the chain.

    `normed`: which stream they know it from.
    """
    model: Any = tiny_families.model("qwen3_5")
    body = model.language_model.model
    for layer in body.layers:  # that add nothing
        part = layer.linear_attn.out_proj if layer.is_linear else layer.self_attn.o_proj
        part.weight = mx.zeros_like(part.weight)
        layer.mlp.down_proj.weight = mx.zeros_like(layer.mlp.down_proj.weight)
    count, width = 40, tiny_families.HIDDEN
    keys = mx.random.split(mx.random.key(3), 4)
    table = mx.random.normal((tiny_families.VOCABULARY, width), key=keys[0])
    body.embed_tokens.weight, body.norm.weight = table, gains(keys[1], width, -1.5, 1.5)
    order: list[int] = np.random.default_rng(5).permutation(count).tolist()
    follows = dict(zip(order, [*order[1:], order[0]], strict=True))
    streams = np.array(mx.fast.rms_norm(table[:count], body.norm.weight, 1e-6), dtype=np.float64)
    head = np.zeros((tiny_families.VOCABULARY, width))
    inverse = np.linalg.pinv(streams)  # [width, count]
    for token, after in follows.items():
        head[after] = 8 * inverse[:, token]
    model.language_model.lm_head.weight = mx.array(head.astype(np.float32))

    weights = tiny_mtp.random_heads("qwen3_5")
    for name in ("layers.0.self_attn.o_proj.weight", "layers.0.mlp.down_proj.weight"):
        weights[name] = mx.zeros_like(weights[name])
    weights["pre_fc_norm_hidden.weight"], weights["norm.weight"] = gains(keys[2], width), gains(keys[3], width)
    # fc makes, of the stream at a token, what the head wants to see at the next one, before the heads' own norm.
    source = mx.array(streams.astype(np.float32)) if normed else table[:count]
    read = np.array(mx.fast.rms_norm(source, weights["pre_fc_norm_hidden.weight"], 1e-6), dtype=np.float64)
    wanted = streams[[follows[token] for token in range(count)]] / np.array(weights["norm.weight"])
    fc = np.concatenate([np.zeros((width, width)), (np.linalg.pinv(read) @ wanted).T], axis=1)
    weights["fc.weight"] = mx.array(fc.astype(np.float32))
    return model, weights, [order[index % count] for index in range(60)]


@pytest.mark.parametrize(("normed", "group"), [(True, INPUTS), (False, OUTPUT)])
def test_the_reading_is_found_by_how_many_guesses_are_right(normed: bool, group: str) -> None:
    model, weights, text = chain(normed=normed)
    onto = Target(model, tiny_families.config("qwen3_5"))
    stored = dict(weights)
    for name in mtp_weights.NORMS[group]:
        stored[f"{name}.weight"] = stored[f"{name}.weight"] - 1.0
    drafter = Mtp(mtp_weights.HeadWeights(Path("made"), stored), onto, dtype=onto.dtype, bits=0)
    found = head_reading.choose(onto, drafter, text)
    assert found.share > 0.95
    assert drafter.reading.normed is normed
    assert drafter.reading.offset - {LAYERS} == {group}  # the layer adds nothing here


def test_a_reading_is_measured_once_for_each_version_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model, weights, text = chain(normed=False)
    folder, _ = tiny_mtp.write(tmp_path / "model", "qwen3_5", "subfolder", weights, model)
    onto = load_target(folder, Precision())

    def load(sample: list[int]) -> Reading:
        drafter = load_drafter(folder, onto, Precision(drafter_bits=0), sample=sample, beside=folder)
        assert isinstance(drafter, Mtp)
        return drafter.reading

    assert load([]) == Reading()
    assert load(text).normed is False
    assert load([]).normed is False
    assert not caplog.records
    (folder / "config.json").touch()
    assert load([]) == Reading()


def test_heads_that_are_never_right_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    model, _, text = chain(normed=True)
    folder, _ = tiny_mtp.write(tmp_path / "model", "qwen3_5", "published", None, model)
    onto = load_target(folder, Precision())
    load_drafter(folder, onto, Precision(drafter_bits=0), sample=text, beside=folder)
    assert "MTP of model is right in only" in caplog.text


# -- what is refused


def test_a_model_that_only_says_it_has_heads_has_none(tmp_path: Path) -> None:
    """Conversions keep `mtp_num_hidden_layers` in their config and leave the tensors out."""
    folder, _ = tiny_mtp.write(tmp_path / "model", "qwen3_5", "sidecar")
    assert heads.has(folder)
    (folder / "mtp.safetensors").unlink()
    assert not heads.has(folder)
    onto = load_target(folder, Precision())
    with pytest.raises(UnsupportedModel, match="has no MTP heads"):
        load_drafter(folder, onto, Precision(), beside=folder)


def test_heads_of_another_model_are_refused(tmp_path: Path) -> None:
    _, apart = tiny_mtp.write(tmp_path / "model", "qwen3_5_moe", "own repository")
    with pytest.raises(PairMismatch, match="no partial_rotary_factor"):
        load_drafter(apart, target("llama"), Precision())
    weights = tiny_mtp.random_heads("qwen3_5")
    half = {name: array[: array.shape[0] // 2] if array.ndim == 1 else array for name, array in weights.items()}
    with pytest.raises(PairMismatch, match="hidden states of 32, the target's have 64"):
        Mtp(mtp_weights.HeadWeights(Path("half"), half), target("qwen3_5"), dtype=mx.float32, bits=0)
    del weights["norm.weight"]
    with pytest.raises(PairMismatch, match=r"lack norm\.weight"):
        Mtp(mtp_weights.HeadWeights(Path("part"), weights), target("qwen3_5"), dtype=mx.float32, bits=0)


def test_heads_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    onto = target("qwen3_5_moe")
    weights = tiny_mtp.random_heads("qwen3_5_moe")
    cases: dict[str, tuple[tiny_mtp.Weights, type[Exception], str]] = {
        "fp8": ({"fc.weight_scale_inv": mx.ones((1, 1))}, UnsupportedModel, "packed in a way that is not read"),
        "two layers": ({"layers.1.mlp.gate.weight": mx.ones((4, 64))}, UnsupportedModel, "several layers"),
        "unknown": ({"layers.0.mlp.bias": mx.ones((4,))}, PairMismatch, "do not fit"),
        "expert": ({"layers.0.mlp.experts.3.up_proj.weight": mx.ones((4, 64))}, ModelIncomplete, "some are missing"),
    }
    for name, (more, error, words) in cases.items():
        folder = tmp_path / name
        folder.mkdir()
        tiny_mtp._save(folder / "model.safetensors", weights | more)
        with pytest.raises(error, match=words):
            load_drafter(folder, onto, Precision())


# -- on disk


def test_heads_are_counted_as_a_drafter_and_not_as_the_target(tmp_path: Path) -> None:
    without, _ = tiny_mtp.write(tmp_path / "a", "qwen3_5", "sidecar")
    (without / "mtp.safetensors").unlink()
    plain = candidate.of_folder(without)
    size = sum(array.size for array in tiny_mtp.random_heads("qwen3_5").values())
    for layout in ("published", "sidecar", "sidecar named as a shard", "subfolder"):
        folder, _ = tiny_mtp.write(tmp_path / layout, "qwen3_5", layout)
        assert candidate.of_folder(folder).elements == plain.elements, layout
        own = candidate.of_drafter(folder)
        assert own.elements == size
        assert own.config["num_hidden_layers"] == 1


def test_a_repository_of_heads_is_a_drafter(tmp_path: Path) -> None:
    _, apart = tiny_mtp.write(tmp_path / "model", "qwen3_5", "own repository")
    assert files.is_drafter(files.read_config(apart))


def chosen(folder: Path, *words: str, modes: tuple[Mode, ...]) -> tuple[tuple[Path, ...], bool]:
    """Which drafters the command line takes, and whether the model's own heads if there are any."""
    parser = argparse.ArgumentParser()
    options.add_pair(parser)
    pair = options._pair(parser.parse_args(["--model", str(folder), *words]), modes)
    return pair.drafters, pair.own_heads


def test_a_models_own_heads_draft_without_being_named(tmp_path: Path) -> None:
    folder, _ = tiny_mtp.write(tmp_path / "model", "qwen3_5", "published")
    assert chosen(folder, modes=(Mode.AUTO,)) == ((), True)
    assert chosen(folder, modes=(Mode.DSPARK, Mode.DFLASH, Mode.MTP)) == ((), True)
    assert chosen(folder, modes=(Mode.MTP,)) == ((folder,), False)
    assert chosen(folder, "--drafter", "mtp", modes=(Mode.AUTO,)) == ((folder,), False)
    assert chosen(folder, "--drafter", "none", modes=(Mode.AUTO,)) == ((), False)
    assert chosen(folder, modes=(Mode.BASELINE,)) == ((), False)
    assert with_own_heads(Pair(folder, own_heads=True)).drafters == (folder,)
    assert with_own_heads(Pair(write_target(tmp_path / "other"), own_heads=True)).drafters == ()


def test_own_heads_that_there_is_no_room_for_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder, _ = tiny_mtp.write(tmp_path / "model", "qwen3_5", "published")
    enough = memory.fit(folder, context=memory.LEAST_CONTEXT).total
    limit = memory.Limit(enough, "free memory", enough, on_gpu=False)
    monkeypatch.setattr(memory, "limit", lambda: limit)
    assert with_own_heads(Pair(folder, own_heads=True)).drafters == ()
    assert "the MTP heads of model are left out: model needs" in caplog.text
    assert with_own_heads(Pair(folder, own_heads=True, guard_memory=False)).drafters == (folder,)


def test_own_heads_that_cannot_be_read_are_left_out_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tiny_families, "FAMILIES", tiny_mtp.bytes_family("qwen3_5"))
    weights = tiny_mtp.random_heads("qwen3_5") | {"fc.weight_scale_inv": mx.ones((1, 1))}
    folder, _ = tiny_mtp.write(tmp_path / "model", "qwen3_5", "sidecar", weights)
    write_tokenizer(folder)
    engine = open_engine(Pair(folder, own_heads=True, guard_memory=False))
    assert engine.info.drafters == ()
    assert "packed in a way that is not read" in caplog.text
    with pytest.raises(UnsupportedModel, match="packed in a way"):
        open_engine(Pair(folder, (folder,), guard_memory=False))


@pytest.mark.slow
def test_an_answer_by_the_heads_is_the_plain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through the command, from a folder as a download leaves it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tiny_families, "FAMILIES", tiny_mtp.bytes_family("qwen3_5"))
    folder, _ = tiny_mtp.write(tmp_path / "model", "qwen3_5", "published")
    write_tokenizer(folder)
    answers: dict[str, Any] = {}
    for mode in ("mtp", "baseline"):
        words = ["generate", "--model", str(folder), "--prompt", "x", "--mode", mode, "--max-tokens", "12", "--json"]
        assert main([*words, "--temperature", "0.8", "--seed", "1"]) == 0
        answers[mode] = json.loads(capsys.readouterr().out)
    assert answers["mtp"]["token_ids"] == answers["baseline"]["token_ids"]
    assert answers["mtp"]["drafter"] == "mtp"


def test_mode_mtp_without_heads_says_what_to_do(tmp_path: Path) -> None:
    folder = write_target(tmp_path / "model")
    onto = load_target(folder, Precision())
    (asked,), _ = chosen(folder, modes=(Mode.MTP,))
    with pytest.raises(UnsupportedModel, match="give --drafter a repository that has them"):
        load_drafter(asked, onto, Precision(), beside=folder)
