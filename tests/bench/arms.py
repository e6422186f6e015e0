"""The programs that are compared: how each worker is started, and which arms it offers."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).parent
LOAD_S = 420  # a worker may calibrate while it loads
ANSWER_S = 300


@dataclass(frozen=True, slots=True)
class Arm:
    """A column of the race: a name for people, and what to ask of which worker."""

    name: str
    worker: str
    does: str  # the worker's own name for it


PLAIN = Arm("mlx-lm", "mlx-lm", "plain")
ARMS = (
    PLAIN,
    Arm("mlx-lm draft model", "mlx-lm", "draft"),
    Arm("mlx-dspark", "mlx-dspark", "measured"),
    Arm("mlx-dspark auto", "mlx-dspark", "auto"),
    Arm("mlx-dspark full block", "mlx-dspark", "full"),
    Arm("mlx-dspark dflash", "mlx-dspark", "dflash"),
    Arm("slipstream dspark", "slipstream", "dspark"),
    Arm("slipstream dflash", "slipstream", "dflash"),
    Arm("slipstream auto", "slipstream", "auto"),
    Arm("slipstream plain", "slipstream", "baseline"),
)
PEER = "mlx-dspark"


class WorkerError(Exception):
    """A worker could not start, did not answer in time, or said why it failed."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A worker's command, what it needs in its environment, and where its own output goes."""

    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path


class Worker:
    """A worker process, loading from the start. After `ready`, one request at a time."""

    def __init__(self, launch: Launch) -> None:
        self._log = launch.log.open("w")
        self._process = subprocess.Popen(
            launch.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **launch.environment},
        )
        self._path = launch.log
        self.info: dict[str, Any] = {}  # Any: JSON

    def ready(self, load_s: float = LOAD_S) -> Self:
        """Wait until it has loaded, and take what it says of itself. Raises WorkerError."""
        self.info = self._reply(load_s)
        return self

    def ask(self, do: str, timeout_s: float = ANSWER_S, **fields: object) -> Any:
        """Any: JSON, in the shape of what was asked. Raises WorkerError."""
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(json.dumps({"do": do, **fields}).encode() + b"\n")
            pipe.flush()
        except BrokenPipeError as error:
            raise WorkerError(f"it is gone (see {self._path})") from error
        return self._reply(timeout_s)

    def _reply(self, timeout_s: float) -> Any:
        pipe = self._process.stdout
        assert pipe is not None
        line = b""
        ends = time.monotonic() + timeout_s
        while not line.endswith(b"\n"):
            if not select.select([pipe], [], [], max(0.0, ends - time.monotonic()))[0]:
                # Its answer would be taken for the next request's.
                self._process.kill()
                raise WorkerError(f"no answer within {timeout_s:g} s")
            piece = os.read(pipe.fileno(), 1 << 20)
            if not piece:
                raise WorkerError(f"it ended with code {self._process.wait()} (see {self._path}): {self._last_words()}")
            line += piece
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise WorkerError(said["error"])
        return said["ok"]

    def _last_words(self) -> str:
        self._log.flush()
        return " ".join(self._path.read_text(errors="replace").split()[-40:])

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # what a dead worker was still to be told
                    pipe.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
