"""`slipstream models list|search|pull|info|fit|rm|folders`: what is here, what could be, and whether it fits."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slipstream.commands.models_fit import fit, info
from slipstream.commands.models_pull import pull
from slipstream.commands.models_words import (
    NO,
    OK,
    as_json,
    expectation,
    plain,
    print_indented,
    state_of,
    table,
    tokens,
)
from slipstream.errors import DownloadFailed
from slipstream.store import catalog, hub, local, own_folders, removal
from slipstream.store.sizes import words


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("models", help="list, find, download, check and remove models")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        made.add_argument("--json", action="store_true", help="print JSON")
        made.set_defaults(run=run)
        return made

    action("list", _list, "list the models and drafters on this machine, and downloads that are not finished")
    search = action("search", _search, "find models in the catalogue and on the hub")
    search.add_argument("query", nargs="+")
    search.add_argument("--offline", action="store_true", help="look in the catalogue only")
    pulled = action("pull", pull, "download a model, or go on where a download ended")
    pulled.add_argument("name", help="publisher/model on the hub, or a name from the catalogue such as Qwen3-4B")
    pulled.add_argument("--revision", help="a branch, tag or commit (default: main)")
    pulled.add_argument(
        "--file", action="append", default=[], metavar="NAME", help="take this file too, such as a GGUF"
    )
    pulled.add_argument("--with-drafter", action="store_true", help="and the drafter that the catalogue has for it")
    pulled.add_argument("--trust-remote-code", action="store_true", help="take a model that runs code of its own")
    known = action("info", info, "show what is known of a model, here or on the hub")
    known.add_argument("name")
    fitting = action("fit", fit, "show whether a model fits into memory, and the numbers that decide")
    fitting.add_argument(
        "name", nargs="?", help="a model here, on the hub or in the catalogue (default: built-in pair)"
    )
    fitting.add_argument(
        "--drafter",
        action="append",
        help="with this drafter; may be repeated; 'none' for none (default: what would be loaded)",
    )
    fitting.add_argument(
        "--context", type=int, help="tokens of prompt and answer (default: the model's, at most 32768)"
    )
    fitting.add_argument("--kv-bits", type=int, choices=(0, 4, 8), default=0, help="with a packed KV cache")
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
        return print_indented([as_json(model) for model in found])
    complete = [model for model in found if model.is_complete]
    rows = [
        (
            model.name,
            model.role.value,
            model.quantisation or "",
            words(model.bytes),
            tokens(model.context),
            model.place.value,
        )
        for model in complete
    ]
    table(("NAME", "KIND", "BITS", "SIZE", "CONTEXT", "WHERE"), rows)
    if unfinished := [model for model in found if not model.is_complete]:
        print("\nnot usable:")
        for model in unfinished:
            print(f"  {model.name}: {state_of(model)}")
    return OK


# -- search


def _search(args: argparse.Namespace) -> int:
    query = " ".join(args.query)
    known = catalog.default().search(query)
    if not args.json:
        for target in known:
            _print_known(target)
        sys.stdout.flush()  # the hub may take its time
    hits: list[hub.Hit] = []
    trouble = None
    if not args.offline:
        if not args.json and sys.stderr.isatty():
            print(f"asking {hub.host()}…", file=sys.stderr)
        try:
            hits = hub.search(query)
        except DownloadFailed as error:
            trouble = error
    if args.json:
        if trouble is not None and not known:
            raise trouble
        return print_indented({"catalogue": [plain(target) for target in known], "hub": [plain(hit) for hit in hits]})
    if hits:
        print(f"on the hub ({hub.host()}):")
        for hit in hits:
            marks = " ".join(mark for mark, is_so in (("MLX", hit.is_mlx), ("gated", hit.gated)) if is_so)
            print(f"    {hit.repo:60} {hit.downloads or 0:>10,} downloads  {marks}")
    if trouble is not None:
        print(f"slipstream: {trouble.message}", file=sys.stderr)
    if not known and not hits:
        print(f"nothing like {query!r} was found", file=sys.stderr)
        return NO
    return OK


def _print_known(target: catalog.TargetEntry) -> None:
    print(f"{target.name}  ({target.repo})")
    for bits, repo in (target.quants or {}).items():
        print(f"    {bits:6} {repo}")
    for drafter in target.drafters:
        print(f"    + {drafter.repo}{expectation(drafter)}")


# -- rm and folders


def _remove(args: argparse.Namespace) -> int:
    plan = removal.plan(local.find(args.name), revision=args.revision)
    if args.json and not args.yes:
        return print_indented(_removal_json(plan))
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
        return print_indented(_removal_json(plan) | {"now": where})
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
        own_folders.add(args.add)
    if args.drop is not None:
        own_folders.remove(args.drop)
    folders = [str(folder) for folder in own_folders.listed()]
    if args.json:
        return print_indented(folders)
    print(
        "\n".join(folders) if folders else "no folders of your own; add one with: slipstream models folders --add DIR"
    )
    return OK
