"""Slipstream against mlx-lm and mlx-dspark: the same target, drafter, prompts and lengths, interleaved in one run.

    python tests/bench/peer_env.py build/peer                        # once: mlx-dspark in its own environment
    python tests/bench/vs_peers.py --precision float32 --peer-python build/peer/bin/python

Each program runs in a process of its own and stays loaded; for every prompt all of them answer in turn, greedily, and
the order moves on each time. tok/s counts the tokens after the first. Without --peer-python mlx-dspark is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import table
from arms import ARMS, HERE, PEER, PLAIN, Arm, Launch, Worker, WorkerError
from make_models import PRECISIONS, make
from worker import Generated

from slipstream.models.backend import prepare
from slipstream.store import demo
from slipstream.types import Mode

CONTEXT = 256  # tokens of prompt under which the curves are measured
WIDTHS = (*range(1, 10), 12, 16, 24, 32)
WARM_UP = {"cpu": 12, "gpu": 128}  # tokens; a GPU's kernels for odd widths are compiled when they first occur
REPEATS = {"cpu": 1, "gpu": 8}  # of each point of a curve, each time the curves are measured


def main() -> int:
    ends = time.monotonic()
    args = parser().parse_args()
    ends += args.seconds
    out: Path = args.out
    out.mkdir(parents=True, exist_ok=True)
    questions = read_prompts(args.prompts, args.limit)
    folder: Path = args.models / args.precision
    make(folder, args.precision)
    with ExitStack() as stack:
        workers, skipped = start(args, folder, stack)
        arms = chosen(args.arms, workers, skipped)
        prompts = workers[PLAIN.worker].ask("tokenise", prompts=[prompt for _, prompt in questions])
        end_ids = workers[PLAIN.worker].info["end_ids"]
        bench = Bench(workers, arms, end_ids, args.max_tokens, skipped)
        bench.warm_up(prompts[0])
        curves = Curves(workers.get("slipstream") if args.bound else None, prompts)
        runs = bench.race(questions, prompts, args.trials, ends, curves.measure)
        curves.measure()
    if not runs:
        print("nothing was finished in the time given; raise --seconds", file=sys.stderr)
        return 1
    report(args, workers, skipped, runs, curves.medians())
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    models = made.add_argument_group("models")
    models.add_argument("--precision", choices=PRECISIONS, default="float32", help="of the target (%(default)s)")
    models.add_argument("--models", type=Path, default=Path("build/bench"), help="where they are made (%(default)s)")
    models.add_argument("--draft-model", help="a small mlx-lm model folder, for mlx-lm's own speculative loop")
    programs = made.add_argument_group("programs")
    programs.add_argument("--arms", help="names of arms, by commas (default: all that can run)")
    programs.add_argument("--peer-python", help="interpreter of the environment that has mlx-dspark")
    programs.add_argument("--drafter-bits", type=int, choices=(0, 4, 8), help="ours; default: as Slipstream chooses")
    programs.add_argument(
        "--peer-drafter-bits", type=int, help="default: 0 on the CPU backend, else 4, its own default"
    )
    programs.add_argument(
        "--calibrate-s",
        type=float,
        default=150,
        help="the most mlx-dspark may calibrate a drafter; 0: not (%(default)s)",
    )
    work = made.add_argument_group("work")
    work.add_argument("--prompts", type=Path, default=HERE / "prompts.jsonl", help='lines of {"source", "prompt"}')
    work.add_argument("--limit", type=int, help="so many prompts, spread evenly over the sources")
    work.add_argument("--max-tokens", type=int, default=128, help="of each answer (%(default)s)")
    work.add_argument("--trials", type=int, default=3, help="times that every arm answers every prompt (%(default)s)")
    work.add_argument("--seconds", type=float, default=1e9, help="start no other prompt after so long")
    work.add_argument("--bound", action="store_true", help="measure T(width) and T_draft too, and what they allow")
    made.add_argument("--out", type=Path, default=Path("build/bench"), help="folder for the report (%(default)s)")
    return made


def read_prompts(file: Path, limit: int | None) -> list[tuple[str, str]]:
    """(source, prompt) pairs, sources taking turns, so that a limit leaves as many of each."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    by_source: dict[str, list[tuple[str, str]]] = {}
    for line in lines:
        by_source.setdefault(line["source"], []).append((line["source"], line["prompt"]))
    longest = max(len(group) for group in by_source.values())
    return [group[turn] for turn in range(longest) for group in by_source.values() if turn < len(group)][:limit]


