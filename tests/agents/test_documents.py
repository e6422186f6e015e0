"""JSON and TOML under change: single keys come and go, and every other character stays."""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections import Counter
from copy import deepcopy
from typing import Any

import pytest

from slipstream.agents.document import Format, edited, open_document, plain
from slipstream.agents.jsonc import JsonDocument, JsonError
from slipstream.agents.toml import TomlDocument

WORDS = ("model", "env", "ANTHROPIC_MODEL", "provider", "a b", "ü", "x.y", "theme", 'say "hi"', "// no comment")


def _json_value(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(8 if depth else 6)
    if kind == 6:
        return {rng.choice(WORDS): _json_value(rng, depth - 1) for _ in range(rng.randrange(4))}
    if kind == 7:
        return [_json_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    return rng.choice([None, True, 7, -1.5e3, rng.choice(WORDS), "a\\b\n/* not one */"])


class _JsonWriter:
    """The same value in many dresses: spacing, comments, trailing commas."""

    def __init__(self, rng: random.Random, comments: bool) -> None:
        self.rng, self.comments, self.count = rng, comments, 0

    def gap(self) -> str:
        text = self.rng.choice(["", " ", "\n", "\n  ", "\t"])
        if self.comments and self.rng.random() < 0.2:
            self.count += 1
            text += self.rng.choice([f"/* c{self.count}. */", f"// c{self.count}.\n"])
        return text

    def write(self, value: Any) -> str:
        if not isinstance(value, dict | list):
            return json.dumps(value)
        parts = (
            [f"{json.dumps(key)}{self.gap()}:{self.gap()}{self.write(item)}" for key, item in value.items()]
            if isinstance(value, dict)
            else [self.write(item) for item in value]
        )
        body = f"{self.gap()},{self.gap()}".join(parts)
        tail = "," if parts and self.comments and self.rng.random() < 0.3 else ""
        left, right = "{}" if isinstance(value, dict) else "[]"
        return f"{left}{self.gap()}{body}{self.gap()}{tail}{self.gap()}{right}"


def _marks(text: str) -> list[str]:
    return sorted(re.findall(r"c\d+\.", text))


@pytest.mark.parametrize("seed", range(300))
def test_json_keeps_other_keys_comments_and_order(seed: int) -> None:
    rng = random.Random(seed)
    comments = seed % 3 > 0
    value = {rng.choice(WORDS): _json_value(rng, 3) for _ in range(rng.randrange(5))}
    text = _JsonWriter(rng, comments).write(value)
    document = JsonDocument(text, comments)
    assert document.value == value
    expected = deepcopy(value)
    for _ in range(4):
        path = tuple(rng.choice(WORDS) for _ in range(rng.randrange(1, 4)))
        new = _json_value(rng, 1)
        group: Any = expected
        for key in path[:-1]:
            group = group.setdefault(key, {}) if isinstance(group, dict) else None
        before, old, marks = document.text, document.raw(path), _marks(document.text)
        if not isinstance(group, dict):
            with pytest.raises(JsonError):
                document.set(path, new)
            assert document.text == before
            return
        group[path[-1]] = new
        document.set(path, new)
        assert document.value == expected
        assert comments or json.loads(document.text) == expected
        assert list(_items(document.value)) == list(_items(expected))
        lost = Counter(_marks(old) if old else [])
        assert Counter(_marks(document.text)) == Counter(marks) - lost
        if old is not None:
            document.set_raw(path, old)
            assert document.text == before
            document.set(path, new)
        if rng.random() < 0.3:
            inside = _marks(document.raw(path) or "")
            marks = _marks(document.text)
            document.remove(path)
            del group[path[-1]]
            assert document.value == expected
            # Only a comment within the entry itself goes with it.
            assert len(marks) - len(_marks(document.text)) <= len(inside) + 2


def _items(value: Any) -> Any:
    for key, item in value.items() if isinstance(value, dict) else ():
        yield key
        yield from _items(item)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{\n    "a": 1\n}\n', '{\n    "a": 1,\n    "env": {\n        "B": "c"\n    }\n}\n'),
        ('{\n\t"env": {\n\t\t"A": "b"\n\t}\n}', '{\n\t"env": {\n\t\t"A": "b",\n\t\t"B": "c"\n\t}\n}'),
        ('{"env": {"A": "b"}}', '{"env": {"A": "b", "B": "c"}}'),
        ("", '{\n  "env": {\n    "B": "c"\n  }\n}\n'),
    ],
)
def test_json_takes_the_indentation_of_the_file(text: str, after: str) -> None:
    document = JsonDocument(text, comments=False)
    document.set(("env", "B"), "c")
    assert document.text == after


