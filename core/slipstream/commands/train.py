"""`slipstream train`: makes a drafter for a model, on this machine, from nothing but the model."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from slipstream.commands.train_options import add_arguments, check, taps_of
from slipstream.errors import InvalidRequest, SlipstreamError
from slipstream.store import demo, local, paths

if TYPE_CHECKING:
    import mlx.core as mx

    from slipstream.train.design import Design
    from slipstream.train.job import Maker, Plan, Report
    from slipstream.train.loop import Control, Recipe
    from slipstream.train.planning import Estimate

CONVERSATIONS = "conversations"  # folder in --work
RATE, REFRESH_RATE = 1e-3, 3e-4  # learning rates
WARMUP = 200  # steps, or a tenth of all
STOPPED = "stopped; the same command goes on from here"
LEAST_STEPS, PASSES = 60, 4  # of a refresh: steps, and times over the answers


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("train", help="make a drafter for a model")
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    check(args)
    if args.evaluate:
        from slipstream.commands.train_evaluate import evaluate_drafter

        return evaluate_drafter(args)
    # Products in float32 may lose digits that training does not need; plain decoding never does this.
    os.environ["MLX_ENABLE_TF32"] = "1"
    if bool(args.refresh) != bool(args.answers):
        raise InvalidRequest("--refresh DRAFTER and --answers FILE belong together", option="refresh")
    if args.refresh:
        args.start, args.anyway = args.refresh, True
    with ExitStack() as claims:
        return _make(args, _group(), claims)


def _make(args: argparse.Namespace, group: Any, claims: ExitStack) -> int:
    maker, plan, start = _open(args, group, claims)
    if plan is None:
        return 0
    from slipstream.commands.train_signals import Listener
    from slipstream.commands.train_teller import Teller
    from slipstream.train.loop import NEW, Control
    from slipstream.train.picture import Picture
    from slipstream.train.used import read_answers

    picture = Picture(args.picture or plan.run / "progress.svg", f"{maker.name}, {plan.recipe.design.kind}")
    is_first = group is None or group.rank() == 0
    say: Callable[[Report], None] = Teller(args.log, picture) if is_first else lambda _: None
    control = Control(say)
    listener = Listener(control)
    with listener.listening():
        used = read_answers(args.answers, maker.shape.vocabulary) if args.refresh else []
        # Stopped before all is written, it must not learn from the part, nor choose from it which tokens to draft.
        is_stopped = not (args.refresh or args.only == "fit") and _write(args, maker, plan, say, control, group)
        if is_stopped and is_first:
            print(STOPPED)
        if is_stopped or args.only == "write":
            return listener.code
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
        print(STOPPED)
        return listener.code
    else:
        print("held-out answers got no better, so nothing was written; the drafter stays as it was")
    return 0


def _write(
    args: argparse.Namespace, maker: Maker, plan: Plan, say: Callable[[Report], None], control: Control, group: Any
) -> bool:
    """Conversations; those of all processes are there when it returns. Whether any of them was stopped."""
    import mlx.core as mx

    from slipstream.models.host import number
    from slipstream.train.questions import bundled_prompts, read_prompts

    given = read_prompts(args.prompts) if args.prompts else bundled_prompts()
    part, parts = _part(args.part) if group is None else (group.rank(), group.size())
    maker.write(plan, given, say, control, part, parts)
    if group is None:
        return control.is_stopped
    return number(mx.distributed.all_sum(mx.array(float(control.is_stopped)), group=group)) > 0


def _group() -> Any:
    """The processes that `mlx.launch` started together; None: there is just this one. Any: MLX's own."""
    if "MLX_RANK" not in os.environ:
        return None
    import mlx.core as mx

    group = mx.distributed.init()
    return group if group.size() > 1 else None


