from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from slipstream.engine.text import MAX_HELD, REPLACEMENT, Detokeniser

LLAMA = "Hi 🦙 ok".encode()


def decode(ids: Sequence[int]) -> str:
    """A tokeniser whose tokens are bytes."""
    return bytes(ids).decode("utf-8", errors="replace")


def pieces(parts: Sequence[bytes]) -> list[str]:
    detokeniser = Detokeniser(decode)
    return [*(detokeniser.feed(list(part)) for part in parts), detokeniser.finish()]


def splits(data: bytes) -> list[list[bytes]]:
    """Every way to cut a text into consecutive parts."""
    out: list[list[bytes]] = []
    for cuts in itertools.product((False, True), repeat=len(data) - 1):
        at = [0, *(n + 1 for n, cut in enumerate(cuts) if cut), len(data)]
        out.append([data[one:two] for one, two in itertools.pairwise(at)])
    return out


def test_p06_emoji_in_pieces() -> None:
    parts = [bytes.fromhex("486920F09F"), bytes.fromhex("A699"), bytes.fromhex("206F6B")]
    deltas = pieces(parts)
    assert "".join(deltas) == "Hi 🦙 ok"
    assert deltas[0] == "Hi "
    assert not any(REPLACEMENT in delta for delta in deltas)


def test_p06_a_run_cut_in_the_middle_of_an_emoji() -> None:
    deltas = pieces([bytes.fromhex("486920F09F")])
    assert deltas == ["Hi ", REPLACEMENT]


def test_every_split_gives_the_text_and_no_half_character() -> None:
    for parts in splits(LLAMA):
        deltas = pieces(parts)
        assert "".join(deltas) == "Hi 🦙 ok", parts
        assert not any(REPLACEMENT in delta for delta in deltas), parts


@pytest.mark.parametrize("length", [7, 8, 9, 12, 33])
def test_a_long_round_may_end_in_half_a_character(length: int) -> None:
    """Lookup commits up to 33 tokens at once."""
    text = ("x" * length + "🦙").encode()
    deltas = pieces([text[:-2], text[-2:]])
    assert deltas == ["x" * length, "🦙", ""]


def test_garbage_is_shown_in_the_end_and_what_follows_is_not_lost() -> None:
    garbage = [0x80] * (MAX_HELD + 3)
    detokeniser = Detokeniser(decode)
    shown = "".join(detokeniser.feed([byte]) for byte in garbage)
    assert shown == REPLACEMENT * (MAX_HELD + 1)
    assert shown + detokeniser.feed(list(b"ok")) + detokeniser.finish() == REPLACEMENT * len(garbage) + "ok"


@pytest.mark.parametrize("lead", range(MAX_HELD + 2))
def test_the_text_of_broken_bytes_does_not_depend_on_the_pieces(lead: int) -> None:
    data = bytes([0x80] * lead) + b"\xf0\x9f" + "🦙 a".encode() + b"\xe2\x82"
    texts: set[str] = set()
    for size in range(1, len(data) + 1):
        texts.add("".join(pieces([data[at : at + size] for at in range(0, len(data), size)])))
    texts.add("".join(pieces([data[:3], data[3:4], data[4:]])))
    assert len(texts) == 1
    assert "a" in texts.pop()


def test_a_space_dropped_at_the_start_is_kept_inside() -> None:
    """Tokens decoded alone lose their leading space, as with sentencepiece."""
    words = {1: " The", 2: " llama", 3: " runs"}
    detokeniser = Detokeniser(lambda ids: "".join(words[token] for token in ids).removeprefix(" "))
    assert detokeniser.feed([1]) + detokeniser.feed([2, 3]) + detokeniser.finish() == "The llama runs"


def test_nothing_in_nothing_out() -> None:
    detokeniser = Detokeniser(decode)
    assert detokeniser.feed([]) == ""
    assert detokeniser.finish() == ""
