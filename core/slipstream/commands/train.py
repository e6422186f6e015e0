"""`slipstream train`: makes a drafter for a model, on this machine, from nothing but the model."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstream.errors import InvalidRequest, SlipstreamError
from slipstream.store import demo, local, paths

if TYPE_CHECKING:
    import mlx.core as mx

    from slipstream.train.corpus import Conversation
    from slipstream.train.job import Maker, Plan, Report
    from slipstream.train.loop import Control
    from slipstream.train.picture import Picture
    from slipstream.train.planning import Estimate

DRAW_SECONDS = 2.0  # between two pictures


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("train", help="make a drafter for a model")
    add_arguments(parser)
    parser.set_defaults(run=run)


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
    data = parser.add_argument_group("conversations")
    data.add_argument("--prompts", type=Path, help='questions as JSON lines with "prompt" (default: a neutral set)')
    data.add_argument("--conversations", type=int, default=8192, help="about so many (%(default)s)")
    data.add_argument("--answer", type=int, default=320, help="tokens of an answer at most (%(default)s)")
    data.add_argument("--invented", type=float, default=0.6, help="share of questions that the model invents")
    data.add_argument("--width", type=int, default=64, help="texts written at once (%(default)s)")
    data.add_argument("--shard", type=int, default=512, help="conversations in a file (%(default)s)")
    data.add_argument("--data-minutes", type=float, help="stop writing after so long")
    data.add_argument("--part", default="0/1", help="write every nth file: 0/2 and 1/2 on two devices (%(default)s)")
    fit = parser.add_argument_group("drafter")
    fit.add_argument("--from", dest="start", help="go on from this drafter: folder or name; its own shape is kept")
    fit.add_argument("--refresh", help="go on from this drafter with your own answers; kept only if it gets better")
    fit.add_argument(
        "--answers", type=Path, action="append", default=[], help="files of generate --json, or a folder of them"
    )
    fit.add_argument("--kind", choices=("dspark", "dflash"), default="dspark")
    fit.add_argument("--layers", type=int, help="of the drafter (default: what is expected to gain most)")
    fit.add_argument("--taps", help="layers of the model that it reads, such as 1,7,14 (default: five, spread)")
    fit.add_argument("--proposals", type=int, help="tokens drafted a round (7; with --from: as that drafter has it)")
    fit.add_argument(
        "--draft-vocabulary", type=int, default=0, help="propose only so many tokens, those said most (0: all of them)"
    )
    fit.add_argument("--rank", type=int, help="of the Markov head (default: by the size of the model)")
    fit.add_argument("--markov", choices=("vanilla", "gated", "rnn"), default="vanilla")
    fit.add_argument("--mask-id", type=int, help="token that fills the slots to be drafted")
    steps = parser.add_argument_group("training")
    steps.add_argument("--minutes", type=float, help="train so long (default: twice over the conversations)")
    steps.add_argument("--steps", type=int, help="train so many steps")
    steps.add_argument("--texts", type=int, default=8, help="conversations of a step (%(default)s)")
    steps.add_argument("--anchors", type=int, default=64, help="places in each that a block begins at (%(default)s)")
    steps.add_argument("--longest", type=int, default=640, help="tokens of a conversation that are used (%(default)s)")
    steps.add_argument("--rate", type=float, default=1e-3, help="learning rate (%(default)s)")
    steps.add_argument("--warmup", type=int, default=200, help="steps until it is reached (%(default)s)")
    steps.add_argument("--optimiser", choices=("adamw", "muon"), default="adamw")
    steps.add_argument("--ema", type=float, default=0.998, help="of the averaged weights (%(default)s)")
    steps.add_argument("--decay", type=float, default=4.0, help="later drafts weigh less by it (%(default)s)")
    steps.add_argument("--ce", type=float, default=0.1, help="weight of the cross entropy (%(default)s)")
    steps.add_argument("--l1", type=float, default=0.9, help="weight of the distance of distributions (%(default)s)")
    steps.add_argument("--seed", type=int, default=0)
    steps.add_argument("--rows", type=int, default=2048, help="drafts compared with the vocabulary at once")
    steps.add_argument("--every", type=int, default=20, help="say something every so many steps (%(default)s)")
    steps.add_argument("--save-seconds", type=float, default=60, help="between checkpoints (%(default)s)")
    steps.add_argument("--judge-by", type=Path, help="questions that are never trained on, to judge it by at the end")
    steps.add_argument("--judge-most", type=int, default=1000, help="use so many of them (%(default)s)")
    _add_precision(parser)
    parser.add_argument(
        "--picture", type=Path, help="draw the course into this .svg file (default: progress.svg beside the checkpoints)"
    )
    parser.add_argument("--log", type=Path, help="append what is said to this file, as JSON lines")


def _add_precision(parser: argparse.ArgumentParser) -> None:
    machine = parser.add_argument_group("precision")
    kinds = ("float32", "bfloat16", "float16")
    machine.add_argument("--dtype", choices=kinds, help="what the model computes in")
    machine.add_argument("--network-dtype", choices=kinds, help="what the drafter computes in while it learns")


def run(args: argparse.Namespace) -> int:
    if args.evaluate:
        return _evaluate(args)
    # Products in float32 may lose digits that training does not need; plain decoding never does this.
    os.environ["MLX_ENABLE_TF32"] = "1"
    if bool(args.refresh) != bool(args.answers):
        raise InvalidRequest("--refresh DRAFTER and --answers FILE belong together", option="refresh")
    if args.refresh:
        args.start, args.anyway = args.refresh, True
    group = _group()
    maker, plan, start = _open(args, group)
    if plan is None:
        return 0
    import mlx.core as mx

    from slipstream.train.loop import NEW, Control
    from slipstream.train.picture import Picture
    from slipstream.train.questions import bundled_prompts, read_prompts
    from slipstream.train.used import read_answers

    picture = Picture(args.picture or plan.run / "progress.svg", f"{maker.name}, {plan.recipe.design.kind}")
    control = Control()
    is_first = group is None or group.rank() == 0
    say = _Teller(args.log, picture) if is_first else lambda _: None
    with _listening(control):
        used: list[Conversation] = []
        if args.refresh:
            used = read_answers(args.answers, maker.shape.vocabulary)
        elif args.only != "fit":
            given = read_prompts(args.prompts) if args.prompts else bundled_prompts()
            part, parts = _part(args.part) if group is None else (group.rank(), group.size())
            maker.write(plan, given, say, control, part, parts)
            if group is not None:  # all conversations are there before any process reads them
                mx.eval(mx.distributed.all_sum(mx.zeros(1), group=group))
        if args.only == "write":
            return 0
        if is_first:
            print(f"picture of the course: {picture.path}", flush=True)
        found = maker.fit(plan, say, control, start=start, begins_from=args.start or NEW, used=used, group=group)
    if not is_first:
        return 0
    picture.write()
    if found is not None:
        worth = f"{found[1].per_round:.2f} tokens per round on held-out conversations"
        print(f"{plan.output}: {worth if found[1].rounds else 'too few conversations to hold any out'}")
    elif control.is_stopped:
        print("stopped; the same command goes on from here")
    else:
        print("held-out answers got no better, so nothing was written; the drafter stays as it was")
    return 0


def _evaluate(args: argparse.Namespace) -> int:
    """Tokens per round and per second by kind of question, greedy and at temperature 1."""
    from slipstream.engine.load import Precision, load_drafter, load_target
    from slipstream.models.tokeniser import Tokeniser
    from slipstream.train.evaluate import evaluate, summed
    from slipstream.train.questions import bundled_prompts, read_prompts
    from slipstream.types import Mode

    folder = demo.target() if args.model is None else local.resolve(args.model)
    precision = Precision(dtype=args.dtype)
    target, tokeniser = load_target(folder, precision), Tokeniser(folder)
    drafter = load_drafter(local.resolve_drafter(args.evaluate), target, precision)
    given = (read_prompts(args.judge_by) if args.judge_by else bundled_prompts())[: args.judge_most]
    modes = (Mode.BASELINE, Mode.LOOKUP, drafter.mode)
    uses = evaluate(target, tokeniser, {drafter.mode: drafter}, given, modes=modes, answer=args.answer)
    print(f"{len(given)} questions, answers of at most {args.answer} tokens")
    for use in summed(uses):
        print(
            f"{use.kind:<14} temperature {use.temperature:<3g} {use.mode.value:<9} "
            f"{use.per_round:5.2f} tokens per round {use.per_second:8.1f} tok/s"
        )
    return 0


def _group() -> Any:
    """The processes that `mlx.launch` started together; None: there is just this one. Any: MLX's own."""
    if "MLX_RANK" not in os.environ:
        return None
    import mlx.core as mx

    group = mx.distributed.init()
    return group if group.size() > 1 else None


