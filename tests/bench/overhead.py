"""Where a round's time goes: planning, drafting, verifying, waiting for the device, deciding, committing, emitting.

    uv run python tests/bench/overhead.py [--max-tokens 96] [--modes auto,dspark] [--streams 8]

For each part the wall time and the processor time of the decoding thread, in milliseconds a round; parts inside others,
and what taking the time costs, are taken out. Drafting and verifying are what Python needs to describe the passes; the
passes themselves are in "waiting", as MLX computes in threads of its own. What is neither a pass nor its description
is the engine's own work: "outside" sums it up, and a busy machine hardly lengthens its processor time.
"""

from __future__ import annotations

from slipstream.models.backend import prepare

prepare()

import argparse  # noqa: E402 - MLX must find its BLAS first
import queue  # noqa: E402
import time  # noqa: E402
from collections import defaultdict  # noqa: E402
from collections.abc import Callable, Generator, Sequence  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from functools import partial  # noqa: E402
from typing import Any  # noqa: E402

import mlx.core as mx  # noqa: E402

from slipstream.engine import batch  # noqa: E402
from slipstream.engine.answer import Answer  # noqa: E402
from slipstream.engine.decide import Chooser  # noqa: E402
from slipstream.engine.engine import MlxEngine, open_engine  # noqa: E402
from slipstream.engine.pair import Pair  # noqa: E402
from slipstream.engine.policy import Policy  # noqa: E402
from slipstream.engine.round import Decoding, Step, decode_round  # noqa: E402
from slipstream.engine.share import Share  # noqa: E402
from slipstream.errors import SlipstreamError  # noqa: E402
from slipstream.events import Delta, Done, Event, Failed, Report  # noqa: E402
from slipstream.jobs import Inbox, Job  # noqa: E402
from slipstream.models.cache import TargetCache  # noqa: E402
from slipstream.models.target import Target  # noqa: E402
from slipstream.service import start  # noqa: E402
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
        self._counts = True
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
        self._borders[self._stack[-1]] += self._counts
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
        if not self._counts:
            self._at = now
            return
        self.wall[self._stack[-1]] += now[0] - self._at[0]
        self.processor[self._stack[-1]] += now[1] - self._at[1]
        self._at = now

    def reset(self) -> None:
        self.settle()
        self._counts = True
        for each in (self.wall, self.processor, self._borders):
            each.clear()

    def stop(self) -> None:
        """What comes later is not counted, until it is reset."""
        self.settle()
        self._counts = False

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
    profile.wrap(Share, "plan", "lengths", "may_cut", "cut", "learn")
    profile.wrap(Answer, "emit", "take")
    return profile


def count_rounds(rounds: list[int]) -> None:
    """Note how many requests share each round from now on."""

    def counted(target: Target, rows: Sequence[Decoding], share: Share | None = None) -> list[Step | SlipstreamError]:
        rounds.append(len(rows))
        return decode_round(target, rows, share)

    setattr(batch, decode_round.__name__, counted)


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


def run_together(inbox: Inbox, profile: Profile, rounds: list[int], mode: Mode, max_tokens: int, streams: int) -> int:
    """The same of rounds that so many answers share, from when all have begun to when the first one ends."""
    begun: set[int] = set()
    ended: queue.SimpleQueue[int] = queue.SimpleQueue()
    first: list[int] = []  # rounds by the first end

    def hear(event: Event, stream: int) -> None:  # on the decoding thread
        if isinstance(event, Delta) and len(begun) < streams:
            begun.add(stream)
            if len(begun) == streams:
                profile.reset()
                rounds.clear()
        elif isinstance(event, Done | Failed):
            if not first:
                profile.stop()
                first.append(len(rounds))
            ended.put(stream)

    options = Options(max_tokens=max_tokens, mode=mode, ignore_eos=True)
    for stream in range(streams):
        prompt = Chat(({"role": "user", "content": f"{QUESTION} Give {stream + 1} examples."},))
        inbox.put(Job(Request(prompt, options, reuse=False), partial(hear, stream=stream)))
    for _ in range(streams):
        ended.get()
    return max(first[0], 1)


def measured(profile: Profile, title: str, rounds: int) -> None:
    for kind, seconds in (("wall", profile.wall), ("processor", profile.processor)):
        each = profile.milliseconds(seconds, rounds)
        whole = sum(each.values())
        outside = sum(each[part] for part in PARTS if part not in PASSES)
        cells = " | ".join(f"{each[part]:.2f}" for part in PARTS)
        print(
            f"| {title}, {kind} | {rounds} | {cells} | {whole:.1f} | {outside:.2f} ({outside / whole:.1%}) |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--modes", default="dspark,dflash,auto,lookup,baseline")
    parser.add_argument("--model", help="a model's name or folder (default: the built-in pair)")
    parser.add_argument("--drafter", action="append", default=[])
    parser.add_argument("--streams", type=int, default=1, help="answers that share their rounds (%(default)s)")
    args = parser.parse_args()
    if args.model is None:
        pair = Pair(demo.target(), tuple(demo.drafters().values()), max_batch=args.streams)
    else:
        drafters = tuple(local.resolve_drafter(name) for name in args.drafter)
        pair = Pair(local.resolve(args.model), drafters, max_batch=args.streams)
    print("| milliseconds a round | rounds | " + " | ".join(PARTS) + " | whole | outside |")
    print("|---|" + "---|" * (len(PARTS) + 3))
    modes = [Mode(name) for name in args.modes.split(",")]
    if args.streams == 1:
        engine = open_engine(pair)
        profile = watch(engine)
        profile.calibrate()
        for mode in modes:
            run(engine, profile, mode, 16)  # kernels, caches of names, the planner's first measurements
            measured(profile, mode, run(engine, profile, mode, args.max_tokens))
        return
    profiles: queue.SimpleQueue[Profile | BaseException] = queue.SimpleQueue()
    rounds: list[int] = []

    def opened(_: Report) -> MlxEngine:
        try:
            engine = open_engine(pair)
        except BaseException as error:
            profiles.put(error)
            raise
        profile = watch(engine)
        profile.calibrate()
        count_rounds(rounds)
        profiles.put(profile)
        return engine

    inbox = Inbox()
    thread = start(inbox, opened, lambda _: None)
    profile = profiles.get()
    if isinstance(profile, BaseException):
        raise profile
    for mode in modes:
        run_together(inbox, profile, rounds, mode, 32, args.streams)
        shared = run_together(inbox, profile, rounds, mode, args.max_tokens, args.streams)
        measured(profile, f"{args.streams} × {mode}", shared)
    inbox.close()
    thread.join()


if __name__ == "__main__":
    main()
