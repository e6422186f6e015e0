"""`slipstream train --evaluate`: what a drafter is worth in the engine's own rounds."""

from __future__ import annotations

import argparse

from slipstream.store import demo, local

ENOUGH = 400  # rounds, for errors over 20 bins


def evaluate_drafter(args: argparse.Namespace) -> int:
    """Answer questions with the drafter, with lookup and plainly, greedily and at temperature 1, and print it."""
    from slipstream.engine.load import Precision, load_drafter, load_target
    from slipstream.models.tokeniser import Tokeniser
    from slipstream.train.evaluate import calibration, evaluate, summed
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
    sums = summed(uses)
    plain = {(use.kind, use.temperature): use.per_second for use in sums if use.mode is Mode.BASELINE}
    for use in sums:
        print(
            f"{use.kind:<14} temperature {use.temperature:<3g} {use.mode.value:<9} "
            f"{use.per_round:5.2f} tokens per round {use.per_second:8.1f} tok/s "
            f"{use.per_second / plain[use.kind, use.temperature]:5.2f} times plain"
        )
    for use in sums:
        if use.kind == "all" and use.promises:
            print(f"confidences at temperature {use.temperature:g}, chance that all drafts up to a position are kept:")
            if use.rounds < ENOUGH:
                print(f"  (a hint only: errors mean something from some {ENOUGH} rounds on)")
            for at in calibration(use.promises):
                print(
                    f"  position {at.position:<2} promised {at.promised:.3f}, kept {at.kept:.3f} "
                    f"of {at.rounds} rounds, expected calibration error {at.error:.3f}"
                )
    return 0
