"""Reading a client's JSON: what is there, of which type, and the path of what is wrong."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from slipstream.errors import InvalidRequest
from slipstream.server.request_log import current

logger = logging.getLogger(__name__)

MAX_NAMED_FIELDS = 10  # in one log line
_WORD = re.compile(r"[A-Za-z0-9_.-]{1,24}")
MAX_DEPTH = 100  # objects and lists within each other

Value = TypeVar("Value")


class Fields:
    """One JSON object. Getters give None for what is absent or null, and raise InvalidRequest with the path.

    Remembers what was asked for, so that the rest can be named in the log.
    """

    def __init__(self, value: object, path: str = "") -> None:
        if not isinstance(value, dict):
            raise wrong(path or "the body", "an object", value)
        self._values = cast("dict[str, Any]", value)
        self._known: set[str] = set()
        self.path = path

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._values)

    @property
    def values(self) -> Mapping[str, Any]:  # Any: whatever JSON the client sent
        return self._values

    def raw(self, name: str) -> Any:  # Any: whatever JSON the client sent
        self._known.add(name)
        return self._values.get(name)

    def has(self, name: str) -> bool:
        """Whether it is there and not null."""
        return self.raw(name) is not None

    def text(self, name: str) -> str | None:
        return self._get(name, "a string", lambda value: isinstance(value, str))

    def flag(self, name: str) -> bool | None:
        return self._get(name, "true or false", lambda value: isinstance(value, bool))

    def number(self, name: str, low: float = -math.inf, high: float = math.inf) -> float | None:
        def fits(value: Any) -> bool:
            return _is_number(value) and low <= value <= high

        return self._get(name, f"a number{_span(low, high)}", fits)

    def whole(self, name: str, low: int | None = None, high: int | None = None) -> int | None:
        def fits(value: Any) -> bool:
            is_whole = _is_number(value) and value == int(value)
            return is_whole and (low is None or value >= low) and (high is None or value <= high)

        found = self._get(name, f"a whole number{_span(low, high)}", fits)
        return None if found is None else int(found)

    def one_of(self, name: str, *allowed: str) -> str | None:
        value = self.raw(name)
        if value is not None and value not in allowed:
            raise not_among(self.at(name), " or ".join(map(repr, allowed)), value)
        return value

    def object(self, name: str) -> Fields | None:
        value = self.raw(name)
        return None if value is None else Fields(value, self.at(name))

    def mapping(self, name: str) -> Mapping[str, Any] | None:
        """An object whose inside is not ours to check."""
        return self._get(name, "an object", lambda value: isinstance(value, dict))

    def items(self, name: str) -> Sequence[Any] | None:
        return self._get(name, "a list", lambda value: isinstance(value, list))

    def objects(self, name: str) -> Iterator[Fields]:
        """The objects of a list; none when it is absent."""
        for index, value in enumerate(self.items(name) or ()):
            yield Fields(value, f"{self.at(name)}[{index}]")

    def texts(self, name: str) -> tuple[str, ...]:
        """A string, or a list of strings; empty when it is absent."""
        value = self.raw(name)
        if isinstance(value, str):
            return (value,)
        items: Sequence[Any] = [] if value is None else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise wrong(self.at(name), "a string or a list of strings", value)
        return tuple(items)

    def need(self, name: str, found: Value | None) -> Value:
        """For `fields.need("model", fields.text("model"))`: raises when it is absent."""
        if found is None:
            raise InvalidRequest(f"{self.at(name)} is required", path=self.at(name))
        return found

    def ignore(self, *names: str) -> None:
        """Known, and without a meaning here."""
        self._known.update(names)

    def note_unknown(self, where: str) -> None:
        """One log line naming the fields nobody asked for; never their values."""
        unknown = [name for name in self._values if name not in self._known]
        if unknown:
            shown = ", ".join(ascii(name[:40]) for name in unknown[:MAX_NAMED_FIELDS])
            more = f" and {len(unknown) - MAX_NAMED_FIELDS} more" if len(unknown) > MAX_NAMED_FIELDS else ""
            logger.info("%s: ignored %s%s", where, shown, more)
            entry = current.get()
            if entry is not None:
                prefix = f"{self.path}." if self.path else ""
                names = [f"{prefix}{ascii(name[:40])[1:-1]}" for name in unknown[:MAX_NAMED_FIELDS]]
                entry.ignore((*names, more.strip()) if more else tuple(names))

    def _get(self, name: str, rule: str, fits: Callable[[Any], bool]) -> Any:
        value = self.raw(name)
        if value is not None and not fits(value):
            raise wrong(self.at(name), rule, value)
        return value


def wrong(path: str, rule: str, value: object) -> InvalidRequest:
    """The value itself is shown only where it is short and plain: the rest is the client's text."""
    shown = value if isinstance(value, bool | int | float) else _kind(value)
    return InvalidRequest(f"{path} must be {rule}, not {str(shown)[:40]}", path=path)


def not_among(path: str, words: str, value: object) -> InvalidRequest:
    """Where one of a few words is wanted, another word is shown: it is no text of anybody's, but misspelt."""
    if isinstance(value, str) and _WORD.fullmatch(value):
        return InvalidRequest(f"{path} must be {words}, not {value!r}", path=path)
    return wrong(path, words, value)


def _kind(value: object) -> str:
    kinds: dict[type, str] = {str: "a string", list: "a list", dict: "an object", type(None): "null"}
    return kinds.get(type(value), type(value).__name__)


def _span(low: float | None, high: float | None) -> str:
    has_low, has_high = low is not None and low > -math.inf, high is not None and high < math.inf
    if has_low and has_high:
        return f" from {low:g} to {high:g}"
    return f" of at least {low:g}" if has_low else f" up to {high:g}" if has_high else ""


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def parse(body: bytes) -> Fields:
    """A request's body. Raises InvalidRequest for all that is not a JSON object."""
    try:
        text = body.decode("utf-8-sig")
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        if "\\ud" in text or "\\uD" in text:
            value = _whole_characters(value)
        _check_depth(value)
    except RecursionError as error:
        raise InvalidRequest("the body is nested too deeply") from error
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        place = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidRequest(f"the body is not valid JSON{place}") from error
    return Fields(value)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:20]} is beyond any number")
    return value


def _check_depth(value: Any) -> None:
    """What follows may walk the value recursively, as templates and schema readers do."""
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        level = below
        if not level:
            return
    raise RecursionError


def _whole_characters(value: Any) -> Any:
    """Half an emoji, as JavaScript cuts strings, is no text that a tokenizer or UTF-8 can take."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_whole_characters(item) for item in value]
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(item) for key, item in value.items()}
    return value
