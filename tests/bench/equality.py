"""Plain against speculative decoding of the built-in pair, for many tokens, on the machine it is run on.

    uv run python tests/bench/equality.py --precision 8-bit --tokens 20000

Prints one JSON object: tokens compared, ties with their margins, and bugs (there must be none). After a tie both arms
go on from the text of the plain arm, so every token is compared under the same history.
"""

from __future__ import annotations

from slipstream.models.backend import prepare

prepare()

import argparse  # noqa: E402 - MLX must find its BLAS first
import itertools  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import mlx.core as mx  # noqa: E402
import mlx.nn as nn  # noqa: E402
from mlx_lm.utils import dequantize_model, load_model  # noqa: E402

from slipstream.drafters.protocol import Drafter  # noqa: E402
from slipstream.engine.load import Precision, load_drafter  # noqa: E402
from slipstream.engine.planner import Drafters, plan  # noqa: E402
from slipstream.engine.round import Decoding  # noqa: E402
from slipstream.events import Margin  # noqa: E402
from slipstream.measure.verdict import is_tie  # noqa: E402
from slipstream.models.target import Target  # noqa: E402
from slipstream.models.tokeniser import Tokeniser  # noqa: E402
from slipstream.store import demo  # noqa: E402
from slipstream.types import Chat, Mode, Options  # noqa: E402

PROMPTS = Path(__file__).parent / "prompts.jsonl"
MODES = (Mode.DSPARK, Mode.DFLASH, Mode.AUTO, Mode.LOOKUP)
TEMPERATURES = (0.0, 0.7, 1.0)


def load_target(folder: Path, precision: str) -> Target:
    """The built-in target in one precision. `4-bit` is as shipped; 8-bit has bfloat16 scales, group 64."""
    model, config = load_model(folder)
    if precision != "4-bit":
        model.set_dtype(mx.float32)
        model = dequantize_model(model)
        model.set_dtype(mx.float32 if precision == "float32" else mx.bfloat16)
        if precision == "8-bit":
            nn.quantize(model, group_size=64, bits=8)
    mx.eval(model.parameters())
    return Target(model, config)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", choices=("float32", "bfloat16", "8-bit", "4-bit"), required=True)
    parser.add_argument("--tokens", type=int, default=20000, help="compare at least so many (%(default)s)")
    parser.add_argument("--answer", type=int, default=400, help="tokens of one answer (%(default)s)")
    parser.add_argument("--seconds", type=float, default=540, help="stop after so long (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="first case of the sequence, to share it among processes")
    parser.add_argument("--step", type=int, default=1, help="take every so manieth case")
    parser.add_argument("--drafter-bits", type=int, choices=(0, 4, 8), help="packing of the drafters")
    parser.add_argument("--widest", type=int, default=64, help="draft at most so many tokens (%(default)s)")
    parser.add_argument("--target", type=Path, help="the target's folder, where it is not installed")
    args = parser.parse_args()

    folder = args.target or demo.target()
    target = load_target(folder, args.precision)
    drafters = {
        mode: load_drafter(path, target, Precision(drafter_bits=args.drafter_bits))
        for mode, path in demo.drafters().items()
    }
    tokeniser = Tokeniser(folder)
    questions = [json.loads(line)["prompt"] for line in PROMPTS.read_text().splitlines()]
    checker = Checker(target, drafters, str(target.dtype).removeprefix("mlx.core."))
    began = time.monotonic()
    # Every mode with every temperature and draft width, a new seed and question each time.
    cases = ((turn, *case) for turn in itertools.count() for case in itertools.product(TEMPERATURES, MODES))
    for number, (turn, temperature, mode) in enumerate(itertools.islice(cases, args.first, None, args.step)):
        if checker.tokens >= args.tokens or time.monotonic() - began > args.seconds:
            break
        question = questions[(args.first + number * args.step) % len(questions)]
        prompt = tokeniser.encode(Chat(({"role": "user", "content": question},)))
        width = args.widest if turn == 0 else min(args.widest, 1 + (turn - 1) % 8)
        options = Options(temperature=temperature, seed=1000 + turn, max_tokens=args.answer, max_draft=width)
        checker.check(prompt, options, mode)
        mx.clear_cache()
    report = checker.report() | {
        "precision": args.precision,
        "device": str(mx.default_device()),
        "resident_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 1),
        "seconds": round(time.monotonic() - began, 1),
    }
    print(json.dumps(report), flush=True)
    return 1 if checker.bugs else 0


class Checker:
    def __init__(self, target: Target, drafters: dict[Mode, Drafter], dtype: str) -> None:
        self._target = target
        self._drafters = drafters
        self._dtype = dtype
        self.tokens = 0
        self.rounds = 0
        self.ties: list[dict[str, Any]] = []
        self.bugs: list[dict[str, Any]] = []

    def check(self, prompt: list[int], options: Options, mode: Mode) -> None:
        """Compare one answer. After a tie both go on from what plain said."""
        left = options.max_tokens
        while left > 0:
            asked = replace(options, max_tokens=left)
            plain, _ = self._run(prompt, replace(asked, mode=Mode.BASELINE))
            other, rounds = self._run(prompt, replace(asked, mode=mode))
            self.rounds += rounds
            at = next((i for i, (one, two) in enumerate(zip(plain, other, strict=True)) if one != two), None)
            if at is None:
                self.tokens += left
                return
            self.tokens += at + 1
            margins = [self._margin(prompt, replace(asked, mode=which), at) for which in (Mode.BASELINE, mode)]
            found = {
                "mode": mode.value,
                "temperature": options.temperature,
                "max_draft": options.max_draft,
                "gaps": [round(margin.gap, 6) for margin in margins],
                "scale": round(margins[0].scale, 3),
            }
            tied = is_tie(margins[0], margins[1], self._dtype)
            (self.ties if tied else self.bugs).append(found)
            prompt = [*prompt, *plain[: at + 1]]
            left -= at + 1

    def _run(self, prompt: list[int], options: Options) -> tuple[list[int], int]:
        decoding = self._start(prompt, options)
        ids, rounds = list(decoding.first().tokens), 0
        while decoding.room > 0:
            ids += decoding.step().tokens
            rounds += 1
        return ids, rounds

    def _margin(self, prompt: list[int], options: Options, at: int) -> Margin:
        decoding = self._start(prompt, replace(options, margins=True))
        margins = list(decoding.first().margins)
        while len(margins) <= at:
            margins += decoding.step().margins
        return margins[at]

    def _start(self, prompt: list[int], options: Options) -> Decoding:
        chosen = Drafters(plan(self._drafters, options, can_rewind=True))
        decoding = Decoding(self._target, chosen, options, prompt, self._target.make_cache())
        for _ in decoding.prefill(512):
            pass
        return decoding

    def report(self) -> dict[str, Any]:
        widest = max((max(tie["gaps"]) for tie in self.ties), default=0.0)
        return {
            "tokens": self.tokens,
            "rounds": self.rounds,
            "ties": len(self.ties),
            "widest_tie": widest,
            "bugs": self.bugs,
            "examples": self.ties[:5],
        }


if __name__ == "__main__":
    sys.exit(main())
