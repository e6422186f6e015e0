"""Where a round's time goes: planning, drafting, verifying, waiting for the device, deciding, committing, emitting.

    uv run python tests/bench/overhead.py [--max-tokens 96] [--modes auto,dspark]

For each part the wall time and the processor time of the decoding thread, in milliseconds a round; parts inside others,
and what taking the time costs, are taken out. Drafting and verifying are what Python needs to describe the passes; the
passes themselves are in "waiting", as MLX computes in threads of its own. What is neither a pass nor its description
is the engine's own work: "outside" sums it up, and a busy machine hardly lengthens its processor time.
"""

from __future__ import annotations

from slipstream.models.backend import prepare

prepare()

import argparse  # noqa: E402 - MLX must find its BLAS first
import time  # noqa: E402
from collections import defaultdict  # noqa: E402
from collections.abc import Callable, Generator  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from typing import Any  # noqa: E402

import mlx.core as mx  # noqa: E402

from slipstream.engine.answer import Answer  # noqa: E402
from slipstream.engine.decide import Chooser  # noqa: E402
from slipstream.engine.engine import MlxEngine, open_engine  # noqa: E402
from slipstream.engine.pair import Pair  # noqa: E402
from slipstream.engine.policy import Policy  # noqa: E402
from slipstream.events import Delta  # noqa: E402
from slipstream.jobs import Job  # noqa: E402
from slipstream.models.cache import TargetCache  # noqa: E402
from slipstream.store import demo, local  # noqa: E402
from slipstream.types import Chat, Mode, Options, Request  # noqa: E402

QUESTION = "Write a Python function that merges two sorted lists into one sorted list."
PASSES = ("draft", "verify", "wait")  # the others are the engine's own work
PARTS = ("plan", *PASSES, "decide", "commit", "emit", "rest")


class Profile:
    """Seconds by part, wall and processor, each part without those inside it."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = defaultdict(float)
        self.processor: dict[str, float] = defaultdict(float)
        self._stack = ["rest"]
        self._borders: dict[str, int] = defaultdict(int)  # crossed out of each part
        self._border_s = 0.0
        self._at = (time.perf_counter(), time.thread_time())

    def wrap(self, owner: Any, part: str, *names: str) -> None:
        for name in names:
            original: Callable[..., Any] | None = getattr(owner, name, None)
            if original is not None:
                setattr(owner, name, self._timed(original, part))

    def _timed(self, original: Callable[..., Any], part: str) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.inside(part):
                return original(*args, **kwargs)

        return timed

    @contextmanager
    def inside(self, part: str) -> Generator[None]:
        self._borders[self._stack[-1]] += 1
        self.settle()
        self._stack.append(part)
        try:
            yield
        finally:
            self.settle()
            self._stack.pop()

    def settle(self) -> None:
        """Give the time since the last border to the part it was spent in."""
        now = (time.perf_counter(), time.thread_time())
        self.wall[self._stack[-1]] += now[0] - self._at[0]
        self.processor[self._stack[-1]] += now[1] - self._at[1]
        self._at = now

    def reset(self) -> None:
        self.settle()
        for each in (self.wall, self.processor, self._borders):
            each.clear()

    def calibrate(self, times: int = 2000) -> None:
        """Learn what a border costs the part around it."""
        nothing = self._timed(lambda: None, "nothing")
        self.reset()
        for _ in range(times):
            nothing()
        self.settle()
        self._border_s = self.processor["rest"] / times
        self.reset()

    def milliseconds(self, seconds: dict[str, float], rounds: int) -> dict[str, float]:
        """Of each part, a round."""
        own = {part: max(0.0, seconds[part] - self._borders[part] * self._border_s) for part in PARTS}
        return {part: 1000 * spent / rounds for part, spent in own.items()}


def watch(engine: MlxEngine) -> Profile:
    profile = Profile()
    profile.wrap(type(engine.target), "verify", "forward", "forward_rows")
    for kind in {type(drafter) for drafter in engine.drafters.values()}:
        profile.wrap(kind, "draft", "propose", "propose_together", "observe", "observe_together")
    profile.wrap(mx, "wait", "eval", "async_eval")
    profile.wrap(Chooser, "decide", "decide")
    profile.wrap(TargetCache, "commit", "rewind")
    profile.wrap(Policy, "plan", "length", "best", "may_cut", "cut", "learn")
    profile.wrap(Answer, "emit", "take")
    return profile


def run(engine: MlxEngine, profile: Profile, mode: Mode, max_tokens: int) -> int:
    """Rounds; the profile is theirs alone: prefill and the first token are no round."""
    options = Options(max_tokens=max_tokens, mode=mode, ignore_eos=True)
    job = Job(Request(Chat(({"role": "user", "content": QUESTION},)), options, reuse=False), lambda _: None)
    rounds = -1
    for event in engine.run(job):
        if isinstance(event, Delta):
            rounds += 1
            if rounds == 0:
                profile.reset()
    profile.settle()
    return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--modes", default="dspark,dflash,auto,lookup,baseline")
    parser.add_argument("--model", help="a model's name or folder (default: the built-in pair)")
    parser.add_argument("--drafter", action="append", default=[])
    args = parser.parse_args()
    if args.model is None:
        pair = Pair(demo.target(), tuple(demo.drafters().values()))
    else:
        pair = Pair(local.resolve(args.model), tuple(local.resolve_drafter(name) for name in args.drafter))
    engine = open_engine(pair)
    profile = watch(engine)
    profile.calibrate()
    print("| milliseconds a round | rounds | " + " | ".join(PARTS) + " | whole | outside |")
    print("|---|" + "---|" * (len(PARTS) + 3))
    for name in args.modes.split(","):
        run(engine, profile, Mode(name), 16)  # kernels, caches of names, the planner's first measurements
        rounds = run(engine, profile, Mode(name), args.max_tokens)
        for kind, seconds in (("wall", profile.wall), ("processor", profile.processor)):
            each = profile.milliseconds(seconds, rounds)
            whole = sum(each.values())
            outside = sum(each[part] for part in PARTS if part not in PASSES)
            cells = " | ".join(f"{each[part]:.2f}" for part in PARTS)
            print(f"| {name}, {kind} | {rounds} | {cells} | {whole:.1f} | {outside:.2f} ({outside / whole:.1%}) |")


if __name__ == "__main__":
    main()