def start(args: argparse.Namespace, folder: Path, stack: ExitStack) -> tuple[dict[str, Worker], dict[str, str]]:
    """The workers that could be loaded, and why the others could not. mlx-lm's is needed: it is the measure."""
    # As Slipstream sets them, for every program: without the second MLX-CUDA plans attention anew for every length.
    environment = {"HF_HUB_OFFLINE": "1", "MLX_ENABLE_TF32": "0", "MLX_CUDA_USE_CUDNN_SDPA": "0"}
    # mlx-lm and mlx-dspark have some 600 operations a forward, and are faster with larger graphs than MLX's own of 20.
    graphs = {"MLX_MAX_OPS_PER_BUFFER": "100"}
    if openblas := prepare():
        environment["LD_PRELOAD"] = str(openblas)
    target = str(folder / "target")

    def launch(name: str, python: str, *options: str) -> Worker:
        script = HERE / f"worker_{name.replace('-', '_')}.py"
        print(f"loading {name}", file=sys.stderr, flush=True)
        own = environment if name == "slipstream" else environment | graphs
        made = Launch([python, str(script), "--target", target, *options], own, folder / f"{name}.log")
        return stack.enter_context(Worker(made))

    draft = ["--draft-model", args.draft_model] if args.draft_model else []
    drafters = [f"--drafter={path}" for path in demo.drafters().values()]
    if args.drafter_bits is not None:
        drafters.append(f"--drafter-bits={args.drafter_bits}")
    plain = launch(PLAIN.worker, sys.executable, *draft)
    ours = launch("slipstream", sys.executable, *drafters)
    workers = {PLAIN.worker: plain.ready()}
    skipped: dict[str, str] = {}

    def wait(name: str, worker: Worker) -> None:
        try:
            workers[name] = worker.ready()
        except WorkerError as error:
            skipped[name] = str(error)

    wait("slipstream", ours)
    if args.peer_python is None:
        skipped[PEER] = "no --peer-python"
        return workers, skipped
    bits = args.peer_drafter_bits
    if bits is None:
        bits = 4 if backend(plain) == "gpu" else 0
    plain_drafters = [f"--drafter={folder / Mode.DSPARK.value}"]
    if args.arms is None or "mlx-dspark dflash" in args.arms:
        plain_drafters.append(f"--dflash-drafter={folder / Mode.DFLASH.value}")
    limits = [f"--drafter-bits={bits}", f"--calibrate-s={args.calibrate_s}"]
    # Not before the others are up: it measures while it loads.
    wait(PEER, launch(PEER, args.peer_python, *plain_drafters, *limits))
    return workers, skipped


def backend(worker: Worker) -> str:
    return "gpu" if "gpu" in worker.info["device"] else "cpu"


def chosen(names: str | None, workers: dict[str, Worker], skipped: dict[str, str]) -> list[Arm]:
    """The arms asked for that can run; why each of the others cannot is added to `skipped`."""
    wanted = [name.strip() for name in names.split(",")] if names else [arm.name for arm in ARMS]
    if unknown := set(wanted) - {arm.name for arm in ARMS}:
        raise SystemExit(
            f"unknown arms: {', '.join(sorted(unknown))}; there are: {', '.join(arm.name for arm in ARMS)}"
        )
    out: list[Arm] = []
    for arm in ARMS:
        if arm.name not in wanted and arm != PLAIN:
            continue
        if arm.worker not in workers:
            continue
        if arm.does in workers[arm.worker].info["arms"]:
            out.append(arm)
        else:
            reason = (
                "does not apply: no --draft-model" if arm.does == "draft" else "not offered by its worker (see notes)"
            )
            skipped[arm.name] = reason
    return out


class Bench:
    """The race itself. Why an arm fell out of it is added to `skipped`."""

    def __init__(
        self,
        workers: dict[str, Worker],
        arms: list[Arm],
        end_ids: list[int],
        max_tokens: int,
        skipped: dict[str, str],
    ) -> None:
        self._workers = workers
        self._arms = arms
        self._skipped = skipped
        self._end_ids = end_ids
        self._max_tokens = max_tokens

    def warm_up(self, prompt_ids: list[int]) -> None:
        """One short answer of each arm."""
        tokens = WARM_UP[backend(self._workers[PLAIN.worker])]
        for arm in self._arms:
            try:
                self._answer(arm, prompt_ids, tokens)
            except WorkerError as error:
                self._drop(arm, error)

    def race(
        self,
        questions: Sequence[tuple[str, str]],
        prompts: Sequence[list[int]],
        trials: int,
        ends: float,
        before_trial: Callable[[], None],
    ) -> list[table.Run]:
        """All arms on all prompts, `trials` times. Cut short, it gives the whole trials, or else what there is."""
        runs: list[table.Run] = []
        finished = 0
        for turn, (trial, number) in enumerate(cases(trials, len(prompts))):
            if time.monotonic() > ends:
                break
            if number == 0:
                before_trial()
            print(f"trial {trial + 1}, prompt {number + 1} of {len(prompts)}", file=sys.stderr, flush=True)
            first = turn % len(self._arms)
            for arm in (*self._arms[first:], *self._arms[:first]):
                try:
                    said = self._answer(arm, prompts[number], self._max_tokens)
                except WorkerError as error:
                    self._drop(arm, error)
                    continue
                runs.append(table.Run(arm=arm.name, trial=trial, prompt=number, source=questions[number][0], **said))
            finished = trial + (number == len(prompts) - 1)
        order = [arm.name for arm in self._arms]
        runs = [run for run in runs if run.arm in order and run.trial < max(finished, 1)]
        return sorted(runs, key=lambda run: (order.index(run.arm), run.trial, run.prompt))

    def _drop(self, arm: Arm, error: WorkerError) -> None:
        """Go on without an arm that failed. Without the one that all are measured by there is nothing to go on for."""
        if arm == PLAIN:
            raise error
        self._arms = [other for other in self._arms if other != arm]
        self._skipped[arm.name] = str(error)

    def _answer(self, arm: Arm, prompt_ids: list[int], max_tokens: int) -> Generated:
        return self._workers[arm.worker].ask(
            "generate", arm=arm.does, prompt_ids=prompt_ids, max_tokens=max_tokens, end_ids=self._end_ids
        )