def test_jsonc_insert_keeps_comments_with_their_lines() -> None:
    document = JsonDocument('{\n  // above a\n  "a": 1 // behind a\n  // at the end\n}\n', comments=True)
    document.set(("b",), 2)
    assert document.text == '{\n  // above a\n  "a": 1, // behind a\n  // at the end\n  "b": 2\n}\n'
    document.remove(("b",))
    assert document.text == '{\n  // above a\n  "a": 1 // behind a\n  // at the end\n}\n'


@pytest.mark.parametrize(
    "text",
    ['{"a": 1,}', '{"a" 1}', "[1]", '{"a": 01}', '{"a": nul}', '{"a": "\n"}', "{} x", '{"a": 1 /* c */}', "{" * 200],
)
def test_wrong_json_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(JsonError):
        JsonDocument(text, comments=False)


def test_a_key_that_stands_twice_counts_where_it_stands_last() -> None:
    document = JsonDocument('{"a": 1, "a": 2}', comments=False)
    document.set(("a",), 3)
    assert document.text == '{"a": 1, "a": 3}'


# ------------------------------------------------------------------ TOML

TOML_PARTS = (
    'model = "gpt" # c1.\n',
    "# c2.\napproval_policy = 'never'\n",
    "features.a = true\n",
    'model_providers.foo.name = "x"\n',
    'notify = [\n  "a", # c3.\n  "b",\n]\n',
    'text = """\n[model_providers.slipstream]\n# no comment\n"""\n',
    "when = 1979-05-27T07:32:00Z\nratio = nan\n",
)
TOML_TABLES = (
    "[agents]\nmax_threads = 3 # c4.\n\n# c5.\n",
    "[features]\ngoals = true\n",
    '[model_providers.bar]\nname = "y"\n# c6.\n',
    '[mcp_servers.x]\ncommand = "y"\nenv = { A = "b" }\n\n',
    "[[hooks]]\na = 1\n[[hooks]]\na = 2 # c7.\n",
    '[projects."/home/me/a.b"]\ntrust_level = "trusted"\n',
    "[tui]\n",
    "[mcp_servers.z.deep]\nq = 1\n# c8.\n",
)
TOML_SETTINGS: tuple[tuple[tuple[str, ...], Any], ...] = (
    (("model",), "org/local-model"),
    (("model_context_window",), 131072),
    (("agents", "enabled"), False),
    (("features", "goals"), False),
    (("model_providers", "slipstream", "name"), "Slipstream"),
    (("model_providers", "slipstream", "base_url"), "http://127.0.0.1:8765/v1"),
)


def _toml_text(rng: random.Random) -> str:
    text = ""
    for part in (*rng.sample(TOML_PARTS, 4), *rng.sample(TOML_TABLES, rng.randrange(6))):
        try:
            tomllib.loads(text + part)
        except tomllib.TOMLDecodeError:  # two of them define the same table
            continue
        text += part
    return text


