"""Runs of the real decode loop on tiny models, every promise of a round checked; drafters that know the answer."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten
from mlx_lm.models import gemma3_text, llama
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import tiny
from slipstream.drafters.dflash import DFlash
from slipstream.drafters.dspark import DSpark
from slipstream.drafters.mtp import Mtp
from slipstream.drafters.none import NoDrafter
from slipstream.drafters.protocol import Drafter, Draw, Proposal
from slipstream.engine.planner import Drafters
from slipstream.engine.round import Decoding, Step
from slipstream.events import Margin
from slipstream.measure.verdict import Comparison, compare, first_difference
from slipstream.models.target import Target
from slipstream.types import Mode, Options

BYTES = 256  # ids below are bytes; special tokens follow
END = 256
BYTE_VOCABULARY = 260


@dataclass(frozen=True, slots=True)
class Run:
    tokens: list[int]
    steps: list[Step]

    @property
    def accepted(self) -> int:
        return sum(step.round.accepted for step in self.steps if step.round is not None)


def decode(
    target: Target,
    drafters: Sequence[Drafter],
    options: Options,
    prompt: Sequence[int],
    *,
    kv_bits: int = 0,
    chunk: int = 32,
) -> Run:
    """Decode until there is no more room, and check what each round says about itself."""
    decoding = Decoding(target, Drafters(drafters), options, prompt, target.make_cache(kv_bits))
    for _ in decoding.prefill(chunk):
        pass
    steps = [decoding.first()]
    while decoding.room > 0:
        steps.append(decoding.step())
    check_bookkeeping(steps, options, len(prompt))
    return Run([token for step in steps for token in step.tokens], steps)


def check_bookkeeping(steps: Sequence[Step], options: Options, prompt_length: int) -> None:
    assert steps[0].round is None
    assert len(steps[0].tokens) == 1
    said = 1
    for step in steps[1:]:
        made = step.round
        assert made is not None
        assert made.position == prompt_length + said - 1
        assert 0 <= made.accepted <= len(made.drafted)
        assert len(made.drafted) <= options.max_tokens - said - 1
        assert options.max_draft is None or len(made.drafted) <= options.max_draft
        assert len(step.tokens) == made.accepted + 1
        assert step.tokens[:-1] == made.drafted[: made.accepted]
        if made.accepted < len(made.drafted):
            assert step.tokens[-1] != made.drafted[made.accepted]
        assert made.confidence is None or len(made.confidence) == len(made.drafted)
        said += len(step.tokens)
    assert said == options.max_tokens
    assert 1 + sum(step.round.accepted + 1 for step in steps if step.round is not None) == said


def plain(target: Target, options: Options, prompt: Sequence[int], *, kv_bits: int = 0) -> Run:
    return decode(target, (NoDrafter(),), options, prompt, kv_bits=kv_bits)


def judge(
    target: Target,
    drafters: Callable[[], Sequence[Drafter]],
    options: Options,
    prompt: Sequence[int],
    own: Run,
    other: Run,
    *,
    kv_bits: int = 0,
) -> Comparison:
    """Compare as the product does: where two runs part, both are repeated with margins."""
    position = first_difference(own.tokens, other.tokens)
    margins: tuple[Margin, Margin] | None = None
    if position is not None:
        noting = replace(options, margins=True)

        def margin(by: Sequence[Drafter]) -> Margin:
            steps = decode(target, by, noting, prompt, kv_bits=kv_bits).steps
            return [margin for step in steps for margin in step.margins][position]

        margins = (margin((NoDrafter(),)), margin(drafters()))
    return compare(own.tokens, other.tokens, margins, str(target.dtype).removeprefix("mlx.core."))


Pattern = Callable[[int, int], bool]  # is draft `index` of `count` to be wrong?

PATTERNS: dict[str, Pattern] = {
    "all right": lambda index, count: False,
    "all wrong": lambda index, count: True,
    "first wrong": lambda index, count: index == 0,
    "last wrong": lambda index, count: index == count - 1,
    "every other wrong": lambda index, count: index % 2 == 1,
    "wrong in the middle": lambda index, count: index == count // 2,
}


def half(drafter: Drafter, answer: Sequence[int], prompt_length: int) -> Drafter:
    """A real drafter that is right about half of the time; most of its methods are the drafter's own."""
    assert isinstance(drafter, DSpark | DFlash | Mtp)
    kind = tiny.HalfAlone if isinstance(drafter, Mtp) else tiny.Half
    return cast(Drafter, kind(drafter, answer, prompt_length))


class ScriptedState:
    def __init__(self) -> None:
        self.length = 0


