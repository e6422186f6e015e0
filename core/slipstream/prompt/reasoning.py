"""How much of an answer was thought."""

from __future__ import annotations

from collections.abc import Iterable

from slipstream.prompt.parts import Content, Part, Thinking, ToolArguments


class ReasoningCounter:
    """How many tokens were thought. Exact where a round is all thought or all answer, by length where it is both."""

    def __init__(self) -> None:
        self._waiting = 0  # tokens whose text is held back, or is markup
        self._reasoning = 0
        self._was_thinking = False

    def add(self, tokens: int, parts: Iterable[Part]) -> None:
        self._waiting += tokens
        thought = other = 0
        for part in parts:
            match part:
                case Thinking(text):
                    thought += len(text)
                case Content(text):
                    other += len(text)
                case ToolArguments(_, fragment):
                    other += len(fragment)
                case _:
                    other += 1
            self._was_thinking = isinstance(part, Thinking)
        if thought + other:
            self._reasoning += round(self._waiting * thought / (thought + other))
            self._waiting = 0
        elif self._was_thinking:  # such as the end tag
            self._reasoning += self._waiting
            self._waiting = 0

    def finish(self) -> int:
        return self._reasoning