def cases(trials: int, prompts: int) -> Iterator[tuple[int, int]]:
    return ((trial, prompt) for trial in range(trials) for prompt in range(prompts))


class Curves:
    """T(width) and T_draft, measured several times in the course of the race, so that both meet the same machine."""

    def __init__(self, worker: Worker | None, prompts: Sequence[list[int]]) -> None:
        self._worker = worker
        text = [token for prompt in prompts for token in prompt]
        self._context = (text * (CONTEXT // len(text) + 1))[:CONTEXT]
        self._taken: list[dict[str, dict[str, float]]] = []

    def measure(self) -> None:
        if self._worker is not None:
            repeats = REPEATS[backend(self._worker)]
            self._taken.append(
                self._worker.ask("curves", prompt_ids=self._context, widths=list(WIDTHS), repeats=repeats)
            )

    def medians(self) -> dict[str, dict[str, float]] | None:
        if not self._taken:
            return None
        return {
            kind: {name: statistics.median(curves[kind][name] for curves in self._taken) for name in points}
            for kind, points in self._taken[0].items()
        }


def report(
    args: argparse.Namespace,
    workers: dict[str, Worker],
    skipped: dict[str, str],
    runs: Sequence[table.Run],
    curves: dict[str, Any] | None,
) -> None:
    peers = [arm.name for arm in ARMS if arm.worker == PEER]
    rows = table.rows(runs, PLAIN.name, peers)
    bounds: list[table.Bound] = []
    if curves is not None:
        drafters = {arm.name: arm.does for arm in ARMS if arm.worker == "slipstream"}
        for row in rows:
            if row.arm in drafters:
                # auto drafts with DSpark where it is loaded
                draft_ms = curves["draft_ms"].get(drafters[row.arm], curves["draft_ms"].get("dspark", 0.0))
                bounds.append(table.bound(row, runs, curves["target_ms"], draft_ms))
    trials = len({run.trial for run in runs})
    prompts = len({run.prompt for run in runs})
    stamp = machine(workers)
    drawn = "\n".join(
        [
            f"## {args.precision} target, {stamp['device']}",
            "",
            f"{stamp['when']} · {prompts} prompts, up to {args.max_tokens} tokens, {trials} trials, interleaved · "
            f"load {stamp['load']} · {stamp['versions']}",
            "",
            table.markdown(rows, bounds, curves),
            "",
            *notes(args.precision, [row.arm for row in rows], workers, skipped),
            "",
        ]
    )
    stem = args.out / f"vs_peers-{args.precision}"
    stem.with_suffix(".md").write_text(drawn, encoding="utf-8")
    stem.with_suffix(".json").write_text(
        json.dumps(
            {
                "options": {key: str(value) for key, value in vars(args).items()},
                "machine": stamp,
                "workers": {name: worker.info for name, worker in workers.items()},
                "skipped": skipped,
                "rows": [asdict(row) for row in rows],
                "bounds": [asdict(made) for made in bounds],
                "curves": curves,
                "runs": [asdict(run) for run in runs],
            }
        ),
        encoding="utf-8",
    )
    print(drawn)


def notes(precision: str, ran: Collection[str], workers: dict[str, Worker], skipped: dict[str, str]) -> list[str]:
    out = ["× is the median over trials of the ratio within a trial; mlx-dspark is the fastest of its arms.", ""]
    if backend(workers[PLAIN.worker]) == "cpu" and precision != "float32":
        out += ["**On a CPU Slipstream computes packed or half-precision weights as float32; the others do not.**", ""]
    out += [f"- {arm.name}: {workers[arm.worker].info['arms'][arm.does]}" for arm in ARMS if arm.name in ran]
    for name, worker in workers.items():
        out += [f"- {name}: {note}" for note in worker.info["notes"]]
    return out + [f"- {name}: {reason}" for name, reason in skipped.items()]


def machine(workers: dict[str, Worker]) -> dict[str, str]:
    plain = workers[PLAIN.worker].info
    slipstream = workers["slipstream"].info if "slipstream" in workers else {}
    kind = f"{slipstream.get('quantisation', '')} {plain['dtype']}".strip()
    versions: dict[str, str] = {}
    for worker in workers.values():
        versions |= worker.info["versions"]
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "device": f"{plain['device_name'] or cpu_name()} ({plain['device']})",
        "cpu": f"{cpu_name()}, {os.cpu_count()} cores",
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "target": kind,
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
