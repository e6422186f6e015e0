"""Benchmark worker: Slipstream's engine, one mode a request, and the cost curves that bound what it can reach."""

from __future__ import annotations

from slipstream.models.backend import prepare

OPENBLAS = prepare()

import argparse  # noqa: E402 - MLX must find its BLAS first
import statistics  # noqa: E402
import time  # noqa: E402
from collections import Counter  # noqa: E402
from collections.abc import Callable, Mapping, Sequence  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import mlx.core as mx  # noqa: E402
from worker import Generated, Handler, Stopwatch, answer, serve, versions  # noqa: E402

from slipstream.drafters.protocol import Wish  # noqa: E402
from slipstream.engine.engine import MlxEngine, open_engine  # noqa: E402
from slipstream.engine.load import Precision  # noqa: E402
from slipstream.engine.pair import Pair  # noqa: E402
from slipstream.engine.planner import draft  # noqa: E402
from slipstream.events import Delta, Done  # noqa: E402
from slipstream.jobs import Job  # noqa: E402
from slipstream.types import Mode, Options, Request, Tokens  # noqa: E402


def open_worker(args: argparse.Namespace) -> tuple[dict[str, Any], Mapping[str, Handler]]:
    folders = tuple(Path(folder) for folder in args.drafter)
    engine = open_engine(Pair(Path(args.target), folders, precision=Precision(drafter_bits=args.drafter_bits)))
    modes = (*engine.drafters, Mode.AUTO, Mode.LOOKUP, Mode.BASELINE)

    def generate(arm: str, prompt_ids: list[int], max_tokens: int, end_ids: list[int]) -> Generated:
        options = Options(max_tokens=max_tokens, mode=Mode(arm), stop_ids=tuple(end_ids), ignore_eos=True)
        return run(engine, prompt_ids, options)

    def curves(prompt_ids: list[int], widths: list[int], repeats: int) -> dict[str, Any]:
        return {
            "target_ms": target_curve(engine, prompt_ids, widths, repeats),
            "draft_ms": {mode.value: draft_time(engine, mode, prompt_ids, repeats) for mode in engine.drafters},
        }

    info = {
        "arms": {mode.value: f"Slipstream, --mode {mode.value}" for mode in modes},
        "versions": versions("slipstream", "mlx", "mlx-lm", "transformers"),
        "device": str(mx.default_device()),
        "dtype": engine.info.dtype,
        "quantisation": engine.info.quantisation,
        "notes": [f"BLAS: {OPENBLAS}"] if OPENBLAS and mx.default_device() == mx.cpu else [],
    }
    return info, {"generate": generate, "curves": curves}


def run(engine: MlxEngine, prompt_ids: Sequence[int], options: Options) -> Generated:
    ids: list[int] = []
    widths = Counter[int]()
    watch = Stopwatch()
    network_rounds = 0
    job = Job(Request(Tokens(tuple(prompt_ids)), options), lambda _: None)
    for event in engine.run(job):
        match event:
            case Delta(tokens=tokens, round=made) if tokens:
                watch.mark()
                ids += tokens
                if made is not None:
                    widths[1 + len(made.drafted)] += 1
                    network_rounds += made.source in engine.drafters
            case Done(timings=timings):
                watch.first_s, watch.last_s = timings.first_token_s, timings.last_token_s
            case _:
                pass
    return answer(ids, watch, widths.total(), widths, network_rounds)


def target_curve(engine: MlxEngine, prompt_ids: Sequence[int], widths: Sequence[int], repeats: int) -> dict[str, float]:
    """Milliseconds of a target forward with taps and argmax, graph building included, by rows; medians."""
    target = engine.target
    taps = sorted({tap for drafter in engine.drafters.values() for tap in drafter.taps})
    cache = target.make_cache()
    prompt = mx.array(list(prompt_ids), dtype=mx.int32)
    mx.eval(target.forward(prompt, cache, rows=1).logits, cache.state)
    length = cache.length

    def forward(width: int) -> float:
        began = time.perf_counter()
        made = target.forward(prompt[:width], cache, taps)
        assert made.logits is not None
        mx.eval(mx.argmax(made.logits, axis=-1), list(made.taps.values()))
        spent = time.perf_counter() - began
        cache.rewind(length)
        return spent

    return medians({str(width): lambda width=width: forward(width) for width in widths}, repeats)


def draft_time(engine: MlxEngine, mode: Mode, prompt_ids: Sequence[int], repeats: int) -> float:
    """Milliseconds of one full proposal, after a prompt the drafter has seen."""
    target, drafter = engine.target, engine.drafters[mode]
    cache = target.make_cache()
    made = target.forward(mx.array(list(prompt_ids), dtype=mx.int32), cache, drafter.taps, rows=1)
    state = drafter.begin()
    drafter.observe(state, prompt_ids, made.taps)
    mx.eval(drafter.arrays(state))

    def likeliest(logits: mx.array, _: int) -> mx.array:
        return mx.argmax(logits, axis=-1)

    def propose() -> float:
        began = time.perf_counter()
        (proposal,) = draft([Wish(drafter, state, prompt_ids[-1], drafter.block, likeliest, is_greedy=True)])
        mx.eval(proposal.tokens)
        return time.perf_counter() - began

    return medians({"one": propose}, repeats)["one"]


def medians(measure: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """In turn, so that a slow moment of the machine does not fall on one of them alone; once unmeasured first."""
    taken: dict[str, list[float]] = {name: [] for name in measure}
    for repeat in range(repeats + 1):
        for name, once in measure.items():
            seconds = once()
            if repeat:
                taken[name].append(seconds)
    return {name: round(1000 * statistics.median(seconds), 4) for name, seconds in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", required=True)
    parser.add_argument("--drafter", action="append", default=[])
    parser.add_argument("--drafter-bits", type=int, choices=(0, 4, 8), help="default: as Slipstream chooses")
    args = parser.parse_args()
    serve(lambda: open_worker(args))


if __name__ == "__main__":
    main()