def _open(
    args: argparse.Namespace, group: Any, claims: ExitStack
) -> tuple[Maker, Plan | None, dict[str, mx.array] | None]:
    """What makes it, what is to be made, and the weights to go on from. No plan: it was only to be said.

    The run's folder is this process's until `claims` ends.
    """
    import mlx.core as mx

    from slipstream.commands.train_plan import choose, shard_rows
    from slipstream.drafters import formats
    from slipstream.engine.load import DTYPES, Precision, load_target, on_gpu
    from slipstream.models.tokeniser import Tokeniser
    from slipstream.train import step
    from slipstream.train.design import Design, of_descriptor
    from slipstream.train.design import check as design_check
    from slipstream.train.export import check_free
    from slipstream.train.job import Maker, Plan
    from slipstream.train.questions import read_prompts
    from slipstream.train.used import mark, read_answers
    from slipstream.train.writing import Amount

    folder = demo.target() if args.model is None else local.resolve(args.model)
    name = demo.NAME if args.model is None else local.name_of(args.model)
    target = load_target(folder, Precision(dtype=args.dtype, unpack=True))
    tokeniser = Tokeniser(folder)
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    maker = Maker(target, tokeniser, config, name)
    run = f"run-{args.kind}"
    if args.refresh:
        used = read_answers(args.answers, maker.shape.vocabulary)
        if not used:
            raise InvalidRequest("--answers holds no answers of 2 tokens or more; give some", option="answers")
        args.conversations = len(used)
        run = f"refresh-{mark(used)}"  # other answers are another run
    work = args.work or paths.cache_dir() / "train" / name.replace("/", "--")
    run = args.checkpoints or work / run
    expected = choose(args, maker, config, run, group, claims)
    if args.plan:
        return maker, None, None
    label = f"{name.rpartition('/')[2]}-{'DSpark' if args.kind == 'dspark' else 'DFlash'}"
    design = Design(
        kind=args.kind,
        layers=args.layers or expected.layers,
        taps=taps_of(args.taps),
        proposals=args.proposals or expected.proposals,
        rank=expected.rank if args.rank is None else args.rank,
        markov=args.markov,
        mask_id=_mask_id(tokeniser) if args.mask_id is None else args.mask_id,
        draft_vocabulary=args.draft_vocabulary,
    )
    design_check(design, maker.shape)
    output = args.output or work / label
    if args.only != "write":
        check_free(output)  # not only after hours
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
    rows = args.shard or shard_rows(args, work / CONVERSATIONS, expected, group)
    amount = Amount(
        shards=-(-args.conversations // rows),
        rows=rows,
        answer=args.answer,
        width=args.width,
        invented=args.invented,
        seed=args.seed,
    )
    network = DTYPES[args.network_dtype] if args.network_dtype else mx.bfloat16 if on_gpu() else mx.float32
    plan = Plan(
        recipe=_recipe(args, design, expected),
        amount=amount,
        data=work / CONVERSATIONS,
        run=run,
        output=output,
        precision=step.Precision(network=network),
        part=args.rows,
        data_seconds=None if args.data_minutes is None else 60 * args.data_minutes,
        judge_by=tuple(read_prompts(args.judge_by)[: args.judge_most]) if args.judge_by else (),
        every=args.every,
        save_every_s=args.save_seconds,
    )
    return maker, plan, start


def _recipe(args: argparse.Namespace, design: Design, expected: Estimate) -> Recipe:
    from slipstream.train.batches import DECAY
    from slipstream.train.loop import Recipe

    steps = args.steps
    if args.refresh and steps is None and args.minutes is None:
        steps = max(LEAST_STEPS, PASSES * args.conversations // args.texts)
    warmup = WARMUP if steps is None else min(WARMUP, max(1, steps // 10))
    return Recipe(
        design=design,
        texts=args.texts,
        anchors=args.anchors,
        longest=args.longest,
        rate=(REFRESH_RATE if args.refresh else RATE) if args.rate is None else args.rate,
        warmup=warmup if args.warmup is None else args.warmup,
        optimiser=args.optimiser,
        ema=args.ema,
        decay=max(DECAY, design.proposals / 2) if args.decay is None else args.decay,
        ce=args.ce,
        l1=args.l1,
        steps=steps,
        seconds=(None if steps else expected.training_s) if args.minutes is None else 60 * args.minutes,
        seed=args.seed,
    )


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
    except KeyboardInterrupt:
        sys.exit(130)
