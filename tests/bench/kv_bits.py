"""What packed keys and values cost and save: tokens per round and the cache's memory, behind long contexts.

    uv run python tests/bench/kv_bits.py [--kv-bits 8 4] [--context 2048] [--texts 2] [--max-tokens 48]
    uv run python tests/bench/kv_bits.py --kv-bits 8 4 --context 16384 --stretch --texts 1     # some twenty minutes

Each text is a stretch of this repository's own documents, read once by each kind of cache, with a few questions about
it; DSpark drafts, greedily. `--stretch` goes beyond the context that the model declares. A processor computes in
float32 what a GPU does in bfloat16, so the memory in both is told. The exit status is 1 when packing in 8 bits costs
more than 3 % of the tokens per round, or needs more than 55 % of bfloat16's memory.
"""

from __future__ import annotations

from slipstream.models.backend import prepare

prepare()

import argparse  # noqa: E402 - MLX must find its BLAS first
import statistics  # noqa: E402
import sys  # noqa: E402
from collections.abc import Iterator, Mapping, Sequence  # noqa: E402
from dataclasses import dataclass, field, replace  # noqa: E402
from pathlib import Path  # noqa: E402

import mlx.core as mx  # noqa: E402
from cpu_attention import install  # noqa: E402

from slipstream.engine.engine import MlxEngine, open_engine  # noqa: E402
from slipstream.engine.kept import MlxArrays  # noqa: E402
from slipstream.engine.load import Precision, load_target, on_gpu  # noqa: E402
from slipstream.engine.pair import Pair  # noqa: E402
from slipstream.events import Finish  # noqa: E402
from slipstream.jobs import Job  # noqa: E402
from slipstream.measure.result import collect  # noqa: E402
from slipstream.measure.verdict import first_difference  # noqa: E402
from slipstream.models import kept  # noqa: E402
from slipstream.models.target import Target  # noqa: E402
from slipstream.models.tokeniser import Tokeniser  # noqa: E402
from slipstream.store import demo, local  # noqa: E402
from slipstream.store.reuse import PromptCache  # noqa: E402
from slipstream.types import Chat, Mode, Options, Request  # noqa: E402

ROOT = Path(__file__).parents[2]
JUDGED = 8  # bits that the two bounds are for
MOST_LOST = 0.03
MOST_MEMORY = 0.55
CPU_CHUNK = 256  # tokens of a prompt to read at once on a processor
ROOM = 256  # tokens of the template and a question
TASKS = (
    "Write a Python function that does one thing of what the text says.",
    "Say in three sentences what the text is about.",
    "Which numbers are in the text? List each with what it means.",
)


