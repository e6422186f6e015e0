"""The built-in pair in a process of its own, so that it may use OpenBLAS while the suite keeps the strict stock BLAS.

As a script: reads requests from stdin, a JSON object a line, and answers each with the object of `generate --json`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from slipstream.types import Mode


class PairProcess:
    """Start with `with`; then `answer`. `drafters`: folders to use instead of the built-in ones."""

    def __init__(
        self, drafters: Sequence[Path] = (), *, dtype: str = "float32", drafter_bits: int | None = None
    ) -> None:
        command = [sys.executable, __file__, "--dtype", dtype]
        for folder in drafters:
            command += ["--drafter", str(folder)]
        if drafter_bits is not None:
            command += ["--drafter-bits", str(drafter_bits)]
        self._command = command

    def __enter__(self) -> PairProcess:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate(timeout=60)

    def answer(self, prompt_ids: Sequence[int], mode: Mode = Mode.AUTO, **options: Any) -> dict[str, Any]:
        """Any: the result is JSON."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"prompt_ids": list(prompt_ids), "mode": mode.value, "options": options}) + "\n")
        stdin.flush()
        line = stdout.readline()
        assert line, "the process with the pair has died; its stderr says why"
        return json.loads(line)


def _serve() -> None:
    from slipstream.models.backend import prepare

    prepare()
    import argparse

    from slipstream.commands.options import add_pair, open_pair
    from slipstream.engine.engine import MlxEngine
    from slipstream.jobs import Job
    from slipstream.measure.result import as_json, collect
    from slipstream.types import Options, Request, Tokens

    parser = argparse.ArgumentParser()
    add_pair(parser)
    engine = open_pair(parser.parse_args(), (Mode.DSPARK, Mode.DFLASH))
    assert isinstance(engine, MlxEngine)
    for line in sys.stdin:
        asked = json.loads(line)
        options = Options(mode=Mode(asked["mode"]), **asked["options"])
        request = Request(Tokens(tuple(asked["prompt_ids"])), options)
        answer = collect(engine.run(Job(request, lambda _: None)))
        print(json.dumps(as_json(answer, engine.info, options, drafter=str(engine.info.drafters))), flush=True)
    engine.close()


if __name__ == "__main__":
    _serve()
