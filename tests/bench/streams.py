"""Several streams at once: tokens per second of all together, plain and speculative, each answer against its run alone.

    uv run python tests/bench/streams.py --precision 8-bit --streams 1,4,8

One process, one loaded pair, greedy; arms take turns and their order moves on with each trial. "Decoding" counts the
tokens that came while every stream was decoding, "whole" all of them over the time from the first question to the last
word, prompts included. The exit status is 1 when an answer differs from its run alone by more than a numeric tie.
"""

from __future__ import annotations

from slipstream.models.backend import prepare

OPENBLAS = prepare()

import argparse  # noqa: E402 - MLX must find its BLAS first
import json  # noqa: E402
import queue  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from dataclasses import asdict, dataclass, field, replace  # noqa: E402
from pathlib import Path  # noqa: E402

import mlx.core as mx  # noqa: E402
from make_models import PRECISIONS, make  # noqa: E402

from slipstream.engine.engine import open_engine  # noqa: E402
from slipstream.engine.load import Precision  # noqa: E402
from slipstream.engine.pair import Pair  # noqa: E402
from slipstream.events import Delta, Done, Event, Failed, Faulted, Ready, Status  # noqa: E402
from slipstream.jobs import Inbox, Job, events_of  # noqa: E402
from slipstream.measure.result import Answer, collect  # noqa: E402
from slipstream.measure.verdict import Verdict, compare, first_difference  # noqa: E402
from slipstream.service import start  # noqa: E402
from slipstream.store import demo  # noqa: E402
from slipstream.types import Chat, Mode, ModelInfo, Options, Prompt, Request, Tokens  # noqa: E402

PROMPTS = Path(__file__).parent / "prompts.jsonl"
PLAIN = Mode.BASELINE


@dataclass(frozen=True, slots=True)
class Arm:
    streams: int
    mode: Mode

    @property
    def name(self) -> str:
        return f"{self.streams} × {'plain' if self.mode is PLAIN else self.mode.value}"


@dataclass(slots=True)
class Trial:
    """What one arm did once."""

    decoding_tps: float
    whole_tps: float
    tokens_per_round: float
    ids: list[list[int]]


@dataclass(slots=True)
class Stream:
    """One answer as it comes, with the time of each piece."""

    answer: Answer = field(default_factory=Answer)
    came: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])  # when, how many tokens


def main() -> int:
    args = parser().parse_args()
    folder: Path = args.models / args.precision
    make(folder, args.precision)
    counts = [int(part) for part in args.streams.split(",")]
    modes = [PLAIN, *(Mode(part) for part in args.modes.split(","))]
    drafters = tuple(path for mode, path in demo.drafters().items() if mode in modes or mode is Mode.DSPARK)
    pair = Pair(
        folder / "target",
        drafters,
        precision=Precision(drafter_bits=args.drafter_bits),
        kv_bits=args.kv_bits,
        max_batch=max(counts),
    )
    inbox = Inbox()
    news: queue.SimpleQueue[Status] = queue.SimpleQueue()
    thread = start(inbox, lambda _: open_engine(pair), news.put)
    try:
        while not isinstance(status := news.get(), Ready):
            if isinstance(status, Faulted):
                raise status.error
        return bench(Bench(inbox, status.model, args), [Arm(count, mode) for count in counts for mode in modes])
    finally:
        inbox.close()
        thread.join()


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--precision", choices=PRECISIONS, default="float32", help="of the target (%(default)s)")
    made.add_argument("--models", type=Path, default=Path("build/bench"), help="where they are made (%(default)s)")
    made.add_argument("--drafter-bits", type=int, choices=(0, 4, 8), help="default: as Slipstream chooses")
    made.add_argument("--kv-bits", type=int, choices=(0, 4, 8), default=0, help="of the KV cache (%(default)s)")
    made.add_argument("--streams", default="1,4,8", help="how many at once, by commas (%(default)s)")
    made.add_argument("--modes", default="auto,dspark", help="who drafts, beside nobody, by commas (%(default)s)")
    made.add_argument("--max-tokens", type=int, default=96, help="of each answer (%(default)s)")
    made.add_argument("--trials", type=int, default=3, help="of each arm (%(default)s)")
    made.add_argument("--seconds", type=float, default=1e9, help="begin no other trial after so long")
    made.add_argument("--warm-up", type=int, default=24, help="tokens of each arm before the first trial (%(default)s)")
    made.add_argument("--out", type=Path, help="a file for all figures, as JSON")
    return made