@dataclass
class Total:
    """What one kind of cache gave, by question."""

    answers: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    rounds: list[list[int]] = field(default_factory=list[list[int]])  # tokens of each

    def add(self, tokens: tuple[int, ...], rounds: list[int]) -> None:
        self.answers.append(tokens)
        self.rounds.append(rounds)

    @property
    def per_round(self) -> float:
        return statistics.fmean(self._all)

    @property
    def error(self) -> float:
        """Standard error of it, were rounds independent."""
        return statistics.stdev(self._all) / len(self._all) ** 0.5

    @property
    def _all(self) -> list[int]:
        return [tokens for rounds in self.rounds for tokens in rounds]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kv-bits", type=int, nargs="+", choices=(4, 8), default=[8])
    parser.add_argument("--context", type=int, default=2048, help="tokens of text before the question (%(default)s)")
    parser.add_argument("--stretch", action="store_true", help="also beyond the context that the model declares")
    parser.add_argument("--texts", type=int, default=2)
    parser.add_argument("--questions", type=int, default=len(TASKS), help="about each text (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--model", help="a model's name or folder (default: the built-in pair)")
    parser.add_argument("--drafter", help="its DSpark drafter")
    args = parser.parse_args()
    if args.model is None:
        pair = Pair(demo.target(), (demo.drafters()[Mode.DSPARK],))
    else:
        pair = Pair(local.resolve(args.model), (local.resolve_drafter(args.drafter),))
    loaded = open_engine(pair)
    info, needed = loaded.info, args.context + ROOM + args.max_tokens
    if needed > info.context:
        if not args.stretch:
            parser.error(f"{info.name} declares {info.context} tokens, and this needs {needed}; add --stretch")
        print(
            f"{info.name} declares {info.context} tokens, and these prompts have some {args.context}: it was never "
            "trained for that, so only the differences between the kinds of cache count.\n"
        )
        # Both networks turn by the position alone, without a table that would end; this limit is all there is.
        loaded.target.context = needed
        info = replace(info, context=needed)
    asked = list(questions(loaded.tokeniser, args.context, args.texts, TASKS[: args.questions]))
    kinds = (0, *args.kv_bits)
    memory = bytes_by_kind(loaded.target, kinds, args.context)
    halves = bytes_by_kind(load_target(pair.target, Precision("bfloat16")), kinds, args.context)
    if not on_gpu():
        install()
    print("| cache | tokens per round | of each question | first that differs | MB | share | in bfloat16 | share |")
    print("|---" * 8 + "|", flush=True)
    plain, is_good = Total(), True
    for bits in kinds:
        engine = MlxEngine(
            loaded.target,
            loaded.drafters,
            loaded.tokeniser,
            info,
            kv_bits=bits,
            chunk=None if on_gpu() else CPU_CHUNK,
            prompts=PromptCache(MlxArrays(), 2**32),
        )
        found = Total()
        for question in asked:
            found.add(*answer(engine, question, args.max_tokens))
        if not bits:
            plain = found
        parted = (first_difference(*both) for both in zip(plain.answers, found.answers, strict=True))
        cells = (
            f"{bits} bits" if bits else info.dtype,
            f"{found.per_round:.3f} ± {found.error:.2f} ({found.per_round / plain.per_round - 1:+.1%})",
            " ".join(f"{statistics.fmean(rounds):.2f}" for rounds in found.rounds),
            " ".join("none" if at is None else str(at) for at in parted),
            *sizes(memory, bits),
            *sizes(halves, bits),
        )
        print(f"| {' | '.join(cells)} |", flush=True)
        if bits == JUDGED:
            is_good = found.per_round >= (1 - MOST_LOST) * plain.per_round and halves[bits] <= MOST_MEMORY * halves[0]
    return 0 if is_good else 1


def sizes(taken: Mapping[int, int], bits: int) -> tuple[str, str]:
    """Megabytes, and the share of what plain keys and values take."""
    return f"{taken[bits] / 1e6:,.1f}", f"{taken[bits] / taken[0]:.1%}"


def bytes_by_kind(target: Target, kinds: Sequence[int], context: int) -> dict[int, int]:
    """What the target's cache of so many tokens takes, by bits. The arrays are made; their numbers mean nothing."""
    found: dict[int, int] = {}
    for bits in kinds:
        short, long = target.make_cache(bits), target.make_cache(bits)
        target.forward(mx.arange(32, dtype=mx.int32), short, rows=0)
        kept.stretch(long, short, context)
        found[bits] = long.bytes
    return found


def questions(tokeniser: Tokeniser, context: int, count: int, tasks: Sequence[str]) -> Iterator[Chat]:
    """Stretches of the documents, one behind the other, from the beginning again once they are used up."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "docs").glob("*.md")))
    ids = tokeniser.huggingface.encode(text)
    if len(ids) < context:
        raise SystemExit(f"the documents have {len(ids)} tokens; choose a shorter --context")
    for number in range(count):
        start = number * context % max(1, len(ids) - context)
        stretch = tokeniser.decode(ids[start : start + context])
        for task in tasks:
            yield Chat(({"role": "user", "content": f"{stretch}\n\n{task}"},))


def answer(engine: MlxEngine, question: Chat, max_tokens: int) -> tuple[tuple[int, ...], list[int]]:
    """Tokens, and how many each round brought; the first token is the prefill's."""
    options = Options(max_tokens=max_tokens, mode=Mode.DSPARK, ignore_eos=True)
    found = collect(engine.run(Job(Request(question, options), lambda _: None)))
    assert found.reason is Finish.LENGTH
    return tuple(found.tokens), [each.accepted + 1 for each in found.rounds]


if __name__ == "__main__":
    sys.exit(main())
