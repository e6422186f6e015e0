"""`slipstream verify`: replay a result of `generate --json` plainly and say whether it stands."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from slipstream.commands.options import Serving, add_pair, serving
from slipstream.errors import InvalidRequest
from slipstream.events import Finish
from slipstream.jobs import events_of
from slipstream.measure.race import margin_at
from slipstream.measure.result import collect, options_from_json
from slipstream.measure.verdict import Comparison, Verdict, compare, first_difference
from slipstream.types import Acceptance, Mode, Options, Request, Tokens

_WHOLE = (Finish.STOP.value, Finish.LENGTH.value)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("verify", help="replay a result without drafts and compare")
    parser.add_argument("result", type=Path, help="a file made by generate --json")
    add_pair(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0: identical or a numeric tie; 1: different."""
    result = _read(args.result)
    chosen = options_from_json(result["options"])
    if chosen.acceptance is Acceptance.REJECTION:
        raise InvalidRequest("a result of --acceptance rejection has its own text and cannot be replayed plainly")
    prompt, said = Tokens(tuple(result["prompt_ids"])), list(result["token_ids"])
    with serving(args, (chosen.mode,)) as engine:
        if (made_by := result["model"]["name"]) != engine.info.name:
            raise InvalidRequest(f"the result was made by {made_by}, not {engine.info.name}; give --model {made_by}")
        comparison = replay(engine, prompt, chosen, said, is_whole=result.get("finish_reason") in _WHOLE)
    words = {
        Verdict.IDENTICAL: f"Identical: all {len(said)} tokens are what the model alone says",
        Verdict.TIE: comparison.sentence,
        Verdict.DIFFERENT: comparison.sentence,
    }
    print(words[comparison.verdict])
    return 1 if comparison.verdict is Verdict.DIFFERENT else 0


def replay(engine: Serving, prompt: Tokens, chosen: Options, said: list[int], *, is_whole: bool) -> Comparison:
    """`is_whole`: the answer ended by itself, so that the model alone has to end there too."""
    plain = replace(chosen, mode=Mode.BASELINE, max_tokens=max(len(said), 1), logprobs=None)
    if is_whole:
        plain = replace(plain, max_tokens=min(plain.max_tokens + 1, chosen.max_tokens))
    own = collect(events_of(engine.inbox, Request(prompt, plain))).tokens
    if not is_whole:  # it ends where it was stopped; what it said until then is compared
        own = own[: len(said)]
    position = first_difference(own, said)
    margins = None
    if position is not None and position < min(len(own), len(said)):
        margins = (
            margin_at(engine.inbox, Request(prompt, replace(plain, margins=True)), position),
            margin_at(engine.inbox, Request(prompt, replace(chosen, margins=True)), position),
        )
    return compare(own, said, margins, engine.info.dtype)


def _read(path: Path) -> dict[str, Any]:
    try:
        result = json.loads(path.read_text("utf-8"))
        for key in ("prompt_ids", "token_ids"):
            if not all(type(token) is int for token in result[key]):
                raise TypeError(f"{key} holds something else than token ids")
        dict(result["options"])
        str(result["model"]["name"])
        return result
    except OSError as error:
        raise InvalidRequest(
            f"{path} cannot be read ({error.strerror}); give a file made by generate --json"
        ) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidRequest(f"{path} is no result of generate --json; make one with it") from error
