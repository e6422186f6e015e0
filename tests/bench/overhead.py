"""How much of a round is spent outside the two forwards, on the built-in pair.

    uv run python tests/bench/overhead.py [--max-tokens 96]

Counts processor time of the decoding thread, which a busy machine hardly lengthens, and sets it against the wall time
of the whole round: planning, acceptance, bookkeeping, detokenisation and the engine's own loop. MLX computes in threads
of its own.
"""

from __future__ import annotations

from slipstream.models.backend import prepare

prepare()

import argparse  # noqa: E402 - MLX must find its BLAS first
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import mlx.core as mx  # noqa: E402

from slipstream.engine.engine import Pair, open_engine  # noqa: E402
from slipstream.events import Delta  # noqa: E402
from slipstream.jobs import Job  # noqa: E402
from slipstream.store import demo  # noqa: E402
from slipstream.types import Chat, Mode, Options, Request  # noqa: E402

QUESTION = "Write a Python function that merges two sorted lists into one sorted list."


class Clock:
    """Processor time of this thread inside the functions it wraps; nested calls count once."""

    def __init__(self) -> None:
        self.inside = 0.0
        self._depth = 0

    def wrap(self, owner: Any, name: str) -> None:
        original: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            began = time.thread_time()
            try:
                return original(*args, **kwargs)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.inside += time.thread_time() - began

        setattr(owner, name, timed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-tokens", type=int, default=96)
    args = parser.parse_args()
    engine = open_engine(Pair(demo.target(), tuple(demo.drafters().values())))
    clock = Clock()
    clock.wrap(type(engine.target), "forward")
    for drafter in engine.drafters.values():
        for name in ("propose", "observe"):
            clock.wrap(type(drafter), name)
    for name in ("eval", "async_eval"):  # waiting for MLX is not work of ours
        clock.wrap(mx, name)
    for mode in (Mode.DSPARK, Mode.DFLASH, Mode.LOOKUP, Mode.BASELINE):
        options = Options(max_tokens=args.max_tokens, mode=mode, ignore_eos=True)
        job = Job(Request(Chat(({"role": "user", "content": QUESTION},)), options), lambda _: None)
        rounds, wall, spent, inside = 0, 0.0, 0.0, 0.0
        for event in engine.run(job):
            if not isinstance(event, Delta):
                continue
            if rounds == 0:  # prefill and the first token are no round
                wall, spent, inside = time.perf_counter(), time.thread_time(), clock.inside
            rounds += 1
        wall, spent, inside = time.perf_counter() - wall, time.thread_time() - spent, clock.inside - inside
        outside = 1000 * (spent - inside) / (rounds - 1)
        whole = 1000 * wall / (rounds - 1)
        spans = f"{whole:7.1f} ms a round, {outside:5.2f} ms outside: {outside / whole:.2%}"
        print(f"{mode.value:9} {rounds - 1:3} rounds  {spans}")


if __name__ == "__main__":
    main()
