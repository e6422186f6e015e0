"""What `slipstream train` says as it goes: on the terminal, in a file, and as a picture."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

from slipstream.train.job import Judged, Report
from slipstream.train.lines import append
from slipstream.train.loop import Figure, Paused
from slipstream.train.picture import Moment, Picture
from slipstream.train.writing import Written

DRAW_SECONDS = 2.0  # between two pictures


class Teller:
    """Says progress on the terminal, a line each, keeps it in a file, and draws it."""

    def __init__(self, log: Path | None, picture: Picture) -> None:
        self._log, self._picture, self._drawn = log, picture, 0.0
        self._began = time.monotonic()

    def __call__(self, report: Report) -> None:
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
                line = f"{report.what}: {kinds} (everywhere {report.everywhere:.2f}, T=1 {report.chance:.2f})"
            case Paused():
                line = "paused" if report.stands else "goes on"
        print(f"{at:7.1f} s  {line}", flush=True)
        if self._log is not None:
            append(self._log, {"what": type(report).__name__, "at": round(at, 2)} | asdict(report))
