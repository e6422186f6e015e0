"""What can be printed where, and files that a command was told to write."""

from __future__ import annotations

import codecs
import json
import os
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from slipstream.errors import InvalidRequest
from slipstream.store.atomic import write_text

if TYPE_CHECKING:  # rich takes a while to import, and the window starts through here
    from rich.console import Console


UNFOLDED = 1000  # columns: no line of ours is as long


def console(*, stderr: bool = False) -> Console:
    """As wide as the terminal. What goes to a file or a program is not folded: each line stays one."""
    from rich.console import Console

    is_terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, width=None if is_terminal else UNFOLDED)


@contextmanager
def progress() -> Generator[Callable[[str, int, int], None]]:
    """A bar on a terminal's stderr, and nothing elsewhere. It is told of what is measured, how many of how many."""
    from rich.progress import BarColumn, Progress, TextColumn

    terminal = console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total}"),
        console=terminal,
        transient=True,
        disable=not terminal.is_terminal,
    )
    with bar:
        task = bar.add_task("measuring", total=None)
        yield lambda what, done, total: bar.update(task, description=f"measuring {what}", completed=done, total=total)


def can_say_everything(stream: TextIO) -> bool:
    """Whether every character can be written to it."""
    try:
        return codecs.lookup(stream.encoding or "ascii").name.startswith("utf")
    except LookupError:
        return False


def print_json(data: Any) -> None:  # Any: a JSON document
    """One line on stdout that stays valid JSON whatever the terminal can show."""
    print(json.dumps(data, ensure_ascii=not can_say_everything(sys.stdout)))


def check_file(option: str, file: Path | None) -> None:
    """Before the work that would fill it. Raises InvalidRequest for a file that could not be written."""
    if file is None:
        return
    is_possible = not file.is_dir() if file.exists() else file.parent.is_dir()
    if not is_possible or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise InvalidRequest(
            f"{option} cannot be written to {file}; give a file in a folder that exists and may be written to",
            option=option,
        )


def write_file(file: Path, text: str) -> None:
    """What stands there is replaced whole; a device or a pipe is written to. Raises InvalidRequest."""
    try:
        if os.access(file.parent, os.W_OK) and (file.is_file() or not file.exists()):
            write_text(file.resolve(), text, stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o666)
        else:
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be written ({error.strerror}); give another file") from error
