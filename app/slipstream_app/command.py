"""The `slipstream` command as installed: the command line, and the window when no command is given."""

from __future__ import annotations

import os
import signal
import sys

RACE = "uv run slipstream race"
NO_WINDOW = 1  # exit code


def main() -> int:
    # Until the command runs, and after it, Ctrl-C just ends the process: Python would print where it was importing.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not sys.argv[1:]:
        return open_window()  # without the command line's imports, which take longer than the window
    from slipstream import cli

    return cli.main(without_command=open_window)


def open_window(*, is_hidden: bool = False) -> int:
    """Open the window, or say why not and what to do instead; then the exit code is NO_WINDOW."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return cannot_open("There is no display to open a window on. The same race, in the terminal:")
    from importlib.util import find_spec

    if find_spec("PySide6") is None:
        return cannot_open("The window needs PySide6 (pip install PySide6-Essentials). Without it:")
    from slipstream_app.main import run

    why = "The window cannot be opened, as said above. The same race, in the terminal:"
    return run(is_hidden=is_hidden, cannot_open=lambda: cannot_open(why))


def cannot_open(why: str) -> int:
    """Said on stderr, with what works without a window."""
    print(f"{why}  {RACE}", file=sys.stderr, flush=True)
    return NO_WINDOW
