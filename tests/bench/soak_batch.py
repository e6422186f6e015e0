"""Requests that decode together for many minutes: is each answer the one it gets alone, and is memory flat?

    uv run python tests/bench/soak_batch.py --minutes 30                      # a tiny random model, all options
    uv run python tests/bench/soak_batch.py --minutes 30 --precision 8-bit    # the built-in pair

A pool of random requests is answered one by one first. Then clients draw from it at random, some leave at a random
moment, and each answer is compared with the one from before: exactly, or up to a numeric tie on a GPU or with OpenBLAS.
The exit status is 1 when an answer differs or fails, or memory grows by more than a bound.
"""

from __future__ import annotations

from slipstream.models.backend import prepare

prepare()

import argparse  # noqa: E402 - MLX must find its BLAS first
import random  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from collections import Counter  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from concurrent.futures import Future  # noqa: E402
from dataclasses import dataclass, field, replace  # noqa: E402
from pathlib import Path  # noqa: E402

from make_models import PRECISIONS, make  # noqa: E402

from slipstream.engine.engine import open_engine  # noqa: E402
from slipstream.engine.pair import Pair  # noqa: E402
from slipstream.errors import SlipstreamError  # noqa: E402
from slipstream.events import Delta, Faulted, Finish, Ready, Status  # noqa: E402
from slipstream.jobs import Inbox, Waiting, events_of  # noqa: E402
from slipstream.measure.result import Answer, collect  # noqa: E402
from slipstream.measure.verdict import Verdict, compare, first_difference  # noqa: E402
from slipstream.service import start  # noqa: E402
from slipstream.types import CacheLimits, Grammar, Mode, Options, Request, Tokens  # noqa: E402

POOL = 48
MAX_GROWTH = 0.05
MIB = 2**20
GRAMMAR = Grammar("regex", "[a-d]{5,60}")


