"""Benchmark worker: mlx-dspark through its Python API, greedy, on token ids.

What its command line would measure first is bounded here, since on a machine it was not made for that can take
minutes: only the cost curves that choose the number of drafts are measured, for `--calibrate-s` seconds at most.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import mlx.core as mx
from worker import Generated, Handler, Stopwatch, answer, serve, versions

QUICK = (2, 1)  # timed and warm-up forwards of each point of a curve on a CPU; 8 and 3 are its own


class Peer:
    """A loaded pair and its settings. Typed as Any: mlx-dspark is not installed where types are checked."""

    def __init__(self, args: argparse.Namespace) -> None:
        # By name: it lives in the peer's own environment, and its package hides one module behind a function.
        peer: Any = import_module("mlx_dspark")
        self.loops: Any = import_module("mlx_dspark.generate")
        self.calibrate: Any = import_module("mlx_dspark.calibrate")
        self._args = args
        self.notes: list[str] = []
        self.target, self.tokenizer = peer.load_target(args.target, require_tap=True)
        quantise: dict[str, Any] = {"quantize": args.drafter_bits > 0, "bits": max(args.drafter_bits, 2)}
        self.dspark: Any = peer.load_drafter(args.drafter, **quantise)[0]
        self.dspark.ctx_window = peer.load.resolve_drafter_window(None, args.target)
        self.dflash: Any = None
        if args.dflash_drafter:
            self.dflash = peer.load_dflash(args.dflash_drafter, **quantise)[0]
            self.dflash.bind(self.target.model)
        self.lookup: bool = peer.load.lookup_drafts_default(args.target)
        self._limit_what_it_measures()

    def _limit_what_it_measures(self) -> None:
        calibrate = self.calibrate
        calibrate.CACHE_DIR = tempfile.mkdtemp(prefix="vs-peers-")  # never from, nor into, the user's own cache
        # The growth of a forward's time from 512 to 16,384 tokens of context; these prompts stay below 512.
        calibrate.measure_verify_depth_slope = lambda *_, **__: None
        self.notes.append("its long-context slope is not measured (contexts here stay below where it applies)")
        if mx.default_device() == mx.cpu:
            calibrate._bench.__defaults__ = QUICK
            self.notes.append(f"its cost curves: {QUICK[0]} forwards a point instead of 8")
        metal: Any = getattr(mx, "metal", None)
        if metal is not None and metal.is_available():
            apply = {"target_repo": self._args.target}
            calibrate.apply_small_m(self.target, self.dspark, drafter_repo=self._args.drafter, **apply)
            calibrate.apply_sdpa_split(self.target, **apply)
            calibrate.apply_multirow_attn(self.target, self.dspark)
        else:
            self.notes.append("its Metal kernels do not apply; its long-context attention split is off")
        self.notes.append("its prefill paths (wide products, rows on the CPU) are off: they do not touch decoding")

    def controller(self, mode: str) -> Any | None:
        """Its cost model over curves measured now; None when that failed or took too long."""
        drafter, folder = {
            "dspark": (self.dspark, self._args.drafter),
            "dflash": (self.dflash, self._args.dflash_drafter),
        }[mode]
        began = time.perf_counter()
        try:
            with deadline(self._args.calibrate_s):
                made = self.calibrate.calibrate(
                    self.target, drafter, mode=mode, target_repo=self._args.target, drafter_repo=folder
                )
        except Exception as error:  # as its own `static_cap` does: calibration is never a reason to stop
            seconds = time.perf_counter() - began
            self.notes.append(f"its {mode} calibration ended after {seconds:.0f} s ({type(error).__name__}: {error})")
            return None
        self.notes.append(f"its {mode} calibration took {time.perf_counter() - began:.0f} s")
        return made


@contextmanager
def deadline(seconds: float) -> Generator[None]:
    """Raise TimeoutError in the block when it takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"over {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def open_worker(args: argparse.Namespace) -> tuple[dict[str, Any], Mapping[str, Handler]]:
    peer = Peer(args)
    loops = peer.loops
    watch = Stopwatch()
    commit = loops._Streamer.update  # every loop calls it with all tokens so far, once a round

    def update(self: Any, out_ids: list[int]) -> None:
        watch.mark()
        commit(self, out_ids)

    loops._Streamer.update = update
    speculate = partial(loops.speculative_generate, peer.target, peer.tokenizer, peer.dspark, lookup_drafts=peer.lookup)
    full = int(peer.dspark.max_draft)
    runs: dict[str, Any] = {"full": partial(speculate, max_draft_tokens=full)}
    arms = {"full": f"dspark, {full} drafts a round"}
    made = peer.controller("dspark") if args.calibrate_s > 0 else None
    if made is not None:
        cap = int(made.static_best(peer.calibrate.STATIC_PRIOR_P))
        runs["measured"] = partial(speculate, max_draft_tokens=cap)
        arms["measured"] = f"dspark, {cap} drafts a round by its own cost curves (its default)"
        runs["auto"] = partial(speculate, max_draft_tokens=None, cap_controller=made)
        arms["auto"] = "dspark, --max-draft auto (the setting it recommends)"
    if peer.dflash is not None:
        block = int(peer.dflash.config.block_size) - 1
        made = peer.controller("dflash") if args.calibrate_s > 0 else None
        cap = block if made is None else int(made.static_best(peer.calibrate.STATIC_PRIOR_P))
        runs["dflash"] = partial(loops.dflash_generate, peer.target, peer.tokenizer, peer.dflash, max_draft_tokens=cap)
        arms["dflash"] = f"dflash, {cap} drafts a round"

    def generate(arm: str, prompt_ids: list[int], max_tokens: int, end_ids: list[int]) -> Generated:
        loops.eos_token_ids = lambda _: set(end_ids)
        watch.first_s = watch.last_s = 0.0
        result: Any = runs[arm](prompt_ids=prompt_ids, max_new_tokens=max_tokens, temperature=0.0)
        rounds = len(result.accept_lengths)
        # A round may overshoot the length asked for; what was not asked for does not count.
        return answer(result.token_ids[:max_tokens], watch, rounds, None, rounds - result.lookup_rounds)

    info = {
        "arms": arms,
        "versions": versions("mlx", "mlx-lm", "mlx-dspark", "mlx-vlm", "transformers"),
        "device": str(mx.default_device()),
        "drafter": f"{args.drafter_bits}-bit" if args.drafter_bits else "not quantised",
        "notes": peer.notes,
    }
    return info, {"generate": generate}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", required=True)
    parser.add_argument("--drafter", required=True, help="DSpark checkpoint with plain weights")
    parser.add_argument("--dflash-drafter", help="DFlash checkpoint with plain weights")
    parser.add_argument("--drafter-bits", type=int, default=4, help="4 is its own default; 0: as they are")
    parser.add_argument("--calibrate-s", type=float, default=60, help="0: do not; the number of drafts is then fixed")
    args = parser.parse_args()
    serve(lambda: open_worker(args))


if __name__ == "__main__":
    main()
