"""Models on this machine: names to folders, and what state each is in. Nothing here touches the network."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from slipstream.errors import InvalidRequest, ModelIncomplete, ModelNotFound, UnsupportedModel
from slipstream.models.gguf_architecture import DRAFTER_GGUFS, Decoder, module_names
from slipstream.models.gguf_header import read_header
from slipstream.store import catalog, demo, files, hub_cache, own_folders, paths
from slipstream.store.atomic import recover
from slipstream.store.converted import as_folder, conversion
from slipstream.store.paths import cache_dir, expanded
from slipstream.store.sizes import words


class Place(StrEnum):
    BUILT_IN = "built in"
    HUB_CACHE = "Hugging Face cache"  # shared with other tools
    LM_STUDIO = "LM Studio"  # shared with LM Studio
    FOLDER = "own folder"


class Role(StrEnum):
    TARGET = "model"
    DRAFTER = "drafter"


@dataclass(frozen=True, slots=True)
class Complete:
    pass


@dataclass(frozen=True, slots=True)
class Partial:
    """A download that is under way or was interrupted."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Broken:
    reason: str  # a sentence with what to do


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One model or drafter on disk. `state` is read from the files each time."""

    name: str  # what --model and the API take: a hub name where there is one
    path: Path  # a folder, or a GGUF file
    place: Place
    role: Role
    state: Complete | Partial | Broken
    bytes: int  # on disk
    model_type: str | None = None
    quantisation: str | None = None  # "4-bit group 64", "bfloat16"
    context: int | None = None
    revision: str | None = None  # commit, of the hub's cache

    @property
    def is_complete(self) -> bool:
        return isinstance(self.state, Complete)


def scan() -> list[LocalModel]:
    """Everything found, complete or not, by place and name. Reads headers only; some milliseconds a model."""
    found = [*_built_in(), *_hub_models(), *_lm_studio_models(), *_own_models()]
    return sorted(
        found, key=lambda model: (list(Place).index(model.place), list(Role).index(model.role), model.name.lower())
    )


def models() -> list[LocalModel]:
    """What can be loaded: complete models and drafters. A partial download is never among them."""
    return [model for model in scan() if model.is_complete]


def find(name: str) -> LocalModel:
    """A model by its name, or by the last part of it where that is unique, complete or not.

    Raises ModelNotFound, and InvalidRequest when several could be meant.
    """
    everything = scan()
    wanted = name.lower().rstrip("/")
    path = expanded(name)
    for matches in (
        [model for model in everything if model.name.lower() == wanted],
        [model for model in everything if path.exists() and model.path == path.resolve()],
        [model for model in everything if model.name.lower().rpartition("/")[2] == wanted],
    ):
        if len({model.path for model in matches}) == 1 or len({model.name for model in matches}) == 1:
            return next((model for model in matches if model.is_complete), matches[0])
        if matches:
            names = ", ".join(sorted({model.name for model in matches}))
            raise InvalidRequest(f"{name} could be {names}; give the whole name")
    # A publisher's name that differs is another model; a slip of the keyboard differs in a letter or two.
    cutoff = 0.9 if "/" in wanted else 0.6
    near = difflib.get_close_matches(wanted, [model.name.lower() for model in everything], n=1, cutoff=cutoff)
    hint = f"; did you mean {next(m.name for m in everything if m.name.lower() == near[0])}?" if near else ""
    raise ModelNotFound(
        f"{name} is not on this machine{hint or '; list what is with: slipstream models list'}", name=name
    )


def resolve(name: str) -> Path:
    """The folder of a model or drafter: a path, a GGUF file (converted once), or the name of a local model.

    Raises ModelNotFound, ModelIncomplete (a download that is not finished), and what `gguf.convert` raises.
    """
    found = look_up(name)
    if isinstance(found, LocalModel):
        return folder_of(found)
    return as_folder(found) if found.is_file() else found


def resolve_drafter(name: str) -> Path:
    """The same for a drafter. Its GGUF file is read as it is."""
    found = look_up(name)
    if isinstance(found, Path):
        return found
    return found.path if found.is_complete and found.path.is_file() else folder_of(found)


def look_up(name: str) -> Path | LocalModel:
    """What a path or a name stands for; nothing is converted. Raises ModelNotFound and InvalidRequest."""
    path = expanded(name)
    try:
        recover(path.parent, path.name)
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:
        raise ModelNotFound(f"{name[:200]} cannot be looked at ({error.strerror}); check the path") from error
    if not name.strip():
        raise ModelNotFound("the name of a model or drafter is empty; list what is here with: slipstream models list")
    if is_folder or (is_file and path.suffix.lower() == ".gguf"):
        return path
    if is_file:
        raise ModelNotFound(f"{path} is a file; give the model's folder, or a .gguf file")
    if name.startswith((".", "/", "~")):
        raise ModelNotFound(f"no model at {name}; check the path or the name")
    try:
        return find(name)
    except ModelNotFound as error:
        is_like_the_hubs = name.count("/") == 1 and "did you mean" not in error.message
        if is_like_the_hubs or catalog.default().find(name) is not None:
            raise ModelNotFound(
                f"{name} is not on this machine; download it with: slipstream models pull {name}", name=name
            ) from None
        raise


def name_of(name: str) -> str:
    """The whole name of what `resolve` would find; of a folder that has no other, its own."""
    found = look_up(name)
    if isinstance(found, Path):
        try:
            found = find(str(found))
        except (ModelNotFound, InvalidRequest):
            return found.resolve().name
    return found.name


def folder_of(model: LocalModel) -> Path:
    """The folder to load a model from; a GGUF is converted. Raises ModelIncomplete when it is not whole."""
    match model.state:
        case Partial(done, total):
            raise ModelIncomplete(
                f"{model.name} is only partly downloaded ({words(done)} of {words(total)}); "
                f"finish it with: slipstream models pull {model.name}",
                done=done,
                total=total,
            )
        case Broken(reason):
            raise ModelIncomplete(reason)
        case Complete():
            pass
    if model.place is Place.BUILT_IN and model.role is Role.TARGET:
        return demo.target()
    return as_folder(model.path) if model.path.is_file() else model.path


# -- places


def _built_in() -> Iterator[LocalModel]:
    try:
        source = demo.find().file
    except ModelNotFound:
        return
    yield LocalModel(
        demo.NAME,
        source,
        Place.BUILT_IN,
        Role.TARGET,
        Complete(),
        source.stat().st_size,
        "llama",
        "4-bit group 32",
        8192,
    )
    for folder in demo.drafters().values():
        yield _model(folder.name, folder, Place.BUILT_IN)


def _hub_models() -> Iterator[LocalModel]:
    for repository in hub_cache.repositories():
        snapshot = repository.current()
        complete = False
        if snapshot is not None and (model := _snapshot(repository, snapshot)) is not None:
            complete = model.is_complete
            yield model
        # A download that has no snapshot yet, or is of a newer commit than the one in use.
        for manifest in repository.manifests():
            is_shown = snapshot is not None and manifest.commit == snapshot.name
            if not manifest.is_complete and not is_shown and (snapshot is None or complete):
                done = sum(map(repository.done, manifest.files))
                config = next((repository.blob(file) for file in manifest.files if file.name == "config.json"), None)
                read = files.read_json(config) if config else {}
                yield LocalModel(
                    repository.name,
                    repository.folder,
                    Place.HUB_CACHE,
                    Role.DRAFTER if files.is_drafter(read) else Role.TARGET,
                    Partial(done, manifest.bytes),
                    done,
                    revision=manifest.commit,
                )


def _snapshot(repository: hub_cache.Repository, snapshot: Path) -> LocalModel | None:
    manifest = repository.manifest(snapshot.name)
    if manifest is not None:
        present = [file for file in manifest.files if _size(snapshot / file.name) == file.size]
        if len(present) < len(manifest.files):
            missing = {file.name for file in manifest.files} - {file.name for file in present}
            partial = sum(repository.done(file) for file in manifest.files if file.name in missing)
            done = sum(file.size for file in present) + partial
            state = Partial(min(done, manifest.bytes - 1), manifest.bytes)
            return _model(repository.name, snapshot, Place.HUB_CACHE, state, revision=snapshot.name)
        if gguf := [file.name for file in manifest.files if file.name.endswith(".gguf")]:
            return _gguf(repository.name, snapshot / gguf[0], Place.HUB_CACHE, revision=snapshot.name)
    has_weights = any(snapshot.glob("*.safetensors")) or (snapshot / "model.safetensors.index.json").exists()
    if not has_weights:
        if gguf_files := sorted(snapshot.glob("*.gguf")):
            return _gguf(repository.name, gguf_files[0], Place.HUB_CACHE, revision=snapshot.name)
        return None  # a tokenizer, a config, another kind of weights: no model that could be loaded
    model = _model(repository.name, snapshot, Place.HUB_CACHE, revision=snapshot.name)
    if isinstance(model.state, Broken):
        return replace(
            model, state=Broken(f"{model.name} is incomplete; finish it with: slipstream models pull {model.name}")
        )
    return model


def lm_studio_folder() -> Path:
    """Where LM Studio keeps its models, by its own pointer and settings."""
    home = paths.home()
    try:
        base = Path((home / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        old = home / ".cache" / "lm-studio"
        base = old if old.is_dir() else home / ".lmstudio"
    chosen = files.read_json(base / "settings.json").get("downloadsFolder")
    return Path(chosen) if isinstance(chosen, str) and chosen else base / "models"


def _lm_studio_models() -> Iterator[LocalModel]:
    folder = lm_studio_folder()
    yield from (model for path in _folders(folder, 2) for model in _in_folder(path, folder, Place.LM_STUDIO))


def _own_models() -> Iterator[LocalModel]:
    for folder in own_folders.listed():
        for path in (folder, *_folders(folder, 1), *_folders(folder, 2)):
            yield from _in_folder(path, folder, Place.FOLDER)


def _folders(folder: Path, depth: int) -> list[Path]:
    try:
        return [path for path in sorted(folder.glob("/".join("*" * depth))) if path.is_dir()]
    except OSError:
        return []


def _in_folder(path: Path, base: Path, place: Place) -> Iterator[LocalModel]:
    name = path.name if path == base else str(path.relative_to(base))
    if (path / "config.json").is_file() and any(path.glob("*.safetensors*")):
        yield _model(name, path, place)
        return
    for file in sorted(path.glob("*.gguf")):
        if not file.name.startswith("mmproj"):
            yield _gguf(f"{name}/{file.name}" if path != base else file.name, file, place)


# -- one model


def _model(
    name: str,
    folder: Path,
    place: Place,
    state: Complete | Partial | Broken | None = None,
    *,
    revision: str | None = None,
) -> LocalModel:
    config = files.read_config(folder)
    if state is None:
        try:
            files.check(folder)
            state = Complete()
        except (ModelIncomplete, ModelNotFound, OSError) as error:
            state = Broken(str(error))
    text: Mapping[str, Any] = config.get("text_config") or config
    context = text.get("max_position_embeddings")
    return LocalModel(
        name,
        folder,
        place,
        Role.DRAFTER if files.is_drafter(config) else Role.TARGET,
        state,
        sum(_size(path) for path in folder.rglob("*") if path.is_file()),
        model_type=config.get("model_type"),
        quantisation=files.quantisation(config),
        context=context if isinstance(context, int) else None,
        revision=revision,
    )


def _gguf(name: str, file: Path, place: Place, *, revision: str | None = None) -> LocalModel:
    state, architecture = _gguf_state(file, file.stat().st_size, file.stat().st_mtime_ns)
    role = Role.DRAFTER if architecture in DRAFTER_GGUFS else Role.TARGET
    return LocalModel(name, file, place, role, state, _size(file), architecture, quantisation="GGUF", revision=revision)


@lru_cache(maxsize=256)
def _gguf_state(file: Path, size: int, modified_ns: int) -> tuple[Complete | Broken, str | None]:
    """Reading the header takes a tenth of a second, for the vocabulary in it: once for each version of a file."""
    architecture = None
    try:
        header = read_header(file)
        architecture = header.text("general.architecture")
        if architecture not in DRAFTER_GGUFS:
            module_names(header, Decoder.read(header))
        return Complete(), architecture
    except (ModelIncomplete, UnsupportedModel) as error:
        return Broken(error.message), architecture


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def stale_conversions() -> list[Path]:
    """Folders made from a GGUF file that is not found any more, or has changed since. Nothing needs them.

    One that was named by its path, outside every known folder, is not found either; its conversion is made again.
    """
    used = {conversion(model.path) for model in scan() if model.path.is_file() and model.path.suffix == ".gguf"}
    with suppress(ModelNotFound):
        used.add(cache_dir() / "demo" / demo.find().name)
    homes = (cache_dir() / "gguf", cache_dir() / "demo")
    made = [folder for home in homes if home.is_dir() for folder in sorted(home.iterdir()) if folder.is_dir()]
    return [folder for folder in made if folder not in used and not folder.name.startswith(".")]
