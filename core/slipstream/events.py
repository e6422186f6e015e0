"""What a job says while it runs. One union; each job ends with exactly one Done or Failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from slipstream.curves import Curves
from slipstream.errors import SlipstreamError
from slipstream.types import ModelInfo


class Finish(StrEnum):
    STOP = "stop"  # an end token or a stop string
    LENGTH = "length"  # max_tokens, or the context is full
    CANCELLED = "cancelled"


def decode_tps(tokens: int, first_s: float, last_s: float) -> float:
    """Tokens per second of decoding: the one definition of "tok/s" everywhere.

    `tokens` counts all output tokens; the first one belongs to the prefill, so its interval is not counted.
    0.0 when there are fewer than two.
    """
    return (tokens - 1) / (last_s - first_s) if tokens > 1 and last_s > first_s else 0.0


class Miss(StrEnum):
    """Why less of a prompt was reused than a kept one could have given."""

    OFF = "off"  # prompts are not kept, or not for this request
    NEW = "new"  # nothing was kept yet
    IDENTITY = "identity"  # what is kept was made by another model, quantisation, type or version
    DIFFERS = "differs"  # the first token that no kept prompt has there
    EVICTED = "evicted"  # it was kept, and gave way to others
    PART = "part"  # it was kept without the state of this request's drafter
    CHECKPOINT = "checkpoint"  # a recurrent layer's state was not kept at that token, only before it
    DAMAGED = "damaged"  # a file on disk is not what was written


@dataclass(frozen=True, slots=True)
class Shortfall:
    reason: Miss
    position: int  # in tokens from the beginning of the prompt


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds on one monotonic clock, and what was done between them."""

    queued_s: float
    started_s: float
    first_token_s: float
    last_token_s: float
    prompt_tokens: int
    reused_tokens: int
    output_tokens: int
    rounds: int
    shortfall: Shortfall | None = None  # why `reused_tokens` are no more

    @property
    def ttft_s(self) -> float:
        """From the request's arrival to its first token; `reused_tokens` says whether the prompt was cached."""
        return self.first_token_s - self.queued_s

    @property
    def prefill_tps(self) -> float:
        """Prompt tokens computed (not reused) per second."""
        seconds = self.first_token_s - self.started_s
        return (self.prompt_tokens - self.reused_tokens) / seconds if seconds > 0 else 0.0

    @property
    def decode_tps(self) -> float:
        return decode_tps(self.output_tokens, self.first_token_s, self.last_token_s)

    @property
    def tokens_per_round(self) -> float:
        """Tokens after the first, for each target forward that made them."""
        return (self.output_tokens - 1) / self.rounds if self.rounds else 0.0


@dataclass(frozen=True, slots=True)
class Round:
    """One verification. `accepted` counts drafts that became part of the answer."""

    position: int  # of the last committed token, whose forward this was
    source: str  # "dspark", "dflash", "mtp", "lookup", "grammar" or "plain"
    drafted: tuple[int, ...]
    accepted: int
    confidence: tuple[float, ...] | None = None  # probability of each draft to be kept, where the drafter says


@dataclass(frozen=True, slots=True)
class Choice:
    """The log-probability of a chosen token under the model (before options), and the best alternatives."""

    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Margin:
    """How clear a choice was, in units of logits."""

    scale: float  # the size of the likeliest tokens' logits, which rounding is relative to
    gap: float  # between the two best scores
    at_edge: bool  # a hair's breadth more or less of top-k, top-p or min-p would have changed the choice


@dataclass(frozen=True, slots=True)
class Queued:
    position: int  # jobs ahead of this one


@dataclass(frozen=True, slots=True)
class Prefill:
    done: int
    total: int
    reused: int
    left_s: float | None = field(default=None, compare=False)  # until the first token, as measured prompts say


@dataclass(frozen=True, slots=True)
class Measured:
    """A calibration got on. The last one's curves are what is kept."""

    done: int  # measurements
    total: int
    curves: Curves


@dataclass(frozen=True, slots=True)
class Delta:
    """One round's worth: never one per token. The first, from the prefill, has no round."""

    text: str
    tokens: tuple[int, ...]
    round: Round | None = None
    logprobs: tuple[Choice, ...] = ()
    margins: tuple[Margin, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    reason: Finish
    timings: Timings
    prompt_ids: tuple[int, ...]
    stop: str | None = None  # the stop string that matched

    @property
    def was_cut(self) -> bool:
        """Whether the answer ended before the model ended it."""
        return self.reason is not Finish.STOP or self.stop is not None


@dataclass(frozen=True, slots=True)
class Failed:
    error: SlipstreamError


Event = Queued | Prefill | Measured | Delta | Done | Failed


# What the engine as a whole is doing.
@dataclass(frozen=True, slots=True)
class Empty:
    """No model is loaded."""


@dataclass(frozen=True, slots=True)
class Loading:
    model: str
    bytes_done: int = 0  # of its weights and its drafters', as they are stored
    bytes_total: int = 0  # 0: not known yet


Report = Callable[[int, int], None]
"""report(bytes_done, bytes_total): a load got on. May raise, to give it up."""


@dataclass(frozen=True, slots=True)
class Ready:
    model: ModelInfo


@dataclass(frozen=True, slots=True)
class Working:
    model: ModelInfo
    jobs: tuple[int, ...]  # numbers of the jobs running, oldest first


@dataclass(frozen=True, slots=True)
class Faulted:
    error: SlipstreamError


Status = Empty | Loading | Ready | Working | Faulted