@dataclass
class Tally:
    answers: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str, wrong: str | None = None) -> None:
        with self.lock:
            self.answers[what] += 1
            if wrong is not None:
                self.wrong.append(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--max-batch", type=int, default=6)
    parser.add_argument("--kv-bits", type=int, choices=(0, 4, 8), default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--precision", choices=PRECISIONS, help="of the built-in pair, in place of a tiny model")
    parser.add_argument("--models", type=Path, default=Path("build/bench"), help="where it is made (%(default)s)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="slipstream-soak-") as name:
        pair = replace(a_pair(args, Path(name)), kv_bits=args.kv_bits, max_batch=args.max_batch)
        inbox = Inbox(4 * args.clients)
        settled: Future[Status] = Future()

        def note(status: Status) -> None:  # and keep nothing of what comes later: two for each request
            if isinstance(status, Ready | Faulted) and not settled.done():
                settled.set_result(status)

        limits = CacheLimits(16 * MIB, 0, name)
        thread = start(inbox, lambda _: open_engine(pair, limits), note)
        try:
            status = settled.result()
            if not isinstance(status, Ready):
                assert isinstance(status, Faulted)
                raise status.error
            return soak(inbox, status.model.vocabulary, status.model.dtype, args)
        finally:
            inbox.close()
            thread.join()


def a_pair(args: argparse.Namespace, folder: Path) -> Pair:
    if args.precision is not None:
        made = args.models / args.precision
        make(made, args.precision)
        return Pair(made / "target", (made / "dspark",))
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tiny_runs import write_byte_drafter, write_target

    write_target(folder / "target", max_position_embeddings=8192)
    drafters = [write_byte_drafter(folder / mode.value, mode) for mode in (Mode.DSPARK, Mode.DFLASH)]
    return Pair(folder / "target", tuple(drafters))


def a_request(chance: random.Random, vocabulary: int) -> Request:
    """A prompt that repeats itself in part, and any options."""
    piece = [chance.randrange(97, 123) % vocabulary for _ in range(chance.choice((3, 20, 200)))]
    options = Options(
        mode=chance.choice((Mode.AUTO, Mode.AUTO, Mode.DSPARK, Mode.LOOKUP, Mode.BASELINE)),
        temperature=chance.choice((0.0, 0.0, 0.8)),
        top_p=chance.choice((1.0, 0.9)),
        seed=chance.randrange(1000),
        max_tokens=chance.choice((1, 7, 40, 150)),
        stop=chance.choice(((), (), ("e",))),
        ignore_eos=chance.random() < 0.5,
        repetition_penalty=chance.choice((1.0, 1.0, 1.2)),
        grammar=chance.choice((None, None, None, None, GRAMMAR)),
    )
    return Request(Tokens(tuple(piece * chance.choice((1, 2)))), options)


def soak(inbox: Inbox, vocabulary: int, dtype: str, args: argparse.Namespace) -> int:
    chance = random.Random(args.seed)
    pool = [a_request(chance, vocabulary) for _ in range(POOL)]
    alone = [collect(events_of(inbox, replace(request, reuse=False))) for request in pool]
    tally = Tally()
    until = time.monotonic() + args.minutes * 60
    clients = [
        threading.Thread(
            target=client, args=(inbox, pool, alone, dtype, random.Random(f"{args.seed} {n}"), until, tally)
        )
        for n in range(args.clients)
    ]
    for each in clients:
        each.start()
    memory: list[tuple[float, int]] = []
    while any(each.is_alive() for each in clients):
        time.sleep(1)
        memory.append((time.monotonic(), resident_bytes()))
    return report(tally, memory)


def client(
    inbox: Inbox,
    pool: Sequence[Request],
    alone: Sequence[Answer],
    dtype: str,
    chance: random.Random,
    until: float,
    tally: Tally,
) -> None:
    while time.monotonic() < until:
        number = chance.randrange(len(pool))
        leaves = chance.randrange(1, 30) if chance.random() < 0.25 else None
        waiting = Waiting(inbox, pool[number])
        answer, said = Answer(), 0
        try:
            for event in waiting:
                answer.add(event)
                said += isinstance(event, Delta)
                if said == leaves:
                    waiting.job.cancel()
        except SlipstreamError as error:
            tally.count("failed", f"request {number}: {error}")
            continue
        tally.count(*judged(inbox, pool[number], alone[number], answer, dtype, number))


def judged(
    inbox: Inbox, request: Request, own: Answer, answer: Answer, dtype: str, number: int
) -> tuple[str, str | None]:
    is_cut = answer.reason is Finish.CANCELLED
    expected = own.tokens[: len(answer.tokens)] if is_cut else own.tokens
    position = first_difference(expected, answer.tokens)
    if position is None:
        if not is_cut and (answer.text, answer.reason) != (own.text, own.reason):
            return "different", f"request {number}: the ids are the same, text or reason are not"
        return ("left, identical" if is_cut else "identical"), None
    noting = replace(request, reuse=False, options=replace(request.options, margins=True, max_tokens=position + 1))
    margin = collect(events_of(inbox, noting)).margins[position]
    found = compare(expected, answer.tokens, (margin, margin), dtype)
    return found.verdict.value, f"request {number}: {found.sentence}" if found.verdict is Verdict.DIFFERENT else None


def resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # a Mac's, in bytes, of the highest so far


def report(tally: Tally, memory: Sequence[tuple[float, int]]) -> int:
    fifth = max(1, len(memory) // 5)
    before = max(size for _, size in memory[:fifth])
    after = max(size for _, size in memory[-fifth:])
    growth = after / before - 1
    print(f"answers: {dict(tally.answers)}")
    print(
        f"memory: {before / MIB:.0f} MiB in the first fifth, {after / MIB:.0f} MiB in the last ({100 * growth:+.1f} %)"
    )
    for wrong in tally.wrong[:20]:
        print(f"WRONG {wrong}")
    return int(bool(tally.wrong) or growth > MAX_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
