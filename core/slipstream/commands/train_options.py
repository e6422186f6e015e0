"""The options of `slipstream train`."""

from __future__ import annotations

import argparse
from pathlib import Path

from slipstream.errors import InvalidRequest

ONE_OR_MORE = (
    *("conversations", "answer", "width", "shard", "layers", "proposals", "steps", "texts", "anchors", "longest"),
    *("rows", "every"),
)
NONE_OR_MORE = ("judge_most", "rank", "warmup", "draft_vocabulary", "mask_id", "rate", "ce", "l1", "save_seconds")
MORE_THAN_NONE = ("minutes", "data_minutes", "decay")
MOST_SEED = 2**32 - 1
SHARES = ("invented", "ema")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help="folder, GGUF file or Hugging Face name (default: the built-in model)")
    parser.add_argument("--output", type=Path, help="the drafter's folder (default: beside its working files)")
    parser.add_argument("--work", type=Path, help="folder of conversations and checkpoints (default: in the cache)")
    parser.add_argument("--run", type=Path, dest="checkpoints", help="folder of checkpoints (default: in --work)")
    parser.add_argument("--plan", action="store_true", help="only say what it takes and is likely to bring")
    parser.add_argument("--anyway", action="store_true", help="also where the gain is expected to be small")
    parser.add_argument("--only", choices=("write", "fit"), help="one half of the work: conversations, or training")
    parser.add_argument(
        "--evaluate",
        metavar="DRAFTER",
        help="train nothing: answer --judge-by's questions with this drafter, with lookup and plainly, and compare",
    )
    _add_conversations(parser.add_argument_group("conversations"))
    _add_drafter(parser.add_argument_group("drafter"))
    _add_steps(parser.add_argument_group("training"))
    _add_precision(parser)
    parser.add_argument(
        "--picture",
        type=Path,
        help="draw the course into this .svg file (default: progress.svg beside the checkpoints)",
    )
    parser.add_argument("--log", type=Path, help="append what is said to this file, as JSON lines")


def _add_conversations(data: argparse._ArgumentGroup) -> None:
    data.add_argument("--prompts", type=Path, help='questions as JSON lines with "prompt" (default: a neutral set)')
    data.add_argument("--conversations", type=int, default=8192, help="about so many (%(default)s)")
    data.add_argument("--answer", type=int, default=320, help="tokens of an answer at most (%(default)s)")
    data.add_argument("--invented", type=float, default=0.5, help="share of questions that the model invents")
    data.add_argument("--width", type=int, default=64, help="texts written at once (%(default)s)")
    data.add_argument(
        "--shard",
        type=int,
        help="conversations in a file, after each of which it can stop (about a minute's, at most 512)",
    )
    data.add_argument("--data-minutes", type=float, help="stop writing after so long")
    data.add_argument("--part", default="0/1", help="write every nth file: 0/2 and 1/2 on two devices (%(default)s)")


def _add_drafter(fit: argparse._ArgumentGroup) -> None:
    fit.add_argument("--from", dest="start", help="go on from this drafter: folder or name; its own shape is kept")
    fit.add_argument("--refresh", help="go on from this drafter with your own answers; kept only if it gets better")
    fit.add_argument(
        "--answers", type=Path, action="append", default=[], help="files of generate --json, or a folder of them"
    )
    fit.add_argument("--kind", choices=("dspark", "dflash"), default="dspark")
    fit.add_argument("--layers", type=int, help="of the drafter (default: what is expected to gain most)")
    fit.add_argument("--taps", help="layers of the model that it reads, such as 1,7,14 (default: five, spread)")
    fit.add_argument("--proposals", type=int, help="tokens drafted a round (default: what is expected to gain most)")
    fit.add_argument(
        "--draft-vocabulary", type=int, default=0, help="propose only so many tokens, those said most (0: all of them)"
    )
    fit.add_argument("--rank", type=int, help="of the Markov head (default: by the size of the model)")
    fit.add_argument("--markov", choices=("vanilla", "gated", "rnn"), default="vanilla")
    fit.add_argument("--mask-id", type=int, help="token that fills the slots to be drafted")


