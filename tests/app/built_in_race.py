"""The built-in pair raced in the real window to its verdict, in a process of its own: it may use OpenBLAS.

    uv run python tests/app/built_in_race.py [--tokens 24] [--into picture.png] [--arms plain dspark auto]

Prints the verdict as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from slipstream.types import Mode
from slipstream_app import strings
from slipstream_app.bridge.pair import BUILT_IN
from slipstream_app.bridge.session import Session
from slipstream_app.main import make_context
from slipstream_app.settings import Settings
from slipstream_app.windows.shell import Shell

WAIT_S = 540.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--arms", nargs="+", default=["dspark", "auto"], help="beside plain")
    parser.add_argument("--into", type=Path, help="where a picture goes")
    args = parser.parse_args()
    application = QApplication([])
    strings.install(application, "en")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = Session()
        context = make_context(session, Settings(folder / "settings.ini"), folder)
        shell = Shell(context, folder / "log")
        told = race(shell, args)
        if args.into is not None:
            QTest.qWait(300)
            shell.window.grab().save(str(args.into))
        shell.quit()
        told["ended"] = session.stop()
        context.history.close()
        context.speeds.close()
    print(json.dumps(told))
    return 0


def race(shell: Shell, args: argparse.Namespace) -> dict[str, Any]:
    """As a person would: load, choose arms, start, wait for the verdict. Any: JSON."""
    shell.window.resize(1280, 800)
    shell.window.show()
    shell.window.go("race")
    shell.app.session.load(BUILT_IN)
    screen: Any = shell.window.screen_now
    wait(screen.setup.start.isEnabled)
    for mode, button in screen.setup.arm_buttons.items():
        if mode is not Mode.BASELINE and button.isChecked() != (mode.value in args.arms):
            button.click()
    screen.setup.tokens.setValue(args.tokens)
    screen.setup.trials.setValue(args.trials)
    screen.setup.temperature.setValue(args.temperature)
    screen.setup.start.click()
    wait(lambda: screen.result is not None and not screen.runner.is_running)
    result = screen.result
    return {
        "title": screen.verdict.grade.text(),
        "sentence": screen.verdict.sentence.text(),
        "verdict": result.race.verdict.value,
        "marks": [mark.english for mark in result.plan.marks],
        "tokens_per_round": {arm.mode.value: round(arm.tokens_per_round, 3) for arm in result.race.arms},
        "texts": sorted({run.answer.text for run in result.race.runs}),
        "costs": shell.app.session.costs,
    }


def wait(condition: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        QTest.qWait(50)


if __name__ == "__main__":
    sys.exit(main())
