"""What `slipstream train` chooses to make: measured and judged once, when a run begins."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstream.commands.train_options import taps_of
from slipstream.errors import InvalidRequest

if TYPE_CHECKING:
    from slipstream.train.job import Maker
    from slipstream.train.planning import Estimate, Size

WHOLE = "0/1"  # --part of who writes all
DECIDE = ("conversations", "minutes", "layers", "proposals")  # options that the choice depends on


def choose(
    args: argparse.Namespace, maker: Maker, config: dict[str, Any], run: Path, group: Any, claims: ExitStack
) -> Estimate:
    """The choice that the folder `run` keeps, or the best by today's measurement, kept for later sittings.

    Says it. Raises InvalidRequest when a new run would bring too little, unless told otherwise, or when another process
    is at work in the folder, which is this one's until `claims` ends.
    """
    from slipstream.train import planned
    from slipstream.train.checkpoint import claimed

    asked = {"model": maker.name} | {option: getattr(args, option) for option in DECIDE}
    before = planned.kept(run, asked)
    expected = before or _measured(args, maker, config, group)
    is_first = group is None or group.rank() == 0
    if is_first:
        _tell(args, maker.name, config, expected)
    if args.plan:
        return expected
    if before is None:
        _refuse_small_gain(args, expected)
    if is_first and args.only != "write":
        claims.enter_context(claimed(run))
        if before is None:
            planned.keep(run, asked, expected)
    return expected


def shard_rows(args: argparse.Namespace, data: Path, expected: Estimate, group: Any) -> int:
    """Conversations in a file: as many as the folder's others have, else those of about a minute."""
    from slipstream.train import planning
    from slipstream.train.corpus import Corpus

    if (found := Corpus(data).rows()) is not None:
        return found
    # Machines that share the work would each come to another number.
    is_shared = group is not None or args.part != WHOLE
    return planning.SHARD if is_shared else planning.shard_rows(expected.writing_s / args.conversations)


def _measured(args: argparse.Namespace, maker: Maker, config: dict[str, Any], group: Any) -> Estimate:
    """The drafter that is expected to gain most, by what this machine takes for the model."""
    from slipstream.train import planning
    from slipstream.train.measuring import forward_seconds

    size, machine = _size(config), planning.machine_of(_chip())
    asked = {option: getattr(args, option) for option in DECIDE}
    # Halves of the work are for machines that will not decode with it; processes that share it must plan the same.
    if args.only is None and group is None:
        costs = forward_seconds(maker.target, planning.PROPOSALS + 1)
        return planning.estimate_measured(size, machine, costs, **asked)
    return planning.estimate(size, machine, **asked)


def _size(config: dict[str, Any]) -> Size:
    from slipstream.train import planning

    size = planning.size_of(config)
    if size is None:
        raise InvalidRequest("this model's config does not say how large it is; choose another model")
    return size


def _tell(args: argparse.Namespace, name: str, config: dict[str, Any], expected: Estimate) -> None:
    """What is to be made, in which time, for which gain."""
    size = _size(config)
    rank = f"rank {expected.rank if args.rank is None else args.rank}, " if args.kind == "dspark" else ""
    made = (
        f"a {args.kind} drafter of {args.layers or expected.layers} layers, {rank}reading "
        f"{len(taps_of(args.taps)) or expected.taps} layers, {args.proposals or expected.proposals} drafts a round"
    )
    amount = (
        f"about {args.conversations} conversations in {_minutes(expected.writing_s)}, "
        f"training {_minutes(expected.training_s)}, {expected.watt_hours:.0f} Wh"
    )
    if args.refresh:
        amount = f"learning from {args.conversations} answers of your own"
    lines = [
        f"{name}: {size.parameters / 1e6:.0f} million weights, {size.active / 1e6:.0f} used for each token",
        f"going on from {args.start}" if args.start else made,
        amount,
    ]
    if not args.refresh:
        gain = f"{expected.gain:.2f} times plain decoding{_range(expected)}"
        lines.append(f"expected: {expected.per_round:.1f} tokens per round, {gain}")
    print("\n".join(lines), flush=True)


def _refuse_small_gain(args: argparse.Namespace, expected: Estimate) -> None:
    if not (expected.is_worth_it or args.anyway):
        raise InvalidRequest(
            f"a drafter would make this model {expected.gain:.2f} times as fast{_range(expected)}: {expected.reason}; "
            "use --mode lookup, or make it with --anyway",
            gain=expected.gain,
        )


def _range(expected: Estimate) -> str:
    """How far measurements of the same differ, as they do on a machine that is at work."""
    if not expected.gains:
        return ""
    return f" ({min(expected.gains):.2f} to {max(expected.gains):.2f} in {len(expected.gains)} measurements)"


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
