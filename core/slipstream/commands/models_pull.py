"""`slipstream models pull`: a download, with its progress for people or as lines of JSON."""

from __future__ import annotations

import argparse
import json
import queue
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstream.commands import output
from slipstream.commands.models_words import (
    OK,
    STOPPED,
    fit_line,
    plain,
    repository,
)
from slipstream.errors import InvalidRequest
from slipstream.store import hub
from slipstream.store.sizes import words

if TYPE_CHECKING:
    from slipstream.store.download import Download
    from slipstream.store.download_state import Progress, State


def pull(args: argparse.Namespace) -> int:
    repo, target = repository(args.name)
    repos = [repo]
    if args.with_drafter:
        if target is None or not target.drafters:
            raise InvalidRequest(f"the catalogue has no drafter for {repo}; leave --with-drafter out")
        repos.append(target.drafters[0].repo)
    status = OK
    for number, each in enumerate(repos):
        files = args.file if number == 0 else [f for f in [target.drafters[0].file if target else None] if f]
        status = _pull_one(each, args, files, revision=args.revision if number == 0 else None)
        if status != OK:
            return status
    if not args.with_drafter and not args.json and target is not None and target.drafters:
        print(f"a drafter for it: slipstream models pull {target.drafters[0].repo}", file=sys.stderr)
    return status


def _pull_one(repo: str, args: argparse.Namespace, files: Sequence[str], *, revision: str | None) -> int:
    from slipstream.store.download import Download
    from slipstream.store.download_state import Failed, Finished, Paused

    show = _JsonLines(repo) if args.json else _Bars(repo)
    news: queue.SimpleQueue[State] = queue.SimpleQueue()
    download = Download(repo, news.put, revision=revision, include=files, code=args.trust_remote_code)
    # Beside the main thread, which alone gets Ctrl-C. A daemon: what it wrote stays good if we end before it.
    threading.Thread(target=download.run, name="store", daemon=True).start()
    while True:
        try:
            state = news.get()
            show(download, state)
            if isinstance(state, Finished | Paused | Failed):
                break
        except KeyboardInterrupt:
            download.pause()
    match state:
        case Finished(folder, fetched):
            if not args.json:
                print(f"{repo} is complete ({words(fetched)} fetched): {folder}", file=sys.stderr)
                say_fit(folder)
            return OK
        case Paused(progress):
            if not args.json:
                have = f"; {words(progress.done)} of {words(progress.total)} are kept" if progress else ""
                print(f"paused{have}; go on with: slipstream models pull {repo}", file=sys.stderr)
            return STOPPED
        case Failed(error):
            raise error


class _Bars:
    """Progress for people: a bar for each file on a terminal, a line now and then elsewhere."""

    def __init__(self, repo: str) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        self._repo = repo
        self._console = output.console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=self._console,
        )
        self._tasks: dict[str, Any] = {}  # rich's own ids
        self._said = ""
        self._quarters = -1
        self._wait_s = 0.0  # as last said; it counts down, so a longer one is another try

    def __call__(self, download: Download, state: State) -> None:
        from slipstream.store.download_state import Fetching, Finished, Looking, Retrying

        match state:
            case Looking():
                self._say(f"looking at {self._repo}")
            case Fetching(progress):
                self._show(download, progress)
            case Retrying(progress, reason, wait_s):
                if progress is not None:
                    self._show(download, progress)
                if wait_s > self._wait_s:
                    self._said = ""
                self._wait_s = wait_s
                self._say(f"{reason} (again in {wait_s:.0f} s)" if wait_s >= 1 else reason)
            case _:
                if isinstance(state, Finished) and self._tasks:
                    for task in self._tasks.values():
                        self._bars.update(task, completed=self._bars.tasks[task].total)
                self._bars.stop()

    def _say(self, text: str) -> None:
        key = text.partition(" (again")[0]
        if key != self._said:  # the seconds count down; once is enough
            self._said = key
            self._console.print(text, highlight=False, markup=False)

    def _show(self, download: Download, progress: Progress) -> None:
        if not self._tasks:
            self._introduce(download, progress)
        if not self._console.is_terminal:
            quarters = int(4 * progress.done / max(progress.total, 1))
            if quarters > self._quarters:
                self._quarters = quarters
                self._say(f"{words(progress.done)} of {words(progress.total)}")
            return
        for file in progress.files:
            self._bars.update(self._tasks[file.name], completed=file.done)

    def _introduce(self, download: Download, progress: Progress) -> None:
        remote = download.remote
        at = f" at {remote.commit[:12]}" if remote else ", continued"
        self._say(f"{self._repo}{at}: {len(progress.files)} files, {words(progress.total)}")
        for left in remote.left_out if remote else ():
            if left.reason != hub.OTHER:
                self._say(f"left out: {left.name} ({words(left.size)}): {left.reason}")
        for file in progress.files:
            self._tasks[file.name] = self._bars.add_task(file.name, total=file.size, completed=file.done)
        if self._console.is_terminal:
            self._bars.start()


class _JsonLines:
    """Each state as one line, for programs."""

    def __init__(self, repo: str) -> None:
        self._repo = repo
        self._last = ""

    def __call__(self, download: Download, state: State) -> None:
        from slipstream.store.download_state import Failed

        line: dict[str, Any] = {"repo": self._repo, "state": type(state).__name__.lower()}
        if isinstance(state, Failed):
            line |= {"error": state.error.code, "message": state.error.message}
        else:
            line |= plain(state)
        text = json.dumps(line)
        if text != self._last:
            self._last = text
            print(text, flush=True)


def say_fit(folder: Path) -> None:
    from slipstream.store import files, memory

    if (folder / "config.json").is_file() and not files.is_drafter(files.read_config(folder)):
        found = memory.fit(folder)
        print(f"memory: {fit_line(found)}", file=sys.stderr)
