"""Answers held to a grammar: right for the schema, and the same ids whoever drafts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import jsonschema
import mlx.core as mx
import pytest

from slipstream.drafters.protocol import Proposal
from slipstream.engine.decide import Chooser
from slipstream.engine.engine import MlxEngine, open_engine
from slipstream.engine.pair import Pair
from slipstream.engine.round import GRAMMAR
from slipstream.errors import InvalidRequest
from slipstream.events import Choice, Delta, Done, Finish
from slipstream.jobs import Job
from slipstream.measure.result import Answer
from slipstream.models.host import ints
from slipstream.prompt.grammar import Thoughts, answer_grammar, tool_grammar
from slipstream.types import Acceptance, Grammar, Mode, Options, Request, Text
from tiny_runs import END, chain_of, half, write_byte_drafter, write_target

PROMPT = "say it in json: "
SCHEMAS: dict[str, dict[str, Any]] = {
    "nested": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "home": {
                "type": "object",
                "properties": {
                    "street": {"type": "string", "pattern": "^[A-Z][a-z]{2,6}$"},
                    "number": {"$ref": "#/$defs/n"},
                },
                "required": ["street", "number"],
                "additionalProperties": False,
            },
        },
        "required": ["name", "home"],
        "additionalProperties": False,
        "$defs": {"n": {"type": "integer", "minimum": 1, "maximum": 250}},
    },
    "arrays": {
        "type": "array",
        "items": {"type": "array", "items": {"type": ["boolean", "null"]}, "minItems": 1, "maxItems": 3},
        "minItems": 2,
        "maxItems": 4,
    },
    "enums": {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "green", "grey", None, 7]}, "kind": {"const": "paint"}},
        "required": ["colour", "kind"],
        "additionalProperties": False,
    },
    "numbers": {
        "type": "array",
        "items": {"type": "number", "minimum": -1.5, "exclusiveMaximum": 20, "multipleOf": 0.5},
        "minItems": 3,
        "maxItems": 3,
    },
    "strings": {
        "type": "object",
        "properties": {"code": {"type": "string", "pattern": "^[a-f]{2}-[0-9]+$", "maxLength": 9}},
        "patternProperties": {"^x_[ab]$": {"type": "string", "minLength": 1, "maxLength": 4}},
        "required": ["code", "x_a"],
        "additionalProperties": False,
    },
}
MODES = (Mode.DSPARK, Mode.DFLASH, Mode.LOOKUP, Mode.AUTO)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("grammar")
    write_byte_drafter(root / "dspark", Mode.DSPARK)
    write_byte_drafter(root / "dflash", Mode.DFLASH)
    write_target(root / "random")
    return root


@pytest.fixture(scope="module")
def engine(root: Path) -> MlxEngine:
    return open_engine(Pair(root / "random", (root / "dspark", root / "dflash")))


def run(engine: MlxEngine, options: Options) -> tuple[Answer, Done]:
    answer = Answer()
    done: list[Done] = []
    for event in engine.run(Job(Request(Text(PROMPT), options), lambda _: None)):
        answer.add(event)
        done += [event] if isinstance(event, Done) else []
    assert len(done) == 1
    assert len(answer.tokens) == done[0].timings.output_tokens
    return answer, done[0]


def options_for(schema: object, **changes: Any) -> Options:
    return replace(Options(max_tokens=200, grammar=Grammar("json_schema", json.dumps(schema))), **changes)


def knowing(engine: MlxEngine, said: list[int]) -> MlxEngine:
    """The same with drafters that are right about half of the time."""
    length = len(engine.tokeniser.encode(Text(PROMPT)))
    drafters = {mode: half(drafter, said, length) for mode, drafter in engine.drafters.items()}
    return MlxEngine(engine.target, drafters, engine.tokeniser, engine.info)


def drafting(engine: MlxEngine, said: list[int]) -> Iterator[tuple[MlxEngine, Mode]]:
    clever = knowing(engine, said)
    for mode in MODES:
        yield engine, mode
    for mode in engine.drafters:
        yield clever, mode


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("name", SCHEMAS)
def test_answers_fit_the_schema_and_do_not_depend_on_who_drafts(
    name: str, temperature: float, engine: MlxEngine
) -> None:
    sources: Counter[str] = Counter()
    for seed in range(1 if temperature == 0 else 2):
        options = options_for(SCHEMAS[name], temperature=temperature, seed=seed, mode=Mode.BASELINE)
        plain, done = run(engine, options)
        assert done.reason is Finish.STOP
        jsonschema.validate(json.loads(plain.text), SCHEMAS[name])
        assert not any(made.drafted for made in plain.rounds)
        for drafter, mode in drafting(engine, plain.tokens):
            other, done = run(drafter, replace(options, mode=mode))
            assert (other.tokens, other.text, done.reason) == (plain.tokens, plain.text, Finish.STOP), mode
            assert len(other.rounds) <= len(plain.rounds)
            sources.update(made.source for made in other.rounds if made.accepted)
    if name != "enums":  # almost all of it is forced
        assert sources["dspark"] and sources["dflash"]
    if name in ("nested", "enums"):
        assert sources[GRAMMAR]


@pytest.mark.parametrize(
    "changes",
    [
        {"repetition_penalty": 1.3, "frequency_penalty": 0.4},
        {"temperature": 1.0, "top_k": 3},
        {"temperature": 1.0, "top_p": 0.5, "min_p": 0.05},
        {"logit_bias": {ord("e"): 9.0, ord('"'): -20.0}},
        {"ignore_eos": True},
        {"max_draft": 2},
    ],
    ids=str,
)
def test_every_option_goes_with_a_grammar(changes: dict[str, Any], engine: MlxEngine) -> None:
    schema = SCHEMAS["nested"]
    plain, done = run(engine, options_for(schema, mode=Mode.BASELINE, **changes))
    jsonschema.validate(json.loads(plain.text), schema)
    assert done.reason is Finish.STOP
    for drafter, mode in drafting(engine, plain.tokens):
        other, _ = run(drafter, options_for(schema, mode=mode, **changes))
        assert other.tokens == plain.tokens


@pytest.mark.parametrize(("width", "temperature"), [(0, 0.9), (1, 0.0), (3, 0.9), (7, 0.9)])
def test_any_number_of_drafts_gives_the_same_ids(width: int, temperature: float, engine: MlxEngine) -> None:
    options = options_for(SCHEMAS["enums"], temperature=temperature, seed=3)
    plain, _ = run(engine, replace(options, mode=Mode.BASELINE))
    for drafter, mode in drafting(engine, plain.tokens):
        other, _ = run(drafter, replace(options, mode=mode, max_draft=width))
        assert other.tokens == plain.tokens
        assert all(len(made.drafted) <= width for made in other.rounds)


CALLING = [
    {
        "name": "look",
        "strict": True,
        "parameters": {"type": "object", "properties": {"deep": {"type": "boolean"}}, "required": ["deep"]},
    }
]


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_thoughts_before_an_answer_do_not_depend_on_who_drafts(temperature: float, root: Path) -> None:
    """The prompt ends as one that opens a thought; the model closes it, and would go on for ever."""
    write_target(root / "thinker", links=chain_of(*b" zy</think>", ord(" ")))
    engine = open_engine(Pair(root / "thinker", (root / "dspark", root / "dflash")))
    grammar = answer_grammar(SCHEMAS["enums"], thoughts=Thoughts("<think>", "</think>", is_open=True))
    options = Options(max_tokens=200, grammar=grammar, temperature=temperature, seed=2)
    plain, done = run(engine, replace(options, mode=Mode.BASELINE))
    assert done.reason is Finish.STOP
    thought, _, said = plain.text.partition("</think>")
    assert thought and "{" not in thought
    jsonschema.validate(json.loads(said), SCHEMAS["enums"])
    for drafter, mode in drafting(engine, plain.tokens):
        other, _ = run(drafter, replace(options, mode=mode))
        assert (other.tokens, other.text) == (plain.tokens, plain.text)


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_text_around_strict_calls_does_not_depend_on_who_drafts(temperature: float, root: Path) -> None:
    pad = 259
    write_target(root / "caller", links=chain_of(ord(" "), *b"ok", pad))
    engine = open_engine(Pair(root / "caller", (root / "dspark", root / "dflash")))
    grammar = answer_grammar(None, CALLING, style="json_tools")
    assert grammar is not None
    grammar = replace(grammar, tags=("<pad>", *grammar.tags[1:]))  # a model of chains writes it, and a tag of one token
    options = Options(max_tokens=90, grammar=grammar, temperature=temperature, seed=2)
    plain, _ = run(engine, replace(options, mode=Mode.BASELINE))
    assert plain.tokens[:3] == [*b"ok", pad]
    assert plain.text.startswith('ok\n{"name": "look", "arguments": {"deep": ')
    for drafter, mode in drafting(engine, plain.tokens):
        assert run(drafter, replace(options, mode=mode))[0].tokens == plain.tokens


@pytest.mark.parametrize("name", ["nested", "arrays"])
def test_a_budget_that_ends_in_the_middle_cuts_the_same_answer(name: str, engine: MlxEngine) -> None:
    whole, _ = run(engine, options_for(SCHEMAS[name], mode=Mode.BASELINE))
    length = len(whole.tokens)
    for most in (1, 7, length // 2, length - 1, length):
        for drafter, mode in ((engine, Mode.BASELINE), *drafting(engine, whole.tokens)):
            cut, done = run(drafter, options_for(SCHEMAS[name], mode=mode, max_tokens=most))
            assert cut.tokens == whole.tokens[:most]
            assert done.reason is (Finish.LENGTH if most < length else Finish.STOP)


def test_an_answer_that_may_go_on_ends_with_an_end_token(engine: MlxEngine) -> None:
    end_first = {"logit_bias": {END: 60.0}}  # without the grammar it would be the first token
    schema = {"type": "integer", "minimum": 10}
    plain, done = run(engine, options_for(schema, mode=Mode.BASELINE, **end_first))
    assert plain.tokens[-1] == END
    assert done.reason is Finish.STOP
    assert END not in plain.tokens[:-1]
    assert json.loads(plain.text) >= 10
    for drafter, mode in drafting(engine, plain.tokens):
        assert run(drafter, options_for(schema, mode=mode, **end_first))[0].tokens == plain.tokens
        # The end token ends a grammar also where it would not end an answer.
        assert run(drafter, options_for(schema, mode=mode, ignore_eos=True, **end_first))[0].tokens == plain.tokens


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("mode", [Mode.BASELINE, *MODES])
def test_rejection_keeps_to_the_schema_too(name: str, mode: Mode, engine: MlxEngine) -> None:
    options = options_for(SCHEMAS[name], mode=mode, temperature=1.0, seed=5, acceptance=Acceptance.REJECTION, top_k=40)
    answer, done = run(engine, options)
    assert done.reason is Finish.STOP
    jsonschema.validate(json.loads(answer.text), SCHEMAS[name])


class Fixed:
    """A constraint that always allows the same tokens."""

    def __init__(self, allowed: list[bool]) -> None:
        self.allowed = mx.array(allowed)

    def masks(self, drafts: list[int]) -> mx.array:
        return mx.broadcast_to(self.allowed, (len(drafts) + 1, self.allowed.shape[0]))


def test_rejection_of_cut_drafts_has_the_target_s_distribution() -> None:
    """Drafts are drawn without the grammar, and forbidden ones cut; the kept token must not show it."""
    allowed = [True, True, True, False, False]
    target = mx.log(mx.array([0.1, 0.2, 0.1, 0.3, 0.3]))
    drafter = mx.log(mx.array([0.35, 0.05, 0.1, 0.1, 0.4]))
    counts, cut, runs = Counter[int](), 0, 1500
    for seed in range(runs):
        options = Options(temperature=1.0, seed=seed, acceptance=Acceptance.REJECTION)
        chooser = Chooser(options, 5, [0], cast(Any, Fixed(allowed)))
        draft = ints(chooser.draw(drafter[None], 7))
        kept = draft if allowed[draft[0]] else []
        cut += not kept
        proposal = Proposal(mx.array(kept, dtype=mx.int32), None, drafter[None][: len(kept)])
        decision = chooser.decide(mx.stack([target] * (len(kept) + 1)), proposal, 7)
        is_accepted = decision.accepted is not None and bool(ints(decision.accepted)[0])
        counts[kept[0] if is_accepted else ints(decision.tokens)[0]] += 1
    assert cut > runs / 3
    for token, share in enumerate((0.25, 0.5, 0.25, 0, 0)):
        assert counts[token] / runs == pytest.approx(share, abs=0.045), counts


def test_logprobs_are_those_of_the_model(engine: MlxEngine) -> None:

    def chances(by: MlxEngine, options: Options) -> tuple[list[int], list[Choice]]:
        events = by.run(Job(Request(Text(PROMPT), options), lambda _: None))
        deltas = [event for event in events if isinstance(event, Delta)]
        return [token for delta in deltas for token in delta.tokens], [
            one for delta in deltas for one in delta.logprobs
        ]

    options = options_for(SCHEMAS["enums"], mode=Mode.BASELINE, logprobs=1)
    tokens, own = chances(engine, options)
    _, free = chances(engine, replace(options, grammar=None, max_tokens=1))
    # The first token is forced; the model would rather have said something else, with the same probability as ever.
    assert tokens[0] == ord("{")
    assert own[0].logprob < own[0].top[0][1]
    assert own[0].top == free[0].top
    for drafter, mode in drafting(engine, tokens):
        said, other = chances(drafter, replace(options, mode=mode))
        assert said == tokens
        assert [one.logprob for one in other] == pytest.approx([one.logprob for one in own], abs=1e-4)


def test_forced_tokens_are_free(engine: MlxEngine) -> None:
    schema = {
        "type": "object",
        "properties": {"a_rather_long_name": {"type": "boolean"}, "another_long_name": {"type": "null"}},
        "required": ["a_rather_long_name", "another_long_name"],
        "additionalProperties": False,
    }
    plain, _ = run(engine, options_for(schema, mode=Mode.BASELINE))
    lookup, _ = run(engine, options_for(schema, mode=Mode.LOOKUP))
    assert lookup.tokens == plain.tokens
    assert len(lookup.rounds) * 8 < len(plain.rounds)
    for made in lookup.rounds:
        assert made.source != GRAMMAR or made.accepted == len(made.drafted)


def test_a_forced_call_is_made_by_a_model_that_would_never_call(root: Path) -> None:
    tools = [
        {
            "name": "look",
            "parameters": {"type": "object", "properties": {"deep": {"type": "boolean"}}, "required": ["deep"]},
        },
        {"name": "stop", "parameters": {"type": "object", "properties": {}}},
    ]
    write_target(root / "alphabet", links=chain_of(*b"abcdefghij", ord("a")))
    engine = open_engine(Pair(root / "alphabet", (root / "dspark",)))
    texts: set[str] = set()
    for mode in (Mode.BASELINE, Mode.DSPARK, Mode.LOOKUP):
        answer, done = run(engine, Options(grammar=tool_grammar(tools, "required", "generic"), mode=mode))
        assert done.reason is Finish.STOP
        texts.add(answer.text)
    (text,) = texts
    call = json.loads(text.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>"))
    assert call in ({"name": "look", "arguments": {"deep": deep}} for deep in (True, False)) or call == {
        "name": "stop",
        "arguments": {},
    }


BAD: Iterable[Grammar] = (
    Grammar("json_schema", '{"type": "array", "uniqueItems": true}'),
    Grammar("json_schema", '{"$ref": "#"}'),
    Grammar("regex", "("),
)


@pytest.mark.parametrize("grammar", BAD, ids=str)
def test_a_bad_grammar_fails_its_request_alone(grammar: Grammar, engine: MlxEngine) -> None:
    with pytest.raises(InvalidRequest):
        run(engine, Options(grammar=grammar))
    plain, _ = run(engine, Options(max_tokens=5))
    assert len(plain.tokens) == 5
