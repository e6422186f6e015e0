"""P01: a target with a recurrent layer, whose state cannot be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx_lm.models.cache import ArraysCache

from slipstream.engine.engine import MlxEngine
from slipstream.errors import PairMismatch, SlipstreamError
from slipstream.events import Delta, Done, Event, Finish
from slipstream.jobs import Job
from slipstream.models.target import Target
from slipstream.models.tokeniser import Tokeniser
from slipstream.types import Mode, ModelInfo, Options, Prompt, Request, Text, Tokens
from tiny_runs import Scripted

VOCABULARY = 32
END = 31
LINES = "".join(f"{number}\n" for number in range(1, 21))


class RunningSum(nn.Module):
    """Its state is the sum of all it has seen: the count of tokens. There is no way back from a sum."""

    def __call__(self, x: mx.array, mask: Any, cache: Any) -> mx.array:
        seen = cache[0] if cache is not None and cache[0] is not None else mx.zeros((1, 1))
        counts = seen + mx.arange(1, x.shape[1] + 1)[None]  # [1, tokens]
        if cache is not None:
            cache[0] = counts[:, -1:]
        return x + mx.where(mx.arange(x.shape[-1]) == counts[..., None], 100.0, 0.0)


class Body(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, 64)
        self.layers = [RunningSum()]

    def __call__(self, tokens: mx.array, cache: Any = None) -> mx.array:
        hidden = self.embed_tokens(tokens)
        for layer, own in zip(self.layers, cache or [None], strict=True):
            hidden = layer(hidden, None, own)
        return hidden


class Counter(nn.Module):
    """Says 1, 2, … 20 and the end: the n-th token after a prompt of two."""

    def __init__(self) -> None:
        super().__init__()
        self.args = SimpleNamespace(hidden_size=64)
        self.model = Body()
        self.lm_head = nn.Linear(64, VOCABULARY, bias=False)
        weight = mx.zeros((VOCABULARY, 64))
        for count in range(2, 64):
            says = count - 1 if count <= 21 else END
            weight[says, count] = 1.0
        self.lm_head.weight = weight

    @property
    def layers(self) -> list[RunningSum]:
        return self.model.layers

    def make_cache(self) -> list[Any]:
        return [ArraysCache(1)]

    def __call__(self, tokens: mx.array, cache: Any = None) -> mx.array:
        return self.lm_head(self.model(tokens, cache))


class Lines:
    """A tokenizer whose token n is the line "n"."""

    def encode(self, prompt: Prompt) -> list[int]:
        return list(prompt.ids) if isinstance(prompt, Tokens) else [1, 2]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(f"{token}\n" for token in ids)


@pytest.fixture(scope="module")
def engine() -> MlxEngine:
    target = Target(Counter(), {"model_type": "toy"})
    info = ModelInfo("Counter", "", target.context, VOCABULARY, (Mode.DSPARK,), "float32", "none", (END,))
    said = [*range(1, 21), END]
    drafter = Scripted(said, 2, "every other wrong", VOCABULARY)
    return MlxEngine(target, {Mode.DSPARK: drafter}, cast(Tokeniser, Lines()), info)


def run(engine: MlxEngine, options: Options) -> list[Event]:
    return list(engine.run(Job(Request(Text("Count from 1 to 20, one number per line"), options), lambda _: None)))


@pytest.mark.parametrize("mode", [Mode.BASELINE, Mode.AUTO])
def test_p01_plain_and_auto_say_every_line(mode: Mode, engine: MlxEngine) -> None:
    events = run(engine, Options(mode=mode, max_tokens=40))
    deltas = [event for event in events if isinstance(event, Delta)]
    assert "".join(delta.text for delta in deltas) == LINES
    assert [token for delta in deltas for token in delta.tokens] == [*range(1, 21), END]
    assert {delta.round.source for delta in deltas if delta.round is not None} == {"plain"}
    done = events[-1]
    assert isinstance(done, Done)
    assert done.reason is Finish.STOP


@pytest.mark.parametrize("mode", [Mode.DSPARK, Mode.LOOKUP])
def test_p01_drafting_is_refused_before_the_first_token_naming_the_layer(mode: Mode, engine: MlxEngine) -> None:
    said: list[Event] = []
    with pytest.raises(PairMismatch) as caught:
        said.extend(engine.run(Job(Request(Text("Count"), Options(mode=mode)), lambda _: None)))
    assert said == []
    assert "ArraysCache layers" in caught.value.message
    assert "--mode baseline" in caught.value.message
    assert caught.value.facts == {"kinds": ("ArraysCache",)}
    assert isinstance(caught.value, SlipstreamError)


def test_p01_a_draft_length_of_zero_is_plain_decoding(engine: MlxEngine) -> None:
    events = run(engine, Options(mode=Mode.DSPARK, max_draft=0, max_tokens=40))
    assert "".join(event.text for event in events if isinstance(event, Delta)) == LINES
