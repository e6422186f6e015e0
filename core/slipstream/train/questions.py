"""What the target is asked, for its answers to be learned from: prompts that are given, and questions it invents."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from slipstream.errors import InvalidRequest, reason
from slipstream.models.tokeniser import Tokeniser
from slipstream.store.paths import resources_dir
from slipstream.types import Chat

INVENTED = "invented"
GREEDY_FIRST = (0.3, 0.5, 0.7, 1.0)  # temperatures of a prompt's further answers; its first is greedy
SHORTEST = 8  # characters of an invented question
SOME = 32  # of many texts, what is tried
LONGEST_QUESTION = 128  # tokens of an invented question


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    kind: str
    temperature: float  # of the answer


@dataclass(frozen=True, slots=True)
class Given:
    text: str
    kind: str


def read_prompts(path: Path) -> list[Given]:
    """A JSON object a line, with `prompt` and perhaps `source`. Raises InvalidRequest, naming the line."""
    found: list[Given] = []
    try:
        # Not splitlines: JSON may hold other line separators as they are.
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
            if not line.strip():
                continue
            entry = json.loads(line)
            text = entry.get("prompt") if isinstance(entry, dict) else None
            if not isinstance(text, str) or not text.strip():
                raise InvalidRequest(f'{path}, line {number}: give an object with a text "prompt"', line=number)
            found.append(Given(text, str(entry.get("source") or "given")))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"{path} cannot be read ({reason(error)}); give a file of JSON lines") from error
    if not found:
        raise InvalidRequest(f"{path} has no prompts; give a file of JSON lines")
    return found


def bundled_prompts() -> list[Given]:
    """The neutral set of our own."""
    return read_prompts(resources_dir() / "train" / "prompts.jsonl")


class Turns:
    """How the target's chat template begins and ends a user's turn."""

    def __init__(self, tokeniser: Tokeniser) -> None:
        self._tokeniser = tokeniser
        one, two = self.render("a b"), self.render("Zwölf?")
        same = next((i for i, (x, y) in enumerate(zip(one, two, strict=False)) if x != y), min(len(one), len(two)))
        after = next(
            (i for i, (x, y) in enumerate(zip(reversed(one), reversed(two), strict=False)) if x != y),
            min(len(one), len(two)),
        )
        self.before = tuple(one[:same])
        self._after = tuple(one[len(one) - after :])
        self.can_invent = bool(self.before) and after > 0
        ends = set(tokeniser.end_ids)
        if after:
            ends.add(one[len(one) - after])
        self.ends: frozenset[int] = frozenset(ends)

    def render(self, text: str) -> list[int]:
        return self._tokeniser.encode(Chat(({"role": "user", "content": text},)))

    def render_all(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """`render` of many. A template takes milliseconds each, so it is left out where it only surrounds the text."""
        if not texts:
            return []
        encoded: list[list[int]] = self._tokeniser.huggingface(list(texts), add_special_tokens=False)["input_ids"]
        out = [(*self.before, *ids, *self._after) for ids in encoded]
        some = range(0, len(texts), max(1, len(texts) // SOME))
        if all(out[index] == tuple(self.render(texts[index])) for index in some):
            return out
        return [tuple(self.render(text)) for text in texts]

    def opening(self, beginning: str) -> tuple[int, ...]:
        """Ids up to and with the first words of a question, if any."""
        words = self._tokeniser.huggingface.encode(beginning, add_special_tokens=False) if beginning else []
        return (*self.before, *words)

    def question(self, opening: Sequence[int], written: Sequence[int]) -> str | None:
        """The user's text when the turn was ended, and says something."""
        if not written or written[-1] not in self.ends:
            return None
        text = self._tokeniser.decode([*opening[len(self.before) :], *written[:-1]]).strip()
        return text if len(text) >= SHORTEST else None


def beginnings(given: Sequence[Given], rng: random.Random) -> Iterator[str]:
    """First words for questions to be invented: of the prompts that are given, and half of the time none."""
    while True:
        if rng.random() < 0.5:
            yield ""
            continue
        words = rng.choice(given).text.split()
        yield " ".join(words[: rng.randint(1, 8)])


def answer_temperature(rng: random.Random) -> float:
    """Half greedy, as most people decode; the rest as chat programs do."""
    return rng.choices((0.0, 0.3, 0.7, 1.0), (0.6, 0.1, 0.15, 0.15))[0]
