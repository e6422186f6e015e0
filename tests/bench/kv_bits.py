"""Do packed keys and values make drafts worse? Tokens per round with and without, behind long contexts.

    uv run python tests/bench/kv_bits.py [--kv-bits 8] [--context 2048] [--texts 2] [--max-tokens 48]

Each text is a stretch of this repository's own documents, read once, with a few questions about it; DSpark drafts,
greedily. The same loaded pair answers each question twice, in turn. The exit status is 1 when packing costs more than
3 % of the tokens per round.
"""

from __future__ import annotations

from slipstream.models.backend import prepare

prepare()

import argparse  # noqa: E402 - MLX must find its BLAS first
import sys  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from pathlib import Path  # noqa: E402

from slipstream.engine.engine import MlxEngine, Pair, open_engine  # noqa: E402
from slipstream.engine.kept import MlxArrays  # noqa: E402
from slipstream.events import Finish  # noqa: E402
from slipstream.jobs import Job  # noqa: E402
from slipstream.measure.result import collect  # noqa: E402
from slipstream.measure.verdict import first_difference  # noqa: E402
from slipstream.store import demo, local  # noqa: E402
from slipstream.store.reuse import PromptCache  # noqa: E402
from slipstream.types import Chat, Mode, Options, Request  # noqa: E402

ROOT = Path(__file__).parents[2]
MOST_LOST = 0.03
TASKS = (
    "Write a Python function that does one thing of what the text says.",
    "Say in three sentences what the text is about.",
    "Which numbers are in the text? List each with what it means.",
)


@dataclass
class Total:
    tokens: int = 0
    rounds: int = 0

    @property
    def per_round(self) -> float:
        return self.tokens / self.rounds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kv-bits", type=int, choices=(4, 8), default=8)
    parser.add_argument("--context", type=int, default=2048, help="tokens of text before the question (%(default)s)")
    parser.add_argument("--texts", type=int, default=2, help=f"each with {len(TASKS)} questions (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--model", help="a model's name or folder (default: the built-in pair)")
    parser.add_argument("--drafter", help="its DSpark drafter")
    args = parser.parse_args()
    if args.model is None:
        pair = Pair(demo.target(), (demo.drafters()[Mode.DSPARK],))
    else:
        pair = Pair(local.resolve(args.model), (local.resolve_drafter(args.drafter),))
    loaded = open_engine(pair)
    plain, packed = (
        MlxEngine(
            loaded.target,
            loaded.drafters,
            loaded.tokeniser,
            loaded.info,
            kv_bits=bits,
            prompts=PromptCache(MlxArrays(), 2**32),
        )
        for bits in (0, args.kv_bits)
    )
    totals = {0: Total(), args.kv_bits: Total()}
    print(f"| question | same tokens | tokens per round, {plain.info.dtype} | {args.kv_bits} bits |\n|---|---|---|---|")
    for number, question in enumerate(questions(plain, args.context, args.texts), 1):
        answers: list[tuple[int, ...]] = []
        cells: list[str] = []
        for bits, engine in ((0, plain), (args.kv_bits, packed)):
            tokens, rounds = answer(engine, question, args.max_tokens)
            answers.append(tokens)
            totals[bits].tokens += len(tokens) - 1  # the first is the prefill's
            totals[bits].rounds += rounds
            cells.append(f"{(len(tokens) - 1) / rounds:.2f}")
        same = first_difference(*answers)
        print(f"| {number} | {args.max_tokens if same is None else same} | {' | '.join(cells)} |", flush=True)
    whole, cut = totals[0].per_round, totals[args.kv_bits].per_round
    print(f"tokens per round: {whole:.3f}, with {args.kv_bits} bits {cut:.3f} ({cut / whole - 1:+.1%})")
    return int(cut < (1 - MOST_LOST) * whole)


def questions(engine: MlxEngine, context: int, count: int) -> Iterator[Chat]:
    """Stretches of the documents, one behind the other, from the beginning again once they are used up."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "docs").glob("*.md")))
    ids = engine.tokeniser.huggingface.encode(text)
    for number in range(count):
        start = number * context % max(1, len(ids) - context)
        stretch = engine.tokeniser.decode(ids[start : start + context])
        for task in TASKS:
            yield Chat(({"role": "user", "content": f"{stretch}\n\n{task}"},))


def answer(engine: MlxEngine, question: Chat, max_tokens: int) -> tuple[tuple[int, ...], int]:
    """Tokens and rounds."""
    options = Options(max_tokens=max_tokens, mode=Mode.DSPARK, ignore_eos=True)
    found = collect(engine.run(Job(Request(question, options), lambda _: None)))
    assert found.reason is Finish.LENGTH
    return tuple(found.tokens), len(found.rounds)


if __name__ == "__main__":
    sys.exit(main())
