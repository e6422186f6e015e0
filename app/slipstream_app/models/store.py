"""The core's store as the Models screen asks it: pairs out of what is on disk and in the catalogue, fit, downloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from slipstream.errors import InvalidRequest
from slipstream.store import (
    candidate,
    catalog,
    demo,
    download_state,
    downloads,
    files,
    heads,
    hub,
    local,
    memory,
    own_folders,
    preferences,
    removal,
)
from slipstream.store import token as tokens
from slipstream.store.catalog import DrafterEntry, TargetEntry
from slipstream.store.licence import licence_of
from slipstream.store.local import Broken, Complete, LocalModel, Partial, Place, Role
from slipstream.train import made
from slipstream.types import Mode
from slipstream_app.bridge.pair import BUILT_IN, PairChoice, made_choice
from slipstream_app.models.fetch_state import fetch_state
from slipstream_app.models.pairs import (
    DownloadState,
    Fetch,
    FitWord,
    Half,
    Missing,
    PairFit,
    PairRow,
    RemovalPlan,
    Shelf,
)
from slipstream_app.models.suggest import target_bytes
from slipstream_app.numbers import close_text, number_text
from slipstream_app.strings import mark, shown

IN_TARGET = "in target"  # the packaging of heads that come with the model
KINDS = {"dspark": "DSpark", "dflash": "DFlash", "dflash2": "DFlash 2", "mtp": "MTP"}
MODES = {"dspark": Mode.DSPARK, "dflash": Mode.DFLASH, "dflash2": Mode.DFLASH, "mtp": Mode.MTP}
BUILT_IN_LICENCES = {Role.TARGET: "apache-2.0", Role.DRAFTER: "mit"}  # THIRD_PARTY_NOTICES.md, LICENSE
WORDS = {
    memory.Verdict.FITS: FitWord.FITS,
    memory.Verdict.TIGHT: FitWord.TIGHT,
    memory.Verdict.TOO_LARGE: FitWord.TOO_LARGE,
}


@dataclass(frozen=True, slots=True)
class _Halves:
    """What a row is made of, for fit and removal."""

    target: LocalModel | None
    drafters: tuple[LocalModel, ...] = ()
    entry: TargetEntry | None = None
    drafter: DrafterEntry | None = None
    goes: LocalModel | None = None  # what deleting the row means, where that is not the target


class CoreStore:
    """Made on the main thread, asked on others; the last answer to `pairs` says what the keys mean."""

    def __init__(self, notify: Callable[[DownloadState], None]) -> None:
        self._notify = notify
        self._halves: dict[str, _Halves] = {}
        self._candidates: dict[str, candidate.Candidate] = {}  # of pairs that are not here, once the hub was asked
        self._downloads: downloads.Downloads | None = None  # its thread begins with the first download
        self._limit: memory.Limit | None = None
        self._token: str | None = None  # ours; asking the Keychain for it may take a while

    def pairs(self) -> Sequence[PairRow]:
        self._token = tokens.saved()
        found = local.scan()
        halves: dict[str, _Halves] = {}
        rows: list[PairRow] = []

        def add(row: PairRow, of: _Halves) -> None:
            rows.append(row)
            halves[row.key] = of

        trained = made.made_drafters()
        drafters = [model for model in found if model.role is Role.DRAFTER and model.is_complete]
        own = [model for model in found if model.place is Place.BUILT_IN]
        if targets := [model for model in own if model.role is Role.TARGET and model.is_complete]:
            of = _Halves(targets[0], tuple(model for model in own if model.role is Role.DRAFTER))
            size = sum(model.bytes for model in own)
            halves_ = tuple(_half(model, BUILT_IN_LICENCES[model.role]) for model in own)
            row = PairRow(
                "built in",
                BUILT_IN,
                Shelf.ON_MAC,
                _bits(targets[0]),
                size,
                targets[0].context,
                place=Place.BUILT_IN,
                halves=halves_,
                modes=(*demo.DRAFTERS,),
            )
            add(row, of)
            for drafter in made.made_for(demo.NAME, {}, trained):
                add(*_made_row(BUILT_IN.title.partition(" + ")[0], None, targets[0], drafter))
        known = catalog.default()
        for model in found:
            if model.role is not Role.TARGET or model.place is Place.BUILT_IN or isinstance(model.state, Partial):
                continue
            for row, of in _rows_of(model, known, drafters):
                add(row, of)
            short = model.name.rpartition("/")[2]
            config = files.read_config(model.path)
            for drafter in made.made_for(model.name, config, trained) if model.is_complete else ():
                add(*_made_row(short, model.name, model, drafter))
        here = {entry.name for of in halves.values() if (entry := of.entry) is not None}
        for entry in known.targets:
            if entry.name not in here:
                add(*_suggestion(entry, drafters))
        self._halves = halves
        return rows

    def unfinished(self) -> Sequence[DownloadState]:
        return [
            DownloadState(model.name, Fetch.PAUSED, model.state.done, model.state.total)
            for model in local.scan()
            if isinstance(model.state, Partial)
        ]

    def fit(self, row: PairRow, context: int, kv_bits: int) -> PairFit:
        of = self._halves.get(row.key)
        if of is None or row.problem:
            return PairFit(FitWord.UNKNOWN)
        limit = self._limit = self._limit or memory.limit()
        context = min(context, row.context or context)
        is_estimate = lacks_drafter = False
        if of.target is not None:
            folders = [local.folder_of(model) for model in of.drafters]
            if row.choice.drafters is None and heads.has(of.target.path):
                folders.append(of.target.path)
            told = memory.fit(_numbers_of(of.target), folders, context=context, kv_bits=kv_bits, against=limit)
        elif (remote := self._candidates.get(row.key) or _published(row, of.entry)) is not None:
            beside = of.drafter if of.drafter is not None and of.drafter.packaging != IN_TARGET else None
            size = None if beside is None else beside.bytes
            drafters = () if size is None else (candidate.of_config({}, size),)
            told = memory.fit(remote, drafters, context=context, kv_bits=kv_bits, against=limit)
            is_estimate = row.key not in self._candidates
            lacks_drafter = beside is not None and size is None
        else:
            # Weights alone that are too large settle it; the rest is known when the hub was asked.
            is_hopeless = row.bytes is not None and limit.on_gpu and row.bytes > limit.bytes
            if not is_hopeless or row.bytes is None:
                return PairFit(FitWord.UNKNOWN)
            return PairFit(FitWord.TOO_LARGE, row.bytes, limit=limit.bytes, limit_name=limit.kind)
        if not told.is_known:
            return PairFit(FitWord.UNKNOWN)
        return PairFit(
            WORDS[told.verdict],
            told.target,
            told.drafter + told.drafter_kv,
            told.kv,
            told.working,
            limit.bytes,
            limit.kind,
            told.longest_context,
            told.loading,
            is_estimate,
            lacks_drafter,
        )

    def look_up(self, row: PairRow) -> None:
        of = self._halves.get(row.key)
        target = next(iter(row.missing), None)
        if of is None or of.target is not None or target is None:
            return
        remote = hub.look(target.repo, token=self._token)
        config = hub.read_json(remote, "config.json", token=self._token)
        if config is None:
            raise InvalidRequest(
                f"{target.repo} has no config.json, so its memory cannot be worked out before it is here"
            )
        stored = sum(file.size for file in remote.files if file.name.endswith(".safetensors"))
        self._candidates[row.key] = candidate.of_config(config, stored)

    def plan_removal(self, row: PairRow) -> RemovalPlan:
        of = self._halves.get(row.key)
        if of is None or of.target is None:
            raise InvalidRequest(f"{row.title} is not on this machine; choose another pair")
        if of.goes is not None:
            going = removal.plan(of.goes)
            return RemovalPlan(of.goes.name, going.files, ((of.target.path, "the model"),), "", going)
        going = removal.plan(of.target)
        kept = [*going.kept, *((model.path, "the drafter, which other pairs may use") for model in of.drafters)]
        return RemovalPlan(of.target.name, going.files, tuple(kept), going.shared_with or "", going)

    def remove(self, plan: RemovalPlan) -> str:
        assert isinstance(plan.handle, removal.Removal)
        return removal.remove(plan.handle)

    def target_numbers(self, row: PairRow) -> candidate.Candidate:
        of = self._halves.get(row.key)
        if of is None or of.target is None:
            raise InvalidRequest(f"{row.title} is not on this machine; choose another pair")
        return _numbers_of(of.target)

    def add_folder(self, folder: Path) -> None:
        own_folders.add(folder)

    def save_token(self, token: str) -> None:
        tokens.save(token)
        self._token = tokens.saved()

    def start(self, missing: Missing) -> None:
        if self._downloads is None:
            self._downloads = downloads.Downloads(lambda repo, state: self._notify(fetch_state(repo, state)))
        self._downloads.start(missing.repo, include=missing.files, token=self._token)
        self._notify(fetch_state(missing.repo, self._downloads.states.get(missing.repo, download_state.Waiting())))

    def discard(self, repo: str) -> None:
        for model in local.scan():
            if model.name == repo and isinstance(model.state, Partial):
                removal.remove(removal.plan(model), permanently=True)

    def pause(self, repo: str) -> None:
        if self._downloads is not None:
            self._downloads.pause(repo)

    def close(self) -> None:
        if self._downloads is not None:
            self._downloads.close()
            self._downloads = None


def open_store(notify: Callable[[DownloadState], None]) -> CoreStore:
    return CoreStore(notify)


def _rows_of(
    model: LocalModel, known: catalog.Catalog, drafters: Sequence[LocalModel]
) -> list[tuple[PairRow, _Halves]]:
    """A row for each drafter that is here; one that names what is missing; or the model alone."""
    entry = known.find(model.name)
    problem = model.state.reason if isinstance(model.state, Broken) else ""
    short = model.name.rpartition("/")[2]

    def row(
        title: str,
        drafter: LocalModel | None,
        own: tuple[str, ...] | None,
        missing: tuple[Missing, ...] = (),
        modes: tuple[Mode, ...] = (),
    ) -> PairRow:
        halves = [_half(model, entry.licence if entry else None)]
        if drafter is not None:
            found = known.drafter(drafter.name)
            halves.append(_half(drafter, found[1].licence if found else None))
        return PairRow(
            key=f"{model.name} + {drafter.name if drafter else ''}",
            choice=PairChoice(title, model.name, own),
            shelf=Shelf.ON_MAC,
            bits=_bits(model),
            bytes=model.bytes + (drafter.bytes if drafter else 0),
            context=model.context,
            missing=missing,
            problem=problem,
            place=model.place,
            folder=model.path,
            halves=tuple(halves),
            modes=modes,
            is_removable=True,
        )

    matching = [each for each in drafters if (pair := known.drafter(each.name)) is not None and pair[0] == entry]
    made = [
        (
            row(f"{short} + {_kind(known, each.name)}", each, (each.name,), modes=_modes(known, each.name)),
            _Halves(model, (each,), entry),
        )
        for each in matching
    ]
    if made:
        return made
    best = entry.drafters[0] if entry is not None and entry.drafters else None
    if heads.has(model.path) and (best is None or best.packaging == IN_TARGET):
        return [(row(f"{short} + MTP", None, None, modes=(Mode.MTP,)), _Halves(model, (), entry, best))]
    if best is None:
        return [(row(short, None, ()), _Halves(model, (), entry))]
    title = f"{short} + {KINDS.get(best.kind, best.kind)}"
    if best.packaging == IN_TARGET:
        return [(row(title, None, None, modes=(MODES[best.kind],)), _Halves(model, (), entry, best))]
    return [(row(title, None, (), (_missing(best),)), _Halves(model, (), entry, best))]


def _made_row(title: str, name: str | None, target: LocalModel, drafter: made.Made) -> tuple[PairRow, _Halves]:
    """A target with a drafter that was trained on this machine; deleting it deletes the drafter alone."""
    size = sum(file.stat().st_size for file in drafter.folder.iterdir() if file.is_file())
    own = LocalModel(drafter.folder.name, drafter.folder, Place.FOLDER, Role.DRAFTER, Complete(), size)
    fact = shown("Store", mark("Store", "Made on this machine"))
    if drafter.per_round is not None:
        words = mark("Store", "Made on this machine: {0} tokens per round on held-out text")
        fact = shown("Store", words).format(number_text(drafter.per_round, 2))
    row = PairRow(
        key=f"{target.name} + {drafter.folder}",
        choice=made_choice(title, name, drafter.folder, KINDS[drafter.kind]),
        shelf=Shelf.ON_MAC,
        bits=_bits(target),
        bytes=target.bytes + size,
        context=target.context,
        facts=(fact,),
        place=target.place,
        folder=drafter.folder,
        halves=(_half(target, None), _half(own, None)),
        modes=(MODES[drafter.kind],),
        is_removable=True,
        is_made_here=True,
    )
    return row, _Halves(target, (own,), goes=own)


def _suggestion(entry: TargetEntry, drafters: Sequence[LocalModel]) -> tuple[PairRow, _Halves]:
    """In the precision that the settings prefer, where there is one."""
    bits, repo = entry.precision(preferences.read().bits)
    best = entry.drafters[0] if entry.drafters else None
    missing = [Missing(repo, (entry.bytes or {}).get(bits))]
    is_apart = best is not None and best.packaging != IN_TARGET
    if best is not None and is_apart and all(model.name.lower() != best.repo.lower() for model in drafters):
        missing.append(_missing(best))
    sizes = [half.bytes for half in missing]
    facts = [shown("Store", mark("Store", "Source: {0}")).format(entry.source), entry.note or ""]
    if best is not None and best.speedup:
        words = shown("Store", mark("Store", "{0}× against plain decoding ({1})"))
        facts.insert(0, words.format(close_text(best.speedup), best.measured))
    title = f"{entry.name} {bits}".rstrip() + (f" + {KINDS.get(best.kind, best.kind)}" if best is not None else "")
    row = PairRow(
        key=f"suggested {entry.name}",
        choice=PairChoice(title, repo, (best.repo,) if best is not None and is_apart else None),
        shelf=Shelf.SUGGESTED,
        bits=bits,
        bytes=sum(size or 0 for size in sizes) if sizes[0] is not None else None,
        context=entry.context,
        missing=tuple(missing),
        facts=tuple(fact for fact in facts if fact),
        licence=entry.licence or "",
        modes=(MODES[best.kind],) if best is not None else (),
        published_speedup=None if best is None else best.speedup,
    )
    return row, _Halves(None, (), entry, best)


def _published(row: PairRow, entry: TargetEntry | None) -> candidate.Candidate | None:
    """Of a pair that is not here, as far as the catalogue knows it; nobody is asked."""
    config, stored = None if entry is None else entry.config(row.bits), target_bytes(row)
    return None if config is None or stored is None else candidate.of_config(config, stored)


def _numbers_of(model: LocalModel) -> candidate.Candidate:
    """A GGUF is converted when it is loaded, not to be looked at."""
    return candidate.of_gguf(model.path) if model.path.is_file() else candidate.of_folder(local.folder_of(model))


def _missing(drafter: DrafterEntry) -> Missing:
    return Missing(drafter.repo, drafter.bytes, (drafter.file,) if drafter.file else ())


def _half(model: LocalModel, licence: str | None) -> Half:
    """`licence`: as the catalogue has it; what the files say goes first."""
    folder = model.path.parent if model.path.is_file() else model.path
    found = [model.path] if model.path.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
    files_ = tuple((str(path.relative_to(folder)), path.stat().st_size) for path in found)
    return Half(model.name, folder, files_, licence_of(model.path) or licence or "")


def _modes(known: catalog.Catalog, name: str) -> tuple[Mode, ...]:
    pair = known.drafter(name)
    return () if pair is None else (MODES[pair[1].kind],)


def _kind(known: catalog.Catalog, name: str) -> str:
    pair = known.drafter(name)
    return KINDS.get(pair[1].kind, pair[1].kind) if pair is not None else name


def _bits(model: LocalModel) -> str:
    return (model.quantisation or "").partition(" ")[0]