@pytest.mark.parametrize("seed", range(300))
def test_toml_keeps_other_keys_and_comments(seed: int) -> None:
    text = _toml_text(random.Random(seed))
    document = TomlDocument(text)
    expected = tomllib.loads(text)
    before: dict[tuple[str, ...], str | None] = {}
    for path, value in TOML_SETTINGS:
        before[path] = document.raw(path)
        document.set(path, value)
        group: Any = expected
        for key in path[:-1]:
            group = group.setdefault(key, {})
        group[path[-1]] = value
    after = edited(text, document)
    assert _same(tomllib.loads(after), expected)
    assert _marks(after) == _marks(text)

    # The owner adds a table of theirs below ours, with a comment above it; then ours go.
    theirs = after + '\n# c9.\n[mine]\nx = "y" # c10.\n'
    document = TomlDocument(theirs)
    for path, raw in before.items():
        if raw is None:
            document.remove(path)
        else:
            document.set_raw(path, raw)
    for path in (("model_providers", "slipstream"), ("model_providers",), ("agents",), ("features",)):
        if document.get(path) == {}:
            document.remove(path)
    back = tomllib.loads(document.text)
    assert back.pop("mine") == {"x": "y"}
    assert _same(back, tomllib.loads(text))
    assert _marks(document.text) == sorted([*_marks(text), "c10.", "c9."])


def _same(one: Any, two: Any) -> bool:
    return json.dumps(one, default=str, sort_keys=True) == json.dumps(two, default=str, sort_keys=True)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", '[a.b]\nc = "x"\n'),
        ("[z]\n", '[z]\n\n[a.b]\nc = "x"\n'),
        ("[a.b]\n# c\n\n[z]\n", '[a.b]\nc = "x"\n# c\n\n[z]\n'),
        ("[a.b]\n  d = 1 # one\n\n# of z\n[z]\n", '[a.b]\n  d = 1 # one\n  c = "x"\n\n# of z\n[z]\n'),
        ("[a.b.deep]\nd = 1", '[a.b.deep]\nd = 1\n\n[a.b]\nc = "x"\n'),
        ("a = {}\n", 'a = { b = { c = "x" } }\n'),
        ("a = { b = { d = 1 } }\n", 'a = { b = { d = 1, c = "x" } }\n'),
        ("a.b.d = 1\nz = 2\n", 'a.b.d = 1\na.b.c = "x"\nz = 2\n'),
        ("[a]\nb.d = 1\n[z]", '[a]\nb.d = 1\nb.c = "x"\n[z]'),
        ("[a.b]\nc = 'old' # why\n", '[a.b]\nc = "x" # why\n'),
    ],
)
def test_toml_goes_where_the_table_is(text: str, after: str) -> None:
    document = TomlDocument(text)
    old = document.raw(("a", "b", "c"))
    document.set(("a", "b", "c"), "x")
    assert document.text == after
    if old is None:
        document.remove(("a", "b", "c"))
    else:
        document.set_raw(("a", "b", "c"), old)
    assert _without_empty(tomllib.loads(document.text)) == _without_empty(tomllib.loads(text))


def _without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: inner for key, item in value.items() if (inner := _without_empty(item)) != {}}


@pytest.mark.parametrize("text", ["a = 1\n", "[[a]]\nb.d = 1\n", "[a.b.c]\n", "a.b.c.d = 1\n"])
def test_toml_refuses_to_replace_a_table_or_to_enter_a_value(text: str) -> None:
    document = TomlDocument(text)
    with pytest.raises(ValueError, match=r"is a table|is not a table"):
        document.set(("a", "b", "c"), "x")
    assert document.text == text


@pytest.mark.parametrize("form", ["json", "toml"])
def test_line_ends_and_byte_order_mark_are_kept(form: Format) -> None:
    text = "\ufeff" + ('{\r\n  "a": 1\r\n}\r\n' if form == "json" else "a = 1\r\n\r\n[b]\r\nc = 2\r\n")
    document = open_document(plain(text), form)
    document.set(("new",), "x")
    after = edited(text, document)
    assert after.startswith("\ufeff")
    assert after.count("\n") == after.count("\r\n") > text.count("\n")
