"""Answers go back into the prompt by the tokens that were sampled, wherever their text stands."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from prompt.templates import SMOLLM2, STRICT, TAGGED, TemplateTokeniser
from slipstream.prompt.chat import render
from slipstream.prompt.parts import ToolCall
from slipstream.prompt.respell import Located, Sampled, respell

CALL = '<tool_call>{"name": "read", "arguments": {"path": "ä.txt"}}</tool_call>'


class Words:
    """A token for each string, any cut of a text a way to say it."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def ids(self, pieces: Sequence[str]) -> list[int]:
        for piece in pieces:
            if piece not in self._texts:
                self._texts.append(piece)
        return [self._texts.index(piece) for piece in pieces]

    def spell(self, ids: Sequence[int]) -> str:
        return "".join(self._texts[id_] for id_ in ids)

    def located(self, pieces: Sequence[str]) -> Located:
        ends = [0]
        for piece in pieces:
            ends.append(ends[-1] + len(piece))
        return Located("".join(pieces), self.ids(pieces), list(itertools.pairwise(ends)))


def cut(chance: random.Random, text: str) -> list[str]:
    at = sorted({0, len(text), *(chance.randrange(len(text)) for _ in range(len(text) // 3))})
    return [text[a:b] for a, b in itertools.pairwise(at)]


@pytest.mark.parametrize("seed", range(30))
def test_the_text_stays_and_the_answers_are_as_they_were_sampled(seed: int) -> None:
    """Prompt and answers are cut at random; the answers' thoughts and end are not in the prompt, or are."""
    chance = random.Random(seed)
    words = Words()
    said = [f"I look ({number}). {CALL}" for number in range(3)]
    has_end = chance.random() < 0.5
    prompt = [*cut(chance, "[system]Call like this: " + CALL + "[user]go")]
    kept: list[Sampled] = []
    wanted: list[list[int]] = []
    for answer in said:
        whole = cut(chance, "<think>hm" + "</think>") + cut(chance, answer) + ["<end>"]
        kept.append(Sampled(tuple(words.ids(whole)), CALL))
        inside = words.ids(whole[whole.index("<end>") - 1 : -1])
        wanted.append(inside)
        prompt += ["[assistant]", *cut(chance, answer), *(["<end>"] if has_end else ["<other end>"]), "[tool]", "found"]
    located = words.located(prompt)
    made = respell(located, kept, words.spell)
    assert words.spell(made) == located.text
    joined = ",".join(map(str, made)) + ","
    at = 0
    for inside in wanted:  # the last word of each answer, in this order
        at = joined.index(",".join(map(str, inside)) + ",", at) + 1


def test_half_characters_are_no_place_to_cut_at() -> None:
    class Bytes(Words):
        def spell(self, ids: Sequence[int]) -> str:
            return bytes(ids).decode("utf-8", "replace")

    words = Bytes()
    text = "aäb"
    whole = Located(text, list(text.encode()), [(0, 1), (1, 2), (1, 2), (2, 3)])
    assert respell(whole, [Sampled(tuple(text.encode()), "ä")], words.spell) == list(text.encode())
    joined = Located(text, [300, 98], [(0, 2), (2, 3)])  # a token that is "aä"
    assert respell(joined, [Sampled(tuple(text.encode()), "ä")], words.spell) == list(text.encode())


def test_what_is_not_in_the_prompt_changes_nothing() -> None:
    words = Words()
    located = words.located(["one ", "two"])
    elsewhere = Sampled(tuple(words.ids(["thr", "ee"])), "three")
    without_edges = Sampled(tuple(words.ids(["zone two", "!"])), "one two")
    assert respell(located, [elsewhere, without_edges], words.spell) == list(located.ids)


@pytest.mark.parametrize("template", [TAGGED, SMOLLM2, STRICT], ids=["tagged", "smollm2", "strict"])
def test_a_rendered_conversation_has_them(template: str) -> None:
    """Ids of these tokenisers are characters; those from 2**20 on are sampled ones that spell two of them."""

    class Paired(TemplateTokeniser):
        def spell(self, ids: Sequence[int]) -> str:
            return "".join(pairs.get(id_) or chr(id_) for id_ in ids)

    pairs = {2**20: "to", 2**20 + 1: "rea"}
    sampled = CALL.replace("to", chr(2**20)).replace("rea", chr(2**20 + 1))
    call = ToolCall("x1", "read", '{"path": "ä.txt"}', CALL, answer=tuple(map(ord, sampled)))
    function = {"name": "read", "arguments": {"path": "ä.txt"}}
    messages = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "x1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "x1", "content": "to rea"},
    ]
    tool = {"type": "function", "function": {"name": "read", "description": "", "parameters": {"type": "object"}}}
    tokeniser = Paired(template)
    ids = render(tokeniser, messages, [tool], recall={"x1": call}.get)
    plain = render(tokeniser, messages, [tool], recall={"x1": ToolCall("x1", "read", "{}", CALL)}.get)
    assert tokeniser.spell(ids) == tokeniser.spell(plain) and len(ids) < len(plain)
    assert sampled in "".join(map(chr, ids)) and ids.count(2**20) == sampled.count(chr(2**20))
