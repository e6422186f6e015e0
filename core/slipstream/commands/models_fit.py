"""`slipstream models info|fit`: what is known of a model, here or on the hub, and whether it fits into memory."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from slipstream.commands.models_words import (
    NO,
    OK,
    as_json,
    expectation,
    fit_line,
    here_as,
    pairs,
    plain,
    print_indented,
    repository,
    state_of,
    tokens,
)
from slipstream.errors import InvalidRequest, ModelNotFound
from slipstream.store import catalog, demo, heads, hub, local, paths
from slipstream.store.sizes import words
from slipstream.types import Mode

if TYPE_CHECKING:
    from slipstream.store.candidate import Candidate

WEIGHTS = (".safetensors", ".gguf")
MOST_CONTEXT = 10**9


def info(args: argparse.Namespace) -> int:
    target = catalog.default().find(args.name)
    pair = catalog.default().drafter(args.name)
    here = here_as(args.name)
    remote = None
    if here is None and "/" in args.name:
        remote = hub.look(args.name)
    if here is None and remote is None and target is None:
        local.find(args.name)  # says what is wrong with the name
    if args.json:
        return print_indented(
            {
                "local": as_json(here) if here else None,
                "hub": plain(remote) if remote else None,
                "catalogue": plain(target) if target else plain(pair[1]) if pair else None,
            }
        )
    if here is not None:
        pairs(
            {
                "name": here.name,
                "kind": here.role.value,
                "state": state_of(here),
                "where": here.place.value,
                "path": str(here.path),
                "size": words(here.bytes),
                "bits": here.quantisation,
                "MTP heads": "yes" if here.path.is_dir() and heads.has(here.path) else None,
                "architecture": here.model_type,
                "context": tokens(here.context),
                "commit": here.revision,
            }
        )
    if remote is not None:
        pairs(
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
            state = here_as(drafter.repo)
            print(f"  drafter {drafter.repo}{expectation(drafter)}{'  here' if state and state.is_complete else ''}")
    elif pair is not None:
        print(f"\na drafter for {pair[0].name} ({pair[0].repo}){expectation(pair[1])}; source: {pair[1].source}")
    return OK


def fit(args: argparse.Namespace) -> int:
    from slipstream.store import memory

    if args.context is not None and not 1 <= args.context <= MOST_CONTEXT:
        raise InvalidRequest(f"--context must be from 1 to {MOST_CONTEXT:,}, not {args.context}")
    name, target, folder = _candidate(args.name or demo.NAME)
    given: list[str] | None = args.drafter
    if given is None:
        given = ["mtp"] if folder is not None and heads.has(folder) else []
        if args.name is None:
            given = [str(demo.drafters()[Mode.DSPARK])]
    drafters = [_drafter(drafter, folder) for drafter in given if drafter != "none"]
    found = memory.fit(target, drafters, context=args.context, kv_bits=args.kv_bits)
    if args.json:
        return print_indented(
            {
                "name": name,
                "verdict": found.verdict.value,
                "total": found.total,
                **plain(found),
            }
        )
    print(f"{name}: {fit_line(found)}")
    pairs(
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
            "longest context that fits": tokens(found.longest_context) or "none",
        }
    )
    return OK if found.verdict is not memory.Verdict.TOO_LARGE else NO


def _candidate(name: str) -> tuple[str, Candidate, Path | None]:
    """A model's numbers, from its folder or file, or from the hub without downloading it; and where it is."""
    from slipstream.store import candidate

    path = paths.expanded(name)
    if path.is_dir():
        return path.name, candidate.of_folder(path), path
    if path.is_file():
        return path.name, candidate.of_gguf(path), None
    here = here_as(name)
    if here is not None and (here.is_complete or "/" not in name):
        if here.is_complete and here.path.is_file():
            return here.name, candidate.of_gguf(here.path), None
        folder = local.folder_of(here)
        return here.name, candidate.of_folder(folder), folder
    repo, _ = repository(name)
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
