from __future__ import annotations

import pytest

from prompt.pieces import THINK, brief, parse, parse_every_way
from slipstream.prompt.output import OutputStyle, detect
from slipstream.prompt.thinking import HARMONY_TAGS, ThinkTags, prompt_opens_thinking

QWEN = OutputStyle("json_tools", THINK)
CALL = '<tool_call>{"name": "find_text", "arguments": {"pattern": "a"}}</tool_call>'
CALLED = ("call", "find_text", '{"pattern": "a"}')


def test_p08_thoughts_stay_thoughts() -> None:
    for tools in ("json_tools", None):
        style = OutputStyle(tools, THINK)
        run = {"opens_in_thinking": True}
        assert brief(parse_every_way(style, "let me see", cut=True, **run)) == [("thinking", "let me see")]
        assert brief(parse_every_way(style, "let me see</think>42", **run)) == [
            ("thinking", "let me see"),
            ("content", "42"),
        ]


@pytest.mark.parametrize(
    "tags",
    [
        THINK,
        ThinkTags("<|channel>thought", "<channel|>"),
        ThinkTags("[THINK]", "[/THINK]"),
        ThinkTags("<seed:think>", "</seed:think>"),
        ThinkTags("<|START_THINKING|>", "<|END_THINKING|>"),
        ThinkTags("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ],
)
def test_every_tag_style_is_split(tags: ThinkTags) -> None:
    text = f"{tags.start}\nlet me see\n{tags.end}\n\n42 {tags.start} "
    assert brief(parse_every_way(OutputStyle(None, tags), text)) == [
        ("thinking", "let me see"),
        ("content", f"42 {tags.start} "),
    ]


@pytest.mark.parametrize(
    ("text", "opens", "expected"),
    [
        ("just an answer", False, [("content", "just an answer")]),
        ("  leading space stays", False, [("content", "  leading space stays")]),
        ("<think>\n\n</think>\n\n42", False, [("content", "42")]),
        ("\n<think>a</think>b", False, [("thinking", "a"), ("content", "b")]),
        ("<think>no end", False, [("thinking", "no end")]),
        ("\n\n</think>\n\n42", True, [("content", "42")]),
        ("", True, []),
        # the template has opened it, and the model opens it again
        ("<think>\na</think>b", True, [("thinking", "a"), ("content", "b")]),
        # twice
        ("a</think>\n</think>\nb", True, [("thinking", "a"), ("content", "b")]),
        ("<think>a</think>\n<think>b</think>c", False, [("thinking", "ab"), ("content", "c")]),
        # an end without a beginning
        ("</think>b", False, [("content", "b")]),
        # nested: the first end tag ends it, and nothing is lost
        ("a <think> b</think>c</think>d", True, [("thinking", "a <think> b"), ("content", "c</think>d")]),
        # the answer has begun: it speaks of tags
        ("a</think>Write:\n```\n<think>x</think>\n```", True, [
            ("thinking", "a"), ("content", "Write:\n```\n<think>x</think>\n```"),
        ]),
        # not quite a tag
        ("a </thinkk> b </ think></think>c", True, [("thinking", "a </thinkk> b </ think>"), ("content", "c")]),
    ],
)  # fmt: skip
def test_tags_at_the_edges(text: str, opens: bool, expected: list[tuple[str, ...]]) -> None:
    for style in (QWEN, OutputStyle(None, THINK)):
        assert brief(parse_every_way(style, text, opens_in_thinking=opens)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # calls that end an unclosed thought were meant
        (f"hm\n{CALL}\n", [("thinking", "hm"), CALLED]),
        (f"hm\n{CALL}\n{CALL}", [("thinking", "hm"), CALLED, CALLED]),
        # a thought about a call is a thought
        (f"hm {CALL} no</think>b", [("thinking", f"hm {CALL} no"), ("content", "b")]),
        (f"hm {CALL}</think>b", [("thinking", f"hm {CALL}"), ("content", "b")]),
        ("the <tool_call> tag</think>b", [("thinking", "the <tool_call> tag"), ("content", "b")]),
        (f"hm {CALL} no</think>{CALL}", [("thinking", f"hm {CALL} no"), CALLED]),
        (f"hm {CALL[:50]}</think>b", [("thinking", f"hm {CALL[:50]}"), ("content", "b")]),
    ],
)
def test_calls_in_thoughts(text: str, expected: list[tuple[str, ...]]) -> None:
    assert brief(parse_every_way(QWEN, text, opens_in_thinking=True)) == expected


def test_a_call_cut_off_in_a_thought_is_a_thought() -> None:
    text = f"hm {CALL[:50]}"
    assert brief(parse_every_way(QWEN, text, opens_in_thinking=True, cut=True)) == [("thinking", text)]


def test_a_new_thought_may_follow_a_call() -> None:
    text = f"<think>a</think>{CALL}\n<think>b</think>done"
    assert brief(parse_every_way(QWEN, text)) == [
        ("thinking", "a"),
        CALLED,
        ("thinking", "b"),
        ("content", "done"),
    ]


def test_thoughts_are_streamed_at_once() -> None:
    assert brief(parse(QWEN, ["one"], opens_in_thinking=True)) == [("thinking", "one")]


@pytest.mark.parametrize(
    ("prompt", "opens"),
    [
        ("<|im_start|>assistant\n<think>\n", True),
        ("<|im_start|>assistant\n<think>", True),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", False),
        ("<|im_start|>user\nwhat is <think>?<|im_end|>\n<|im_start|>assistant\n", False),
        ("", False),
    ],
)
def test_prompt_opens_thinking(prompt: str, opens: bool) -> None:
    assert prompt_opens_thinking(prompt, THINK) is opens
    assert not prompt_opens_thinking(prompt, None)


@pytest.mark.parametrize(
    ("template", "vocabulary", "tags"),
    [
        ("{% if enable_thinking %}<think>\n{% else %}<think>\n\n</think>", ["<think>", "</think>"], THINK),
        (None, ["<think>", "</think>"], THINK),
        ("{{ content.split('</think>')[-1] }}", [], THINK),
        ("<|channel>thought\n<channel|>", [], ThinkTags("<|channel>thought", "<channel|>")),
        (None, ["<|channel>", "<channel|>"], ThinkTags("<|channel>thought", "<channel|>")),
        ("[THINK]{{ x }}[/THINK]", [], ThinkTags("[THINK]", "[/THINK]")),
        (None, ["<|channel|>", "<|message|>"], HARMONY_TAGS),
        ("{{ x }}<|im_start|>assistant\n<think>\n", [], THINK),  # its end is the model's to write
        ("{{ messages }}", [], None),
        (None, [], None),
    ],
)
def test_detect(template: str | None, vocabulary: list[str], tags: ThinkTags | None) -> None:
    assert detect(template, vocabulary).think == tags
