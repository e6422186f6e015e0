"""What the captured agents would reuse over a session: prompts as the server renders them, kept by the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from prompt.templates import TAGGED
from server.test_captured import SEQUENCES, answering, named, prompt_of
from store.test_reuse import keep, look, made

SAID = "I look it up."


def session(title: str) -> list[list[int]]:
    with answering(TAGGED) as both:
        return [[ord(character) for character in prompt_of(both, name)] for name in named(title)]


def reuse(prompts: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Tokens reused, and tokens that the prompts before had, over all turns but the first."""
    cache = made(2**26)
    reused = before = 0
    for number, prompt in enumerate(prompts):
        found = look(cache, prompt)
        if number:
            reused += found.tokens
            before += len(prompts[number - 1])
        keep(cache, [*prompt, *map(ord, SAID)])  # an answer that the client gives back in other words
        keep(cache, [*map(ord, f"Make a title for chat {number}."), *map(ord, "A title")])  # a call beside it
    return reused, before


@pytest.mark.parametrize("title", SEQUENCES)
def test_an_agents_next_request_reuses_all_of_its_last(title: str) -> None:
    reused, before = reuse(session(title))
    print(f"\n{title}: {reused} of {before} characters reused ({reused / before:.1%})")
    assert reused >= before


def test_aider_sends_another_conversation_each_time_and_reuses_its_head() -> None:
    with answering(TAGGED) as both:
        first, second = (
            [ord(character) for character in prompt_of(both, name)]
            for name in ("aider/01-whole-edit", "aider/02-second-message")
        )
    cache = made(2**26)
    keep(cache, first)
    found = look(cache, second)
    print(f"\naider: {found.tokens} of {len(first)} characters reused")
    assert 0 < found.tokens < len(first) and found.shortfall is not None


def test_four_long_conversations_stay_beside_titles_and_each_other() -> None:
    """Turns of four agents in turn, in a budget that has room for about four such prompts."""
    sessions: Mapping[str, list[list[int]]] = {
        title: session(title) for title in ("claude-code", "codex", "pi chat", "opencode")
    }
    cache = made(sum(len(prompts[-1]) for prompts in sessions.values()) * 5)
    for turn in range(3):
        for prompts in sessions.values():
            found = look(cache, prompts[turn])
            assert found.tokens >= (len(prompts[turn - 1]) if turn else 0)
            keep(cache, prompts[turn])
            keep(cache, [*map(ord, f"Make a title for chat {turn}.")])
