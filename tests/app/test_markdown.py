"""Blocks of an answer: the same in whatever pieces it comes, and finished ones never change."""

from __future__ import annotations

import random

import pytest

from slipstream_app.markdown import LONG_TAIL, Block, Code, Prose, Splitter, split, without_images

ANSWER = """# A parser

Some *prose* with `code`
on two lines.

1. First:

   ```python
   def parse(data):

       return data
   ```

2. Second

   still second
- other

| a | b |
|---|---|
| 1 | 2 |

~~~
``` not a fence ~~~
~~~
````md
```
inner
```
````
The end `` ` `` ```not a fence``` here
"""


def test_prose_lists_tables_and_code_become_blocks() -> None:
    assert split(ANSWER) == [
        Prose("# A parser"),
        Prose("Some *prose* with `code`\non two lines."),
        Prose("1. First:"),
        Code("python", "def parse(data):\n\n    return data"),
        Prose("2. Second\n\n   still second\n- other"),
        Prose("| a | b |\n|---|---|\n| 1 | 2 |"),
        Code("", "``` not a fence ~~~"),
        Code("md", "```\ninner\n```"),
        Prose("The end `` ` `` ```not a fence``` here"),
    ]


@pytest.mark.parametrize("seed", range(60))
def test_pieces_do_not_matter_and_finished_blocks_stay(seed: int) -> None:
    chance = random.Random(seed)
    text = (
        ANSWER if seed % 2 else "".join(chance.choices(["\n", "`", "```", "~~~", "- a", " ", "x", "1. ", "|"], k=200))
    )
    splitter, blocks, at = Splitter(), list[Block](), 0
    while at < len(text):
        size = chance.randint(1, 9)
        blocks += splitter.feed(text[at : at + size])
        at += size
        shown = [*blocks, *([splitter.tail] if splitter.tail else [])]
        assert len(shown) <= len(split(text[:at])) + 1
    assert blocks + splitter.finish() == split(text)


@pytest.mark.parametrize("seed", range(20))
def test_no_word_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    words = [f"w{number}" for number in range(300)]
    text = "".join(word + chance.choice([" ", "\n", "\n\n", "\n- ", "\n```\n", "\n  ", "\n1. "]) for word in words)
    shown = "\n".join(
        f"{block.language}\n{block.text}" if isinstance(block, Code) else block.text for block in split(text)
    )
    assert [word for word in words if word not in shown] == []


def test_an_open_fence_is_shown_as_code_and_its_end_is_not_shown() -> None:
    splitter = Splitter()
    assert splitter.feed("Look:\n\n```py") == [Prose("Look:")]
    assert splitter.tail is None
    splitter.feed("thon\nx = 1\ny")
    assert splitter.tail == Code("python", "x = 1\ny")
    splitter.feed(" = 2\n``")
    assert splitter.tail == Code("python", "x = 1\ny = 2")
    assert splitter.feed("`\n") == [Code("python", "x = 1\ny = 2")]


def test_a_long_list_is_cut_at_an_item_so_that_the_tail_stays_short() -> None:
    items = [f"{number}. item {number} {'x' * 50}" for number in range(1, 400)]
    blocks = split("\n".join(items))
    assert len(blocks) > 1
    assert all(isinstance(block, Prose) and len(block.text) <= LONG_TAIL + 100 for block in blocks)
    assert "\n".join(block.text for block in blocks) == "\n".join(items)


def test_images_become_links_but_not_inside_code() -> None:
    text = "![alt](http://x/y.png) and `![a](b)` and ![ref][1] ![](http://z) wow!"
    assert without_images(text) == "[alt](http://x/y.png) and `![a](b)` and [ref][1] [](http://z) wow!"
