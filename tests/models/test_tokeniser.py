"""Text of ids: special tokens have none, but for those that mark thoughts and calls."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from prompt.pieces import brief, parse
from prompt.test_tools import FAMILIES, Row
from slipstream.models.tokeniser import Tokeniser
from slipstream.prompt.output import OutputStyle
from slipstream.prompt.thinking import TAG_TEXTS
from slipstream.types import Text
from tiny_runs import write_tokenizer

_tags = re.compile(r'<\|"\|>|<[^<>\s"=]{2,}>|\[[A-Z_]+\]').findall


def tokeniser(folder: Path, special: list[str], end: str = "<end>") -> Tokeniser:
    write_tokenizer(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(sorted(special), special_tokens=True)
    tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({"eos_token_id": tokenizer.convert_tokens_to_ids(end)}))
    return Tokeniser(folder)


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: f"{row[0]} {row[1][:30]}")
def test_a_call_is_read_where_its_marks_are_special_tokens(row: Row, tmp_path: Path) -> None:
    style, text, expected = row
    one = tokeniser(tmp_path, _tags(text))
    ids = one.encode(Text(text))
    assert len(ids) <= len(text.encode())
    assert one.decode(ids) == text
    assert brief(parse(OutputStyle(style), [one.decode(ids)])) == expected


def test_thoughts_are_told_apart_where_their_tags_are_special_tokens(tmp_path: Path) -> None:
    text = "".join(f"{tag}x" for tag in sorted(TAG_TEXTS))
    one = tokeniser(tmp_path, [tag for tag in TAG_TEXTS if "think" in tag.lower()])
    assert one.decode(one.encode(Text(text))) == text


def test_other_special_tokens_and_ends_have_no_text(tmp_path: Path) -> None:
    one = tokeniser(tmp_path, ["<|call|>", "<|channel|>", "<image>"], end="<|call|>")
    ids = one.encode(Text("a<|channel|>b<user>c<image>d<|call|><end>e"))
    assert one.decode(ids) == "a<|channel|>bcde"