class Bench:
    def __init__(self, inbox: Inbox, info: ModelInfo, args: argparse.Namespace) -> None:
        self.inbox, self.info, self.args = inbox, info, args
        self.questions = [json.loads(line)["prompt"] for line in PROMPTS.read_text(encoding="utf-8").splitlines()]
        self._alone: dict[int, Answer] = {}  # plain answers, by question

    def request(self, question: int, mode: Mode, max_tokens: int, *, margins: bool = False) -> Request:
        prompt: Prompt = Chat(({"role": "user", "content": self.questions[question % len(self.questions)]},))
        if (known := self._alone.get(question % len(self.questions))) is not None:
            prompt = Tokens(known.prompt_ids)
        return Request(prompt, Options(mode=mode, max_tokens=max_tokens, ignore_eos=True, margins=margins), reuse=False)

    def alone(self, question: int) -> Answer:
        """The plain answer, one stream alone."""
        question %= len(self.questions)
        if question not in self._alone:
            self._alone[question] = collect(events_of(self.inbox, self.request(question, PLAIN, self.args.max_tokens)))
        return self._alone[question]

    def run(self, arm: Arm, max_tokens: int, first: int = 0, *, margins: bool = False) -> tuple[Trial, list[Stream]]:
        """Ask `arm.streams` questions at once, from the `first` on, and hear them to their ends."""
        said: queue.SimpleQueue[tuple[int, float, Event]] = queue.SimpleQueue()
        began = time.perf_counter()
        for stream in range(arm.streams):

            def hear(event: Event, stream: int = stream) -> None:
                said.put((stream, time.perf_counter(), event))

            self.inbox.put(Job(self.request(first + stream, arm.mode, max_tokens, margins=margins), hear))
        streams = [Stream() for _ in range(arm.streams)]
        ended = 0
        now = began
        while ended < arm.streams:
            at, now, event = said.get()
            streams[at].answer.add(event)
            ended += isinstance(event, Done | Failed)
            if isinstance(event, Delta) and event.tokens:
                streams[at].came.append((now, len(event.tokens)))
        tokens = sum(len(stream.answer.tokens) for stream in streams)
        rounds = sum(len(stream.answer.rounds) for stream in streams)
        trial = Trial(
            decoding_tps=together(streams),
            whole_tps=tokens / (now - began),
            tokens_per_round=(tokens - arm.streams) / max(rounds, 1),
            ids=[stream.answer.tokens for stream in streams],
        )
        return trial, streams


def together(streams: Sequence[Stream]) -> float:
    """Tokens a second between the moment the last stream began and the moment the first one ended."""
    began = max(stream.came[0][0] for stream in streams)
    ended = min(stream.came[-1][0] for stream in streams)
    counted = sum(count for stream in streams for when, count in stream.came if began < when <= ended)
    return counted / (ended - began) if ended > began else 0.0


def bench(made: Bench, arms: Sequence[Arm]) -> int:
    args = made.args
    ends = time.monotonic() + args.seconds
    most = max(arm.streams for arm in arms)
    for arm in arms:  # kernels are compiled, and costs of rounds are learned
        made.run(arm, args.warm_up)
        print(f"warmed up {arm.name}", file=sys.stderr, flush=True)
    trials: dict[Arm, list[Trial]] = {arm: [] for arm in arms}
    for number in range(args.trials):
        for turn in range(len(arms)):
            arm = arms[(turn + number) % len(arms)]
            if time.monotonic() > ends:
                break
            trials[arm].append(made.run(arm, args.max_tokens)[0])
            print(f"{arm.name}: {trials[arm][-1].decoding_tps:.1f} tok/s", file=sys.stderr, flush=True)
    verdicts = {arm: judged(made, arm, done) for arm, done in trials.items() if done}
    print(table(trials, verdicts))
    stamp = f"{made.info.dtype}, {made.info.quantisation}, {mx.default_device()}, {OPENBLAS or 'no OpenBLAS'}"
    print(f"\n{args.max_tokens} tokens of {most} questions; {stamp}")
    if args.out is not None:
        figures = {arm.name: [asdict(trial) for trial in done] for arm, done in trials.items()}
        args.out.write_text(json.dumps({"arms": figures, "verdicts": {a.name: v for a, v in verdicts.items()}}))
    return int(any(verdict.get(Verdict.DIFFERENT.value) for verdict in verdicts.values()))


def judged(made: Bench, arm: Arm, done: Sequence[Trial]) -> dict[str, int]:
    """How many answers of all trials were what they are alone. Where one parts, both are repeated with margins."""
    counts: dict[str, int] = {}
    for trial in done:
        for question, ids in enumerate(trial.ids):
            own = made.alone(question).tokens
            position = first_difference(own, ids)
            if position is None:
                verdict = Verdict.IDENTICAL
            else:
                most = made.args.max_tokens
                noted = collect(events_of(made.inbox, made.request(question, PLAIN, most, margins=True)))
                _, streams = made.run(arm, most, margins=True)
                margins = noted.margins[position], streams[question].answer.margins[position]
                found = compare(own, ids, margins, made.info.dtype)
                print(f"{arm.name}, question {question}: {found.sentence}", file=sys.stderr)
                verdict = found.verdict
            counts[verdict.value] = counts.get(verdict.value, 0) + 1
    return counts


def table(trials: dict[Arm, list[Trial]], verdicts: dict[Arm, dict[str, int]]) -> str:
    lines = ["| streams | decoding, tok/s | × 1 plain | × plain | whole, tok/s | per round | answers |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | --- |")

    def median(arm: Arm) -> float:
        return statistics.median(trial.decoding_tps for trial in trials[arm]) if trials.get(arm) else 0.0

    one = median(Arm(1, PLAIN))
    for arm, done in trials.items():
        if not done:
            continue
        speed, plain = median(arm), median(replace(arm, mode=PLAIN))
        spread = f"{min(t.decoding_tps for t in done):.1f}–{max(t.decoding_tps for t in done):.1f}"
        whole = statistics.median(trial.whole_tps for trial in done)
        rounds = statistics.median(trial.tokens_per_round for trial in done)
        words = ", ".join(f"{count} {verdict}" for verdict, count in verdicts[arm].items())
        ratios = [f"{speed / by:.2f}" if by else "–" for by in (one, plain)]
        cells = [arm.name, f"{speed:.1f} ({spread})", *ratios, f"{whole:.1f}", f"{rounds:.2f}", words]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