def _add_steps(steps: argparse._ArgumentGroup) -> None:
    steps.add_argument("--minutes", type=float, help="train so long (default: twice over the conversations)")
    steps.add_argument("--steps", type=int, help="train so many steps")
    steps.add_argument("--texts", type=int, default=8, help="conversations of a step (%(default)s)")
    steps.add_argument("--anchors", type=int, default=64, help="places in each that a block begins at (%(default)s)")
    steps.add_argument("--longest", type=int, default=640, help="tokens of a conversation that are used (%(default)s)")
    steps.add_argument("--rate", type=float, help="learning rate (0.001; with --refresh 0.0003)")
    steps.add_argument("--warmup", type=int, help="steps until it is reached (200, or a tenth of --steps if fewer)")
    steps.add_argument("--optimiser", choices=("adamw", "muon"), default="adamw")
    steps.add_argument("--ema", type=float, default=0.998, help="of the averaged weights (%(default)s)")
    steps.add_argument("--decay", type=float, help="later drafts weigh less by it (default: by their number)")
    steps.add_argument("--ce", type=float, default=0.1, help="weight of the cross entropy (%(default)s)")
    steps.add_argument("--l1", type=float, default=0.9, help="weight of the distance of distributions (%(default)s)")
    steps.add_argument("--seed", type=int, default=0)
    steps.add_argument("--rows", type=int, default=2048, help="drafts compared with the vocabulary at once")
    steps.add_argument("--every", type=int, default=20, help="say something every so many steps (%(default)s)")
    steps.add_argument("--save-seconds", type=float, default=60, help="between checkpoints (%(default)s)")
    steps.add_argument("--judge-by", type=Path, help="questions that are never trained on, to judge it by at the end")
    steps.add_argument("--judge-most", type=int, default=1000, help="use so many of them (%(default)s)")


def _add_precision(parser: argparse.ArgumentParser) -> None:
    machine = parser.add_argument_group("precision")
    kinds = ("float32", "bfloat16", "float16")
    machine.add_argument("--dtype", choices=kinds, help="what the model computes in")
    machine.add_argument("--network-dtype", choices=kinds, help="what the drafter computes in while it learns")


def check(args: argparse.Namespace) -> None:
    """Raises InvalidRequest for a number that nothing could be made with."""
    ranges = (
        (ONE_OR_MORE, 1.0, float("inf"), "1 or more"),
        (NONE_OR_MORE, 0.0, float("inf"), "0 or more"),
        (MORE_THAN_NONE, 1e-9, float("inf"), "more than 0"),
        (SHARES, 0.0, 1.0, "from 0 to 1"),
    )
    for names, least, most, words in ranges:
        for name in names:
            value: float | None = getattr(args, name)
            if value is not None and (not least <= value <= most or value == float("inf")):
                raise InvalidRequest(f"--{name.replace('_', '-')} must be {words}, not {value}", option=name)
    if not 0 <= args.seed <= MOST_SEED:
        raise InvalidRequest(f"--seed must be from 0 to {MOST_SEED}, not {args.seed}", option="seed")
    if args.evaluate and args.judge_most < 1:
        raise InvalidRequest("--judge-most must be 1 or more with --evaluate", option="judge_most")


def taps_of(text: str | None) -> tuple[int, ...]:
    """Layers, ascending. Raises InvalidRequest."""
    try:
        taps = tuple(int(tap) for tap in text.split(",")) if text else ()
    except ValueError as error:
        raise InvalidRequest(f"--taps must be layers such as 1,7,14, not {text!r}", option="taps") from error
    if list(taps) != sorted(set(taps)):
        raise InvalidRequest(f"--taps must go upwards, unlike {text!r}", option="taps")
    return taps
