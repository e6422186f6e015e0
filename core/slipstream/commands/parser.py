"""The command line's parser: what it refuses is one sentence that names the word, and the one that was meant."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

_WORDS = (
    (r"argument (.+?): invalid int value: (.*)", r"\1 must be a whole number, not \2"),
    (r"argument (.+?): invalid float value: (.*)", r"\1 must be a number, not \2"),
    (r"argument (.+?): expected one argument", r"\1 needs a value"),
    (r"argument (.+?): expected at least one argument", r"\1 needs at least one value"),
    (r"argument (.+?): not allowed with argument (.+)", r"\1 and \2 exclude each other; give one of them"),
    (r"one of the arguments (.+) is required", r"one of \1 is required"),
    (r"the following arguments are required: (.+)", r"\1 is missing"),
    (r"unrecognized arguments: (.+)", r"what is \1 for? It is not understood here"),
    (r"argument (.+?): (must .+)", r"\1 \2"),
)


class Parser(argparse.ArgumentParser):
    """Of the program and of each command. Says one sentence and ends with code 2, without the usage."""

    def error(self, message: str) -> NoReturn:
        for pattern, words in _WORDS:
            if re.fullmatch(pattern, message, re.DOTALL):
                message = re.sub(pattern, words, message, flags=re.DOTALL)
                break
        if (choices := self._commands) and message.endswith(" is missing"):
            message = f"{message}: one of {', '.join(choices)}"
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Any: as the parent's. A misspelt option is named before what is missing because of it."""
        if args is not None and not self._commands and "-" in self.prefix_chars:
            for word in args:
                if word == "--":
                    break
                if self._is_unknown(word):
                    name = word.partition("=")[0]
                    self.error(f"there is no option {name}{_meant(name, self._option_string_actions)}")
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        meant = _meant(str(value), choices)
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no {value!r} here{meant or ': one of ' + ', '.join(choices)}")
        name = "/".join(action.option_strings) or action.dest
        self.error(f"{name} must be one of {', '.join(choices)}, not {value!r}{meant}")

    def _is_unknown(self, word: str) -> bool:
        """As argparse sees it: a beginning that is no other option's is the option; words with a space are values."""
        if not word.startswith("--") or " " in word:
            return False
        name = word.partition("=")[0]
        return not any(option.startswith(name) for option in self._option_string_actions)

    @property
    def _commands(self) -> list[str]:
        groups = self._subparsers._group_actions if self._subparsers is not None else []
        return [str(name) for group in groups for name in group.choices or ()]


def _meant(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""
