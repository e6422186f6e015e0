"""Known targets and the drafters made for them, from `resources/catalog.toml`. What is not known is absent."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, cast

from slipstream.errors import InvalidRequest
from slipstream.store.paths import resources_dir

KINDS = ("dspark", "dflash", "dflash2", "mtp")
PACKAGINGS = ("deepspec", "speculators", "specforge", "lfm2", "ornith", "nemotron", "zlab", "gguf", "mtp", "in target")


@dataclass(frozen=True, slots=True)
class DrafterEntry:
    """A published drafter."""

    repo: str  # exact id on the hub; the target's own for heads inside it
    kind: str  # one of KINDS
    source: str  # where these facts are from
    packaging: str | None = None  # one of PACKAGINGS
    file: str | None = None  # of a repository that holds several: the one to use
    bytes: int | None = None
    licence: str | None = None
    block: int | None = None
    taps: tuple[int, ...] = ()  # 0-based target layers, whatever the checkpoint counts from
    acceptance: float | None = None  # tokens per target pass, the target's own included, over mixed prompts
    speedup: float | None = None  # against plain decoding, where and with what `measured` says
    measured: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class TargetEntry:
    """A target as published; every quantised copy of it matches. Drafters stand best first."""

    name: str
    family: str
    repo: str  # exact id of the original
    source: str
    also: tuple[str, ...] = ()  # other names of the same weights, compared by their last part
    quants: Mapping[str, str] | None = None  # "4-bit" -> exact repo id that loads in MLX
    recommended: str | None = None  # one of `quants`
    licence: str | None = None
    parameters: int | None = None
    active: int | None = None  # parameters used for each token, of a mixture of experts
    bytes: Mapping[str, int] | None = None  # "4-bit" -> size of its files
    context: int | None = None
    layers: int | None = None
    hidden_size: int | None = None
    shape: Mapping[str, Any] | None = None  # further keys of its config.json, of those that `store/shape.py` reads
    note: str | None = None
    drafters: tuple[DrafterEntry, ...] = ()

    def config(self, bits: str | None) -> Mapping[str, Any] | None:
        """Its config.json, in one of `quants`, as far as layouts go. None: the catalogue does not know enough."""
        if self.shape is None or self.layers is None or self.hidden_size is None:
            return None
        packed = re.match(r"(\d+)-bit", bits or "")
        return {
            **self.shape,
            "num_hidden_layers": self.layers,
            "hidden_size": self.hidden_size,
            **({"max_position_embeddings": self.context} if self.context else {}),
            **({"quantization": {"bits": int(packed[1]), "group_size": 64}} if packed else {}),
        }

    def precision(self, wanted: str = "") -> tuple[str, str]:
        """Bits and repository of the copy to take: as wanted, else as recommended, else as it was published ("")."""
        quants = self.quants or {}
        bits = next((one for one in (wanted, self.recommended or "") if one in quants), next(iter(quants), ""))
        return bits, quants.get(bits, self.repo)


@dataclass(frozen=True, slots=True)
class Catalog:
    targets: tuple[TargetEntry, ...]

    def find(self, name: str, base_models: Sequence[str] = ()) -> TargetEntry | None:
        """The entry whose target `name` is, in any precision and from any publisher.

        `name`: a repo id, folder or file name. `base_models`: what the model's card says it was made from.
        """
        for candidate in (name, *base_models):
            stem = stem_of(candidate)
            for target in self.targets:
                if stem in {stem_of(known) for known in (target.repo, *target.also, *(target.quants or {}).values())}:
                    return target
        return None

    def drafter(self, repo: str) -> tuple[TargetEntry, DrafterEntry] | None:
        """A known drafter and its target."""
        return next(((t, d) for t in self.targets for d in t.drafters if d.repo.lower() == repo.lower()), None)

    def search(self, query: str) -> list[TargetEntry]:
        """Targets in whose names, or whose drafters' names, every word of the query occurs."""
        words = query.lower().split()

        def text(target: TargetEntry) -> str:
            return " ".join((target.name, target.family, target.repo, *(d.repo for d in target.drafters))).lower()

        return [target for target in self.targets if all(word in text(target) for word in words)]


# Words at the end of a repository's name that say how the weights are stored, not which they are.
_PRECISION = re.compile(
    r"(?:[-_.](?:mlx|gguf|safetensors|\d(?:\.\d+)?-?bit(?:s)?|[248]bit|q\d(?:_[0-9a-z]+)*|iq\d\w*|bf16|"
    r"fp16|fp8|fp32|nvfp4|mxfp4|mxfp8|dwq(?:-?v?\d+)?|awq|gptq|gs\d+|g\d+|qat|hf|int[48]|affine|optiq|ud))+$"
)


def stem_of(name: str) -> str:
    """A model's name without publisher, precision and format, for comparison."""
    tail = name.rstrip("/").rpartition("/")[2].lower().removesuffix(".gguf")
    tail = _PRECISION.sub("", tail)
    return tail.removeprefix("nvidia-").replace("_", "-").replace(" ", "-")


