"""What a request is made of. Values only; standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, cast

from slipstream.errors import InvalidRequest

MAX_SEED = 2**64 - 1
MAX_TOKEN = 2**31 - 1
MAX_BIAS = 1e6  # beyond any logit; much larger ones are infinite in float32


class Mode(StrEnum):
    """Who drafts. The text is the same under every one of them."""

    AUTO = "auto"  # each round whoever, and as far as, promises the most tokens per millisecond
    DSPARK = "dspark"
    DFLASH = "dflash"
    MTP = "mtp"  # the heads that a model was published with
    LOOKUP = "lookup"
    BASELINE = "baseline"  # plain decoding: nobody drafts


class Acceptance(StrEnum):
    MATCH = "match"  # a draft is kept when it equals the target's own choice (same seed, same text)
    REJECTION = "rejection"  # classic speculative sampling: same distribution, other text


@dataclass(frozen=True, slots=True)
class Grammar:
    """What the answer must look like: a JSON schema, a regular expression or a Lark grammar, as text for llguidance.

    `tags`: texts that a vocabulary may have as special tokens. A Lark grammar can use rule `tag_N`, the text itself,
    and `until_N`, anything up to and with it.
    """

    kind: Literal["json_schema", "regex", "lark"]
    text: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """How the target chooses tokens, and how long. Checked when made: a wrong value raises InvalidRequest."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0  # 0: all
    min_p: float = 0.0
    repetition_penalty: float = 1.0  # over prompt and answer; > 1 discourages
    presence_penalty: float = 0.0  # over the answer
    frequency_penalty: float = 0.0  # over the answer
    logit_bias: Mapping[int, float] = field(default_factory=dict[int, float])
    seed: int = 0
    max_tokens: int = 512
    stop: tuple[str, ...] = ()
    stop_ids: tuple[int, ...] = ()  # beside the model's own end tokens
    ignore_eos: bool = False  # benchmarks want equal lengths
    logprobs: int | None = None  # None: off; n: the chosen token's and the n best
    mode: Mode = Mode.AUTO
    max_draft: int | None = None  # None: the whole block, on a CPU at most 7; in auto, what pays
    acceptance: Acceptance = Acceptance.MATCH
    grammar: Grammar | None = None
    margins: bool = False  # report the gap between the two best choices at every token

    def __post_init__(self) -> None:
        def need(ok: bool, name: str, value: object, rule: str) -> None:
            if not ok:
                raise InvalidRequest(f"{name} must be {rule}, not {value!r}", option=name)

        def number(name: str, low: float, high: float, rule: str) -> None:
            value: object = getattr(self, name)
            need(_is_number(value, low, high), name, value, rule)

        def whole(name: str, low: int, high: int, rule: str) -> None:
            value: object = getattr(self, name)
            need(_is_whole(value, low, high), name, value, rule)

        number("temperature", 0, 100, "a number from 0 to 100")
        number("top_p", 0, 1, "a number from 0 to 1")
        number("min_p", 0, 1, "a number from 0 to 1")
        number("repetition_penalty", 1e-3, 1e3, "a number above 0")
        number("presence_penalty", -100, 100, "a number from -100 to 100")
        number("frequency_penalty", -100, 100, "a number from -100 to 100")
        whole("top_k", 0, 2**31, "0 (all) or a positive whole number")
        whole("seed", 0, MAX_SEED, "a whole number from 0 to 2**64 - 1")
        whole("max_tokens", 1, 2**31, "from 1 to 2**31")
        if self.logprobs is not None:
            whole("logprobs", 0, 20, "a whole number from 0 to 20")
        if self.max_draft is not None:
            whole("max_draft", 0, 64, "auto or a whole number from 0 to 64")
        for token, bias in self.logit_bias.items():
            is_bias = _is_whole(token, 0, MAX_TOKEN) and _is_number(bias, -MAX_BIAS, MAX_BIAS)
            need(is_bias, "logit_bias", {token: bias}, f"numbers from -{MAX_BIAS:g} to {MAX_BIAS:g}, by token id")
        stops: object = self.stop
        strings = cast(tuple[object, ...], () if isinstance(stops, str) else stops)
        is_stop = not isinstance(stops, str) and all(isinstance(stop, str) and stop for stop in strings)
        need(is_stop, "stop", stops, "made of non-empty strings")
        is_ids = all(_is_whole(token, 0, MAX_TOKEN) for token in self.stop_ids)
        need(is_ids, "stop_ids", self.stop_ids, "made of token ids")
        if self.acceptance is Acceptance.REJECTION and self.margins:
            raise InvalidRequest("margins are only defined for acceptance='match'", option="margins")

    @property
    def penalised(self) -> bool:
        return (self.repetition_penalty, self.presence_penalty, self.frequency_penalty) != (1.0, 0.0, 0.0)


def _is_number(value: object, low: float, high: float) -> bool:
    """NaN is not: it compares false."""
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _is_whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt as it is, without a chat template."""

    text: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation, rendered by the model's own chat template on the engine thread."""

    messages: tuple[Mapping[str, Any], ...]  # Any: a template may read any JSON value
    tools: tuple[Mapping[str, Any], ...] = ()
    template: Mapping[str, Any] = field(default_factory=dict[str, Any])  # extra variables, such as enable_thinking


@dataclass(frozen=True, slots=True)
class Tokens:
    """A prompt that is already token ids."""

    ids: tuple[int, ...]


Prompt = Text | Chat | Tokens


@dataclass(frozen=True, slots=True)
class Request:
    prompt: Prompt
    options: Options = field(default_factory=Options)
    reuse: bool = (
        True  # the prompt may begin from, and is left for, others that begin the same way; the ids are the same
    )


@dataclass(frozen=True, slots=True)
class Calibrate:
    """A job that measures what the loaded model's forwards cost on this machine, instead of answering a prompt."""

    force: bool = False  # also on a machine that is hot or busy


Work = Request | Calibrate


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """How much of what was computed for prompts is kept. 0: none."""

    ram_bytes: int
    disk_bytes: int
    folder: str  # on disk

    @property
    def is_off(self) -> bool:
        return not self.ram_bytes and not self.disk_bytes


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The loaded model, as others may know it: no arrays, safe on any thread."""

    name: str  # what the user calls it
    path: str  # the folder; tokenizer and chat template can be read from it
    context: int  # tokens of prompt and answer together
    vocabulary: int
    drafters: tuple[Mode, ...]  # loaded beside it, best first; LOOKUP and BASELINE always work
    dtype: str
    quantisation: str  # "4-bit group 32", "4-bit group 32, computed in float32" where unpacked, or "none"
    end_ids: tuple[int, ...]
    max_batch: int = 1  # requests that share a round
    measured_as: str = ""  # the name under which its costs are kept (store/curves.py)
