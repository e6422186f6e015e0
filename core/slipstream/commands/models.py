"""`slipstream models list|search|pull|info|fit|rm|folders`: what is here, what could be, and whether it fits."""

from __future__ import annotations

import argparse
import json
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstream.errors import DownloadFailed, InvalidRequest, ModelNotFound
from slipstream.store import catalog, demo, heads, hub, local, removal
from slipstream.store.catalog import DrafterEntry, TargetEntry
from slipstream.store.local import Broken, Complete, LocalModel, Partial, Place, Role
from slipstream.store.sizes import words
from slipstream.types import Mode

if TYPE_CHECKING:
    from slipstream.store.candidate import Candidate
    from slipstream.store.download import Download
    from slipstream.store.download_state import Progress, State
    from slipstream.store.memory import Fit

WEIGHTS = (".safetensors", ".gguf")
OK, NO, STOPPED = 0, 1, 130


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("models", help="list, find, download, check and remove models")
    actions = parser.add_subparsers(title="actions", metavar="", required=True)

    def action(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        made.add_argument("--json", action="store_true", help="print JSON")
        made.set_defaults(run=run)
        return made

    action("list", _list, "list the models and drafters on this machine, and downloads that are not finished")
    search = action("search", _search, "find models in the catalogue and on the hub")
    search.add_argument("query", nargs="+")
    search.add_argument("--offline", action="store_true", help="look in the catalogue only")
    pull = action("pull", _pull, "download a model, or go on where a download ended")
    pull.add_argument("name", help="publisher/model on the hub, or a name from the catalogue such as Qwen3-4B")
    pull.add_argument("--revision", help="a branch, tag or commit (default: main)")
    pull.add_argument("--file", action="append", default=[], metavar="NAME", help="take this file too, such as a GGUF")
    pull.add_argument("--with-drafter", action="store_true", help="and the drafter that the catalogue has for it")
    pull.add_argument("--trust-remote-code", action="store_true", help="take a model that runs code of its own")
    info = action("info", _info, "show what is known of a model, here or on the hub")
    info.add_argument("name")
    fit = action("fit", _fit, "show whether a model fits into memory, and the numbers that decide")
    fit.add_argument("name", nargs="?", help="a model here, on the hub or in the catalogue (default: built-in pair)")
    fit.add_argument(
        "--drafter",
        action="append",
        help="with this drafter; may be repeated; 'none' for none (default: what would be loaded)",
    )
    fit.add_argument("--context", type=int, help="tokens of prompt and answer (default: the model's, at most 32768)")
    fit.add_argument("--kv-bits", type=int, choices=(0, 4, 8), default=0, help="with a packed KV cache")
    remove = action("rm", _remove, "remove a model: list its files, ask, and move them to the Bin where there is one")
    remove.add_argument("name")
    remove.add_argument("--revision", help="only this commit of a model in the Hugging Face cache")
    remove.add_argument("--yes", action="store_true", help="do not ask")
    remove.add_argument("--permanently", action="store_true", help="not to the Bin")
    folders = action("folders", _folders, "show, add or drop folders of your own to look for models in")
    folders.add_argument("--add", type=Path, metavar="DIR")
    folders.add_argument("--drop", type=Path, metavar="DIR")


# -- list


def _list(args: argparse.Namespace) -> int:
    found = local.scan()
    if args.json:
        return _print_json([_as_json(model) for model in found])
    complete = [model for model in found if model.is_complete]
    rows = [
        (
            model.name,
            model.role.value,
            model.quantisation or "",
            words(model.bytes),
            _tokens(model.context),
            model.place.value,
        )
        for model in complete
    ]
    _table(("NAME", "KIND", "BITS", "SIZE", "CONTEXT", "WHERE"), rows)
    if unfinished := [model for model in found if not model.is_complete]:
        print("\nnot usable:")
        for model in unfinished:
            print(f"  {model.name}: {_state(model)}")
    return OK


def _state(model: LocalModel) -> str:
    match model.state:
        case Complete():
            return "complete"
        case Partial(done, total):
            return f"incomplete, {words(done)} of {words(total)}; go on with: slipstream models pull {model.name}"
        case Broken(reason):
            return reason


# -- search


def _search(args: argparse.Namespace) -> int:
    query = " ".join(args.query)
    known = catalog.default().search(query)
    hits: list[hub.Hit] = []
    trouble = None
    if not args.offline:
        try:
            hits = hub.search(query)
        except DownloadFailed as error:
            trouble = error
    if args.json:
        if trouble is not None and not known:
            raise trouble
        return _print_json({"catalogue": [_plain(target) for target in known], "hub": [_plain(hit) for hit in hits]})
    for target in known:
        print(f"{target.name}  ({target.repo})")
        for bits, repo in (target.quants or {}).items():
            print(f"    {bits:6} {repo}")
        for drafter in target.drafters:
            print(f"    + {drafter.repo}{_expectation(drafter)}")
    if hits:
        print("on the hub:" if known else "", end="\n" if known else "")
        for hit in hits:
            marks = " ".join(mark for mark, is_so in (("MLX", hit.is_mlx), ("gated", hit.gated)) if is_so)
            print(f"    {hit.repo:60} {hit.downloads or 0:>10,} downloads  {marks}")
    if trouble is not None:
        print(f"slipstream: {trouble.message}", file=sys.stderr)
    if not known and not hits:
        print(f"nothing like {query!r} was found", file=sys.stderr)
        return NO
    return OK


def _expectation(drafter: DrafterEntry) -> str:
    said = [drafter.kind]
    if drafter.acceptance:
        said.append(f"{drafter.acceptance:g} tokens per pass")
    if drafter.speedup:
        said.append(f"{drafter.speedup:g}x ({drafter.measured})")
    return f"  [{', '.join(said)}]"


# -- pull


def _pull(args: argparse.Namespace) -> int:
    repo, target = _repository(args.name)
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


def _repository(name: str) -> tuple[str, TargetEntry | None]:
    """A hub name, from the catalogue where there is no publisher in it."""
    known = catalog.default()
    target = known.find(name)
    if "/" in name:
        return name, target
    if target is None:
        raise ModelNotFound(f"the catalogue has no {name}; write it as publisher/model, or search for it")
    return (target.quants or {}).get(target.recommended or "", target.repo), target


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
                _say_fit(folder)
            return OK
        case Paused(progress):
            if not args.json:
                have = f"; {words(progress.done)} of {words(progress.total)} are kept" if progress else ""
                print(f"paused{have}; go on with: slipstream models pull {repo}", file=sys.stderr)
            return STOPPED
        case Failed(error):
            raise error


def _say_fit(folder: Path) -> None:
    from slipstream.store import files, memory

    if (folder / "config.json").is_file() and not files.is_drafter(files.read_config(folder)):
        found = memory.fit(folder)
        print(f"memory: {_fit_line(found)}", file=sys.stderr)


class _Bars:
    """Progress for people: a bar for each file on a terminal, a line now and then elsewhere."""

    def __init__(self, repo: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        self._repo = repo
        self._console = Console(stderr=True)
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
            line |= _plain(state)
        text = json.dumps(line)
        if text != self._last:
            self._last = text
            print(text, flush=True)


# -- info and fit


def _info(args: argparse.Namespace) -> int:
    target = catalog.default().find(args.name)
    pair = catalog.default().drafter(args.name)
    here = _here(args.name)
    remote = None
    if here is None and "/" in args.name:
        remote = hub.look(args.name)
    if here is None and remote is None and target is None:
        local.find(args.name)  # says what is wrong with the name
    if args.json:
        return _print_json(
            {
                "local": _as_json(here) if here else None,
                "hub": _plain(remote) if remote else None,
                "catalogue": _plain(target) if target else _plain(pair[1]) if pair else None,
            }
        )
    if here is not None:
        _pairs(
            {
                "name": here.name,
                "kind": here.role.value,
                "state": _state(here),
                "where": here.place.value,
                "path": str(here.path),
                "size": words(here.bytes),
                "bits": here.quantisation,
                "MTP heads": "yes" if here.path.is_dir() and heads.has(here.path) else None,
                "architecture": here.model_type,
                "context": _tokens(here.context),
                "commit": here.revision,
            }
        )
    if remote is not None:
        _pairs(
            {
                "name": remote.repo,
                "state": "on the hub, not here",
                "commit": remote.commit,
                "licence": remote.licence,
                "gated": "yes" if remote.gated else None,
                "made from": ", ".join(remote.base_models) or None,
                "download": f"{len(remote.files)} files, {words(remote.bytes)}",
            }
        )
        for left in remote.left_out:
            print(f"  left out: {left.name} ({words(left.size)}): {left.reason}")
    if target is not None:
        print(f"\nin the catalogue: {target.name}{f' ({target.note})' if target.note else ''}; source: {target.source}")
        for drafter in target.drafters:
            state = _here(drafter.repo)
            print(f"  drafter {drafter.repo}{_expectation(drafter)}{'  here' if state and state.is_complete else ''}")
    elif pair is not None:
        print(f"\na drafter for {pair[0].name} ({pair[0].repo}){_expectation(pair[1])}; source: {pair[1].source}")
    return OK


def _here(name: str) -> LocalModel | None:
    try:
        return local.find(name)
    except ModelNotFound:
        return None


def _fit(args: argparse.Namespace) -> int:
    from slipstream.store import memory

    if args.context is not None and args.context < 1:
        raise InvalidRequest("--context must be at least 1")
    name, target, folder = _candidate(args.name or demo.NAME)
    given: list[str] | None = args.drafter
    if given is None:
        given = ["mtp"] if folder is not None and heads.has(folder) else []
        if args.name is None:
            given = [str(demo.drafters()[Mode.DSPARK])]
    drafters = [_drafter(drafter, folder) for drafter in given if drafter != "none"]
    found = memory.fit(target, drafters, context=args.context, kv_bits=args.kv_bits)
    if args.json:
        return _print_json(
            {
                "name": name,
                "verdict": found.verdict.value,
                "total": found.total,
                **_plain(found),
            }
        )
    print(f"{name}: {_fit_line(found)}")
    _pairs(
        {
            "weights": words(found.target),
            "drafter": words(found.drafter) if found.drafter else None,
            f"cache at {found.context:,} tokens": words(found.kv)
            if found.is_known
            else "unknown for this architecture",
            "drafter's cache": words(found.drafter_kv) if found.drafter_kv else None,
            "working memory": words(found.working),
            "only while loading": words(found.loading) if found.loading else None,
            "at most": words(found.total),
            found.limit.kind: f"{words(found.limit.bytes)} (this machine has {words(found.limit.machine)})",
            "longest context that fits": _tokens(found.longest_context) or "none",
        }
    )
    return OK if found.verdict is not memory.Verdict.TOO_LARGE else NO


def _fit_line(found: Fit) -> str:
    share = f"{words(found.total)} of {words(found.limit.bytes)} {found.limit.kind} at {found.context:,} tokens"
    return f"{found.verdict.value}: {share}"


def _candidate(name: str) -> tuple[str, Candidate, Path | None]:
    """A model's numbers, from its folder or file, or from the hub without downloading it; and where it is."""
    from slipstream.store import candidate

    path = Path(name).expanduser()
    if path.is_dir():
        return path.name, candidate.of_folder(path), path
    if path.is_file():
        return path.name, candidate.of_gguf(path), None
    here = _here(name)
    if here is not None and (here.is_complete or "/" not in name):
        if here.is_complete and here.path.is_file():
            return here.name, candidate.of_gguf(here.path), None
        folder = local.folder_of(here)
        return here.name, candidate.of_folder(folder), folder
    repo, _ = _repository(name)
    remote = hub.look(repo)
    config = hub.read_json(remote, "config.json")
    if config is None:
        raise ModelNotFound(f"{repo} has no config.json, so its size in memory cannot be known; choose another model")
    stored = sum(file.size for file in remote.files if file.name.endswith(WEIGHTS))
    return repo, candidate.of_config(config, stored), None


def _drafter(name: str, target: Path | None) -> Candidate:
    from slipstream.store import candidate

    if name == "mtp":
        if target is None or not heads.has(target):
            raise InvalidRequest("the model has no MTP heads in its folder; name a drafter, or leave --drafter out")
        return candidate.of_drafter(target)
    _, found, folder = _candidate(name)
    return found if folder is None else candidate.of_drafter(folder)


# -- rm and folders


def _remove(args: argparse.Namespace) -> int:
    plan = removal.plan(local.find(args.name), revision=args.revision)
    if args.json and not args.yes:
        return _print_json(_removal_json(plan))
    if not args.json:
        for path, size in plan.files:
            print(f"  {size:>15,}  {path}")
        print(f"{len(plan.files)} files, {plan.bytes:,} bytes ({words(plan.bytes)})")
        for path, why in plan.kept:
            print(f"stays: {path} ({why})")
        if plan.shared_with:
            print(f"{plan.shared_with} reads this folder too")
    if not args.yes:
        try:
            answer = input(f"remove {plan.model.name}? [y/N] ")
        except EOFError:
            answer = ""
        if answer.strip().lower() not in ("y", "yes"):
            print("nothing was removed")
            return NO
    where = removal.remove(plan, permanently=args.permanently)
    if args.json:
        return _print_json(_removal_json(plan) | {"now": where})
    print(f"{plan.model.name} is {where}" + ("; empty it to free the space" if "Bin" in where else ""))
    return OK


def _removal_json(plan: removal.Removal) -> dict[str, Any]:
    return {
        "name": plan.model.name,
        "bytes": plan.bytes,
        "files": [{"path": str(path), "bytes": size} for path, size in plan.files],
        "kept": [{"path": str(path), "why": why} for path, why in plan.kept],
        "shared_with": plan.shared_with,
    }


def _folders(args: argparse.Namespace) -> int:
    if args.add is not None:
        local.add_folder(args.add)
    if args.drop is not None:
        local.remove_folder(args.drop)
    folders = [str(folder) for folder in local.own_folders()]
    if args.json:
        return _print_json(folders)
    print(
        "\n".join(folders) if folders else "no folders of your own; add one with: slipstream models folders --add DIR"
    )
    return OK


# -- words and tables


def _tokens(count: int | None) -> str:
    return f"{count:,}" if count else ""


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _pairs(items: dict[str, str | None]) -> None:
    shown = {key: value for key, value in items.items() if value}
    width = max(map(len, shown))
    for key, value in shown.items():
        print(f"  {key:{width}}  {value}")


def _print_json(data: object) -> int:
    print(json.dumps(data, indent=2, ensure_ascii=False))
    return OK


def _as_json(model: LocalModel) -> dict[str, Any]:
    state = model.state
    known = (
        catalog.default().find(model.name) if model.role is Role.TARGET and model.place is not Place.BUILT_IN else None
    )
    return _plain(model) | {
        "state": type(state).__name__.lower(),
        "reason": state.reason if isinstance(state, Broken) else None,
        "done": state.done if isinstance(state, Partial) else None,
        "total": state.total if isinstance(state, Partial) else None,
        "drafters": [drafter.repo for drafter in known.drafters] if known else [],
    }


def _plain(value: Any) -> Any:
    """A dataclass as what JSON can say. Any: whatever a dataclass may hold."""

    def simple(item: Any) -> Any:
        match item:
            case Enum():
                return item.value
            case Path():
                return str(item)
            case dict():
                return {str(key): simple(each) for key, each in item.items()}
            case list() | tuple():
                return [simple(each) for each in item]
            case _:
                return item

    return simple(asdict(value))