@cache
def default() -> Catalog:
    """The catalogue that comes with Slipstream."""
    return load(resources_dir() / "catalog.toml")


def load(file: Path) -> Catalog:
    """Read a catalogue. Raises InvalidRequest, naming the line, for bad TOML and unknown keys or values."""
    text = file.read_text(encoding="utf-8")
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRequest(f"{file.name}: {error}; correct it") from error
    lines = _Lines(file.name, text)
    if unknown := [key for key in data if key != "target"]:
        raise lines.error(unknown[0], f"unknown key {unknown[0]!r}")
    targets: list[TargetEntry] = []
    for number, table in enumerate(data.get("target", ())):
        here = lines.table("target", number)
        drafters = tuple(
            _entry(DrafterEntry, drafter, here.table("target.drafter", index))
            for index, drafter in enumerate(table.pop("drafter", ()))
        )
        for index, drafter in enumerate(drafters):
            where = here.table("target.drafter", index)
            where.check("kind", drafter.kind, KINDS)
            where.check("packaging", drafter.packaging, (None, *PACKAGINGS))
        target: TargetEntry = _entry(TargetEntry, table, here, drafters=drafters)
        here.check("recommended", target.recommended, (None, *(target.quants or ())))
        if any(known.repo == target.repo for known in targets):
            raise here.error("repo", f"{target.repo} is listed twice")
        targets.append(target)
    return Catalog(tuple(targets))


class _Lines:
    """Where things stand in a TOML file of plain tables; tomllib does not say."""

    def __init__(self, name: str, text: str, lines: Sequence[tuple[int, str]] | None = None) -> None:
        self._name = name
        self._lines = list(enumerate(text.splitlines(), 1)) if lines is None else list(lines)
        self._text = text

    def table(self, header: str, number: int) -> _Lines:
        """The lines of the n-th `[[header]]` here, with the tables inside it."""
        starts = [i for i, (_, line) in enumerate(self._lines) if line.split("#")[0].strip() == f"[[{header}]]"]
        if number >= len(starts):
            return self
        end = starts[number + 1] if number + 1 < len(starts) else len(self._lines)
        return _Lines(self._name, self._text, self._lines[starts[number] : end])

    def error(self, key: str, what: str) -> InvalidRequest:
        found = (n for n, line in self._lines if re.match(rf"\s*(\[*)\"?{re.escape(key)}\"?\s*[=.\]]", line))
        line = next(found, self._lines[0][0] if self._lines else 1)
        return InvalidRequest(f"{self._name}, line {line}: {what}; correct it", line=line)

    def check(self, key: str, value: object, allowed: Sequence[object]) -> None:
        if value not in allowed:
            choices = ", ".join(str(choice) for choice in allowed if choice is not None)
            raise self.error(key, f"{key} must be one of {choices}, not {value!r}")


def _entry(kind: type[Any], table: Mapping[str, Any], lines: _Lines, **more: Any) -> Any:
    """A dataclass from a table. Any: one function for both kinds of entry."""
    known = {field.name: field for field in fields(kind) if field.name not in more and field.name != "drafters"}
    for key, value in table.items():
        if key not in known:
            raise lines.error(key, f"unknown key {key!r}; known are {', '.join(known)}")
        fits, words = _KINDS[str(known[key].type).removesuffix(" | None")]
        if not fits(value):
            raise lines.error(key, f"{key} must be {words}, not {value!r}")
    for name, field in known.items():
        if field.default is MISSING and name not in table:
            raise lines.error("", f"{name} is missing")
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return kind(**values, **more)


def _is_count(value: object) -> bool:
    return type(value) is int and value > 0


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_setting(value: object) -> bool:
    items = cast(list[object], value) if isinstance(value, list) else [value]
    return _is_text(value) or all(type(item) is int for item in items)


# What the annotations of the entries allow in the file: a check, and its name for people.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "str": (_is_text, "text"),
    "int": (_is_count, "a whole number above 0"),
    "float": (lambda value: type(value) in (int, float) and value > 0, "a number above 0"),
    "tuple[int, ...]": (
        lambda value: isinstance(value, list) and all(type(item) is int for item in cast(list[object], value)),
        "a list of whole numbers",
    ),
    "tuple[str, ...]": (
        lambda value: isinstance(value, list) and all(map(_is_text, cast(list[object], value))),
        "a list of texts",
    ),
    "Mapping[str, Any]": (
        lambda value: isinstance(value, dict) and all(map(_is_setting, cast(dict[str, object], value).values())),
        "a table of whole numbers, lists of them, and texts",
    ),
    "Mapping[str, str]": (
        lambda value: isinstance(value, dict) and all(map(_is_text, cast(dict[str, object], value).values())),
        "a table of texts",
    ),
    "Mapping[str, int]": (
        lambda value: isinstance(value, dict) and all(map(_is_count, cast(dict[str, object], value).values())),
        "a table of whole numbers",
    ),
}
