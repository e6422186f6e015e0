"""`slipstream train`: makes a drafter for a model, on this machine, from nothing but the model."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstream.commands.train_options import add_arguments
from slipstream.errors import InvalidRequest, SlipstreamError
from slipstream.store import demo, local, paths

if TYPE_CHECKING:
    import mlx.core as mx

    from slipstream.train.job import Maker, Plan, Report
    from slipstream.train.loop import Control
    from slipstream.train.planning import Estimate

RATE, REFRESH_RATE = 1e-3, 3e-4  # learning rates
LEAST_STEPS, PASSES = 60, 4  # of a refresh: steps, and times over the answers


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("train", help="make a drafter for a model")
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.evaluate:
        from slipstream.commands.train_evaluate import evaluate_drafter

        return evaluate_drafter(args)
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
    from slipstream.commands.train_teller import Teller
    from slipstream.train.loop import NEW, Control
    from slipstream.train.picture import Picture
    from slipstream.train.used import read_answers

    picture = Picture(args.picture or plan.run / "progress.svg", f"{maker.name}, {plan.recipe.design.kind}")
    control = Control()
    is_first = group is None or group.rank() == 0
    say = Teller(args.log, picture) if is_first else lambda _: None
    with _listening(control):
        used = read_answers(args.answers, maker.shape.vocabulary) if args.refresh else []
        if not args.refresh and args.only != "fit":
            _write(args, maker, plan, say, control, group)
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


def _write(
    args: argparse.Namespace, maker: Maker, plan: Plan, say: Callable[[Report], None], control: Control, group: Any
) -> None:
    """Conversations; those of all processes are there when it returns."""
    import mlx.core as mx

    from slipstream.train.questions import bundled_prompts, read_prompts

    given = read_prompts(args.prompts) if args.prompts else bundled_prompts()
    part, parts = _part(args.part) if group is None else (group.rank(), group.size())
    maker.write(plan, given, say, control, part, parts)
    if group is not None:
        mx.eval(mx.distributed.all_sum(mx.zeros(1), group=group))


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
    from slipstream.train.batches import DECAY
    from slipstream.train.design import Design, check, of_descriptor
    from slipstream.train.job import Maker, Plan
    from slipstream.train.loop import Recipe
    from slipstream.train.questions import read_prompts
    from slipstream.train.used import mark, read_answers
    from slipstream.train.writing import Amount

    folder = demo.target() if args.model is None else local.resolve(args.model)
    name = demo.NAME if args.model is None else Path(args.model).name
    target = load_target(folder, Precision(dtype=args.dtype, unpack=True))
    tokeniser = Tokeniser(folder)
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    maker = Maker(target, tokeniser, config, name)
    run = f"run-{args.kind}"
    if args.refresh:
        used = read_answers(args.answers, maker.shape.vocabulary)
        args.conversations = len(used)
        run = f"refresh-{mark(used)}"  # other answers are another run
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
        proposals=expected.proposals,
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
    steps = args.steps
    if args.refresh and steps is None and args.minutes is None:
        steps = max(LEAST_STEPS, PASSES * args.conversations // args.texts)
    recipe = Recipe(
        design=design,
        texts=args.texts,
        anchors=args.anchors,
        longest=args.longest,
        rate=(REFRESH_RATE if args.refresh else RATE) if args.rate is None else args.rate,
        warmup=args.warmup if steps is None else min(args.warmup, max(1, steps // 10)),
        optimiser=args.optimiser,
        ema=args.ema,
        decay=max(DECAY, design.proposals / 2) if args.decay is None else args.decay,
        ce=args.ce,
        l1=args.l1,
        steps=steps,
        seconds=(None if steps else expected.training_s) if args.minutes is None else 60 * args.minutes,
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
        run=args.checkpoints or work / run,
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
        size,
        machine,
        conversations=args.conversations,
        minutes=args.minutes,
        layers=args.layers,
        proposals=args.proposals,
    )
    rank = f"rank {expected.rank if args.rank is None else args.rank}, " if args.kind == "dspark" else ""
    made = (
        f"a {args.kind} drafter of {expected.layers} layers, {rank}reading {len(_taps(args.taps)) or expected.taps} "
        f"layers, {expected.proposals} drafts a round"
    )
    amount = (
        f"about {args.conversations} conversations in {_minutes(expected.writing_s)}, "
        f"training {_minutes(expected.training_s)}, {expected.watt_hours:.0f} Wh"
    )
    if args.refresh:
        amount = f"learning from {args.conversations} answers of your own"
    lines = [
        f"{maker.name}: {size.parameters / 1e6:.0f} million weights, {size.active / 1e6:.0f} used for each token",
        f"going on from {args.start}" if args.start else made,
        amount,
    ]
    if not args.refresh:
        lines.append(f"expected: {expected.per_round:.1f} tokens per round, {expected.gain:.2f} times plain decoding")
    if group is None or group.rank() == 0:
        print("\n".join(lines), flush=True)
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