@contextmanager
def _listening(control: Control) -> Generator[None]:
    """Ctrl-C and SIGTERM stop after the step that is being made, a second one at once; see `train/process.py`."""
    from slipstream.train.process import PAUSE, RESUME

    def stop(number: int, _: object) -> None:
        control.stop()
        signal.signal(number, signal.default_int_handler)

    heard: dict[int, Any] = {
        signal.SIGINT: stop,
        signal.SIGTERM: stop,
        PAUSE: lambda *_: control.pause(),
        RESUME: lambda *_: control.resume(),
    }
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in heard.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _open(args: argparse.Namespace, group: Any) -> tuple[Maker, Plan | None, dict[str, mx.array] | None]:
    """What makes it, what is to be made, and the weights to go on from. No plan: it was only to be said."""
    import mlx.core as mx

    from slipstream.drafters import formats
    from slipstream.engine.load import DTYPES, Precision, load_target, on_gpu
    from slipstream.models.tokeniser import Tokeniser
    from slipstream.train import step
    from slipstream.train.design import Design, check, of_descriptor
    from slipstream.train.job import Maker, Plan
    from slipstream.train.loop import Recipe
    from slipstream.train.planning import PROPOSALS
    from slipstream.train.questions import read_prompts
    from slipstream.train.writing import Amount

    folder = demo.target() if args.model is None else local.resolve(args.model)
    name = demo.NAME if args.model is None else Path(args.model).name
    target = load_target(folder, Precision(dtype=args.dtype, unpack=True))
    tokeniser = Tokeniser(folder)
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    maker = Maker(target, tokeniser, config, name)
    expected = _expected(args, maker, config, group)
    if args.plan:
        return maker, None, None
    work = args.work or paths.cache_dir() / "train" / name
    label = f"{name}-{'DSpark' if args.kind == 'dspark' else 'DFlash'}"
    taps = _taps(args.taps)
    design = Design(
        kind=args.kind,
        layers=args.layers or expected.layers,
        taps=taps,
        proposals=args.proposals or PROPOSALS,
        rank=expected.rank if args.rank is None else args.rank,
        markov=args.markov,
        mask_id=_mask_id(tokeniser) if args.mask_id is None else args.mask_id,
        draft_vocabulary=args.draft_vocabulary,
    )
    check(design, maker.shape)
    start = None
    if args.start:
        checkpoint = formats.read(local.resolve_drafter(args.start))
        design = of_descriptor(checkpoint.descriptor, maker.shape, args.start)
        if args.proposals:  # no weight depends on it
            design = replace(design, proposals=args.proposals)
        start = {
            name: value.astype(mx.float32) if mx.issubdtype(value.dtype, mx.floating) else value
            for name, value in checkpoint.weights.items()
        }
    recipe = Recipe(
        design=design,
        texts=args.texts,
        anchors=args.anchors,
        longest=args.longest,
        rate=args.rate,
        warmup=args.warmup,
        optimiser=args.optimiser,
        ema=args.ema,
        decay=args.decay,
        ce=args.ce,
        l1=args.l1,
        steps=args.steps,
        seconds=(None if args.steps else expected.training_s) if args.minutes is None else 60 * args.minutes,
        seed=args.seed,
    )
    shards = max(1, -(-args.conversations // args.shard))
    amount = Amount(
        shards=shards,
        rows=args.shard,
        answer=args.answer,
        width=args.width,
        invented=args.invented,
        seed=args.seed,
    )
    network = DTYPES[args.network_dtype] if args.network_dtype else mx.bfloat16 if on_gpu() else mx.float32
    plan = Plan(
        recipe=recipe,
        amount=amount,
        data=work / "conversations",
        run=args.checkpoints or work / f"run-{args.kind}",
        output=args.output or work / label,
        precision=step.Precision(network=network),
        part=args.rows,
        data_seconds=None if args.data_minutes is None else 60 * args.data_minutes,
        judge_by=tuple(read_prompts(args.judge_by)[: args.judge_most]) if args.judge_by else (),
        every=args.every,
        save_every_s=args.save_seconds,
    )
    return maker, plan, start


def _taps(text: str | None) -> tuple[int, ...]:
    try:
        taps = tuple(int(tap) for tap in text.split(",")) if text else ()
    except ValueError as error:
        raise InvalidRequest(f"--taps must be layers such as 1,7,14, not {text!r}", option="taps") from error
    if list(taps) != sorted(set(taps)):
        raise InvalidRequest(f"--taps must go upwards, unlike {text!r}", option="taps")
    return taps


def _expected(args: argparse.Namespace, maker: Maker, config: dict[str, Any], group: Any) -> Estimate:
    """Says what is to be made. Raises InvalidRequest when it would bring too little, unless told otherwise."""
    from slipstream.train import planning
    from slipstream.train.measuring import forward_seconds

    size = planning.size_of(config)
    if size is None:
        raise InvalidRequest("this model's config does not say how large it is; choose another model")
    machine = planning.machine_of(_chip())
    # Halves of the work are for machines that will not decode with it; processes that share it must plan the same.
    if args.only is None and group is None:
        machine = planning.measured(machine, *forward_seconds(maker.target, planning.PROPOSALS + 1))
    expected = planning.estimate(
        size, machine, conversations=args.conversations, minutes=args.minutes, layers=args.layers
    )
    print(
        f"{maker.name}: {size.parameters / 1e6:.0f} million weights, {size.active / 1e6:.0f} used for each token\n"
        f"a {args.kind} drafter of {expected.layers} layers, rank {expected.rank}, reading {expected.taps} layers, "
        f"{args.proposals or planning.PROPOSALS} drafts a round\n"
        f"about {args.conversations} conversations in {_minutes(expected.writing_s)}, "
        f"training {_minutes(expected.training_s)}, {expected.watt_hours:.0f} Wh\n"
        f"expected: {expected.per_round:.1f} tokens per round, {expected.gain:.2f} times plain decoding",
        flush=True,
    )
    if not (expected.is_worth_it or args.anyway or args.plan):
        raise InvalidRequest(
            f"a drafter would make this model {expected.gain:.2f} times as fast: {expected.reason}; "
            "use --mode lookup, or make it with --anyway",
            gain=expected.gain,
        )
    return expected


def _chip() -> str:
    import platform
    import subprocess

    if sys.platform != "darwin":
        from slipstream.engine.load import on_gpu

        return "H200" if on_gpu() else platform.machine()
    return subprocess.run(
        ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
    ).stdout.strip()


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _mask_id(tokeniser: Any) -> int:
    """A special token that chats do not use, if there is one."""
    template = str(getattr(tokeniser.huggingface, "chat_template", "") or "")
    added = getattr(tokeniser.huggingface, "added_tokens_decoder", {})
    free = [int(id_) for id_, token in sorted(added.items()) if token.special and token.content not in template]
    free = [id_ for id_ in free if id_ not in tokeniser.end_ids]
    return free[0] if free else min(tokeniser.end_ids, default=0)


def _part(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and int(part) < int(parts)):
        raise InvalidRequest(f"--part must be such as 0/2, not {text!r}", option="part")
    return int(part), int(parts)


class _Teller:
    """Says progress on the terminal, a line each, keeps it in a file, and draws it."""

    def __init__(self, log: Path | None, picture: Picture) -> None:
        self._log, self._picture, self._drawn = log, picture, 0.0
        self._began = time.monotonic()

    def __call__(self, report: Report) -> None:
        from dataclasses import asdict

        from slipstream.train.job import Judged
        from slipstream.train.loop import Figure
        from slipstream.train.picture import Moment
        from slipstream.train.writing import Written

        at = time.monotonic() - self._began
        match report:
            case Written():
                line = (
                    f"shard {report.shard + 1}/{report.shards}: {report.conversations} conversations, "
                    f"{report.tokens} tokens in {report.seconds:.1f} s ({report.tokens / report.seconds:.0f} tok/s)"
                )
            case Figure():
                line = (
                    f"step {report.step} {100 * report.progress:.1f}% loss {report.loss:.4f} ce {report.ce:.3f} "
                    f"l1 {report.l1:.3f} conf {report.confidence:.3f} norm {report.norm:.2f} "
                    f"per round {report.same:.3f} (T=1 {report.chance:.3f}) "
                    f"by position {' '.join(f'{share:.2f}' for share in report.agrees)} "
                    f"rate {report.rate:.2e} {report.tokens_per_second:.0f} tok/s"
                )
                self._picture.add(Moment(report.step, report.loss, report.same, report.chance, report.agrees))
                if at - self._drawn > DRAW_SECONDS or not self._drawn:
                    self._picture.write()
                    self._drawn = at
            case Judged():
                kinds = " ".join(f"{kind} {worth:.2f}" for kind, worth in report.by_kind.items())
                line = f"{report.what}: {kinds} (T=1 {report.chance:.2f})"
        print(f"{at:7.1f} s  {line}", flush=True)
        if self._log is not None:
            with self._log.open("a") as file:
                entry = {"what": type(report).__name__, "at": round(at, 2)} | asdict(report)
                file.write(json.dumps(entry) + "\n")


if __name__ == "__main__":  # where not all that the other commands need is installed
    from slipstream.models.backend import prepare

    prepare()
    _parser = argparse.ArgumentParser()
    add_arguments(_parser)
    try:
        sys.exit(run(_parser.parse_args()))
    except SlipstreamError as error:
        print(f"slipstream: {error.message}", file=sys.stderr)
        sys.exit(2)
