"""What one request came to: the object that `generate --json` prints and `verify` replays."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from slipstream import __version__
from slipstream.errors import InvalidRequest
from slipstream.events import Delta, Done, Event, Failed, Finish, Margin, Round, Timings
from slipstream.types import Acceptance, Grammar, Mode, ModelInfo, Options


@dataclass(slots=True)
class Answer:
    """Everything a job said, put together."""

    text: str = ""
    tokens: list[int] = field(default_factory=list[int])
    rounds: list[Round] = field(default_factory=list[Round])
    margins: list[Margin] = field(default_factory=list[Margin])
    prompt_ids: tuple[int, ...] = ()
    reason: Finish | None = None
    timings: Timings | None = None

    def add(self, event: Event) -> None:
        """Raises the job's error when it failed."""
        match event:
            case Delta():
                self.text += event.text
                self.tokens.extend(event.tokens)
                self.margins.extend(event.margins)
                if event.round is not None:
                    self.rounds.append(event.round)
            case Done():
                self.prompt_ids, self.reason, self.timings = event.prompt_ids, event.reason, event.timings
            case Failed():
                raise event.error
            case _:
                pass

    @property
    def by_source(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for made in self.rounds:
            counts[made.source] = counts.get(made.source, 0) + 1
        return counts


def collect(events: Iterable[Event], watch: Callable[[Event], None] = lambda _: None) -> Answer:
    """Follow a job to its end. Raises its error when it fails."""
    answer = Answer()
    for event in events:
        answer.add(event)
        watch(event)
    return answer


def as_json(answer: Answer, info: ModelInfo, options: Options, *, drafter: str) -> dict[str, Any]:
    assert answer.timings is not None
    assert answer.reason is not None
    timings = answer.timings
    return {
        "text": answer.text,
        "prompt_ids": list(answer.prompt_ids),
        "token_ids": answer.tokens,
        "finish_reason": answer.reason.value,
        "rounds": [asdict(made) for made in answer.rounds],
        "tokens_per_round": round(timings.tokens_per_round, 4),
        "decode_tps": round(timings.decode_tps, 3),
        "prefill_tps": round(timings.prefill_tps, 3),
        "ttft_s": round(timings.ttft_s, 4),
        "mode": options.mode.value,
        "model": {"name": info.name, "path": info.path, "dtype": info.dtype, "quantisation": info.quantisation},
        "drafter": drafter,
        "options": options_json(options),
        "seed": options.seed,
        "versions": versions(),
    }


def options_json(options: Options) -> dict[str, Any]:
    out = asdict(options)
    out["logit_bias"] = {str(token): bias for token, bias in options.logit_bias.items()}
    return out


def options_from_json(values: Mapping[str, Any]) -> Options:
    """The options of a result. Raises InvalidRequest when they are not ours."""
    try:
        known = dict(values)
        known["mode"] = Mode(known["mode"])
        known["acceptance"] = Acceptance(known["acceptance"])
        known["stop"], known["stop_ids"] = tuple(known["stop"]), tuple(known["stop_ids"])
        known["logit_bias"] = {int(token): float(bias) for token, bias in known["logit_bias"].items()}
        known["grammar"] = Grammar(**known["grammar"]) if known["grammar"] else None
        return Options(**known)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidRequest(f"its options cannot be read ({error}); give a file made by generate --json") from error


def versions() -> dict[str, str]:
    found = {
        "slipstream": __version__,
        "python": platform.python_version(),
        "system": f"{sys.platform}-{platform.machine()}",
    }
    for name in ("mlx", "mlx-lm"):
        found[name] = importlib.metadata.version(name)
    return found