class Scripted:
    """Knows the plain run's answer and is wrong exactly where a pattern says. `mixed` changes pattern every round."""

    mode = Mode.LOOKUP
    taps: tuple[int, ...] = ()

    def __init__(
        self, answer: Sequence[int], prompt_length: int, pattern: str, vocabulary: int, block: int = 8
    ) -> None:
        self.block = block
        self._answer = answer
        self._prompt_length = prompt_length
        self._pattern = pattern
        self._vocabulary = vocabulary
        self._round = 0

    def begin(self) -> ScriptedState:
        return ScriptedState()

    def observe(self, state: ScriptedState, tokens: Sequence[int], taps: Mapping[int, mx.array]) -> None:
        at = state.length + 1 - self._prompt_length
        for index, token in enumerate(tokens[1:] if at > 0 else ()):
            assert token == self._answer[at + index], "committed what plain decoding does not say"
        state.length += len(tokens)

    def arrays(self, state: ScriptedState) -> list[mx.array]:
        return []

    def propose(self, state: ScriptedState, last: int, limit: int, draw: Draw) -> Proposal:
        at = state.length + 1 - self._prompt_length
        tokens = list(self._answer[at : at + min(limit, self.block)])
        self._round += 1
        wrong = (
            list(PATTERNS.values())[self._round * 2654435761 % 7 % len(PATTERNS)]
            if self._pattern == "mixed"
            else PATTERNS[self._pattern]
        )
        for index in range(len(tokens)):
            if wrong(index, len(tokens)):
                tokens[index] = (tokens[index] + 1 + self._round % 3) % self._vocabulary
        return Proposal(mx.array(tokens, dtype=mx.int32))


def windowed_target(window: int = 12, *, seed: int = 0) -> Target:
    """A tiny Gemma 3: three layers of four look back `window` tokens, one sees everything."""
    config = tiny.target_config() | {
        "model_type": "gemma3_text",
        "sliding_window": window,
        "sliding_window_pattern": 4,
        "query_pre_attn_scalar": 32,
        "rope_local_base_freq": 1000.0,
        "tie_word_embeddings": False,
    }
    model = gemma3_text.Model(gemma3_text.ModelArgs.from_dict(config))
    tiny.randomise(model, seed)
    mx.eval(model.parameters())
    return Target(model, config)


def write_tokenizer(folder: Path, end: int = END) -> None:
    """Every byte is a token; `end` ends an answer, and the ids from 256 on are special."""
    characters = _byte_characters()
    vocabulary = {character: byte for byte, character in characters.items()}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<end>", "<user>", "<assistant>", "<pad>"])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=characters.get(end, "<end>"), clean_up_tokenization_spaces=False
    )
    fast.chat_template = "{% for m in messages %}<user>{{ m.content }}{% endfor %}<assistant>"
    fast.save_pretrained(folder)


def _byte_characters() -> dict[int, str]:
    """GPT-2's printable stand-ins for bytes."""
    plain_bytes = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain_bytes]
    return {byte: chr(byte) for byte in plain_bytes} | {byte: chr(256 + n) for n, byte in enumerate(others)}


def byte_config(**changes: Any) -> dict[str, Any]:
    return (
        tiny.target_config()
        | {"vocab_size": BYTE_VOCABULARY, "tie_word_embeddings": False, "eos_token_id": END}
        | changes
    )


def write_target(
    folder: Path,
    *,
    links: Iterable[tuple[int, int]] | None = None,
    stray: float = 0.0,
    seed: int = 0,
    **config: Any,
) -> Path:
    """A model folder as a download leaves it: config, weights, byte tokenizer.

    `links`: make it a chain, in which token a is followed by token b for each (a, b); else weights are random. `stray`:
    what its layers add to that, as a share of what random ones would: now and then the text makes it leave the chain.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = byte_config(**config)
    (folder / "config.json").write_text(json.dumps(settings))
    model = llama.Model(llama.ModelArgs.from_dict(settings))
    tiny.randomise(model, seed)
    if links is not None:
        _chain(model, dict(links), stray)
    weights: dict[str, mx.array] = dict(tree_flatten(model.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    write_tokenizer(folder)
    return folder


def _chain(model: Any, links: Mapping[int, int], stray: float) -> None:
    """Layers add next to nothing, so the last token alone decides; the head's row for b is the embedding of a."""
    for layer in model.layers:
        layer.self_attn.o_proj.weight = stray * layer.self_attn.o_proj.weight
        layer.mlp.down_proj.weight = stray * layer.mlp.down_proj.weight
    embed = mx.random.normal(model.model.embed_tokens.weight.shape, key=mx.random.key(5))
    head = mx.zeros(model.lm_head.weight.shape)
    for one, two in links.items():
        head = head.at[two].add(embed[one])
    model.model.embed_tokens.weight = embed
    model.lm_head.weight = head


def write_byte_drafter(folder: Path, mode: Mode, **config: Any) -> Path:
    """A random drafter for `write_target`'s models."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny, "VOCABULARY", BYTE_VOCABULARY)
        return tiny.write_drafter(folder, mode, **config)


def chain_of(*ids: int) -> list[tuple[int, int]]:
    return list(itertools.pairwise(ids))
