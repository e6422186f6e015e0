"""The real engine on tiny models in folders: files to events."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from slipstream.drafters.dspark import DSpark
from slipstream.engine.engine import MlxEngine, open_engine
from slipstream.engine.pair import Pair
from slipstream.errors import ContextFull, InvalidRequest
from slipstream.events import Delta, Done, Event, Finish, Prefill
from slipstream.jobs import Job
from slipstream.measure.result import Answer
from slipstream.types import Acceptance, Chat, Mode, Options, Prompt, Request, Text, Tokens
from tiny_runs import END, chain_of, half, write_byte_drafter, write_target, write_tokenizer

MODES = (Mode.BASELINE, Mode.DSPARK, Mode.DFLASH, Mode.LOOKUP, Mode.AUTO)
ABC = "abcdefghij"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two drafters, a random target, and one that says the alphabet round and round."""
    root = tmp_path_factory.mktemp("engine")
    write_byte_drafter(root / "dspark", Mode.DSPARK)
    write_byte_drafter(root / "dflash", Mode.DFLASH)
    write_target(root / "random")
    write_target(root / "alphabet", links=chain_of(*ABC.encode(), ord("a")))
    return root


def load(root: Path, name: str) -> MlxEngine:
    return open_engine(Pair(root / name, (root / "dspark", root / "dflash")))


@pytest.fixture(scope="module")
def random_engine(root: Path) -> MlxEngine:
    return load(root, "random")


@pytest.fixture(scope="module")
def alphabet(root: Path) -> MlxEngine:
    return load(root, "alphabet")


def begin(engine: MlxEngine, prompt: Prompt, options: Options) -> tuple[Job, Iterator[Event]]:
    job = Job(Request(prompt, options), lambda _: None)
    return job, engine.run(job)


def ask(engine: MlxEngine, prompt: Prompt | str, options: Options) -> tuple[Answer, Done]:
    """A whole run. Its events are what they promise to be."""
    _, events = begin(engine, Text(prompt) if isinstance(prompt, str) else prompt, options)
    return collect(list(events), options)


def collect(events: Sequence[Event], options: Options) -> tuple[Answer, Done]:
    assert [type(event) for event in events].count(Done) == 1
    done = events[-1]
    assert isinstance(done, Done)
    answer = Answer()
    for event in events:
        answer.add(event)
    deltas = [event for event in events if isinstance(event, Delta)]
    assert len(answer.tokens) == done.timings.output_tokens <= options.max_tokens
    assert len(answer.rounds) == done.timings.rounds
    said = 0
    for delta in deltas:
        if delta.round is not None:
            assert delta.round.position == len(done.prompt_ids) + said - 1
            assert len(delta.tokens) - delta.round.accepted in (0, 1)
            if len(delta.tokens) == delta.round.accepted:  # ended inside the drafts
                assert delta is [delta for delta in deltas if delta.tokens][-1]
                assert done.reason is Finish.STOP
        said += len(delta.tokens)
    return answer, done


@pytest.fixture(scope="module")
def paris(tmp_path_factory: pytest.TempPathFactory, root: Path) -> MlxEngine:
    """P04: the tokenizer ends at 1, config.json at 106, generation_config.json at 1, 106 and 50."""
    folder = tmp_path_factory.mktemp("paris")
    write_target(folder, links=chain_of(*b"?Paris", 50, *b"<new>"), eos_token_id=106)
    write_tokenizer(folder, end=1)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 106, 50]}))
    return open_engine(Pair(folder, (root / "dspark", root / "dflash")))


@pytest.mark.parametrize("mode", MODES)
def test_p04_every_source_of_end_tokens_counts(mode: Mode, paris: MlxEngine) -> None:
    assert paris.info.end_ids == (1, 50, 106)
    # The prompt holds the answer and what would come after it, so that lookup drafts across the end.
    for prompt in ("Capital of France?", "Paris2<new>Pa.. Capital of France?"):
        answer, done = ask(paris, prompt, Options(mode=mode, max_tokens=30))
        assert answer.text == "Paris"
        assert answer.tokens == [*b"Paris", 50]  # the end token is counted and not shown
        assert done.reason is Finish.STOP
        assert done.timings.output_tokens == 6


def test_p04_end_tokens_inside_accepted_drafts(paris: MlxEngine) -> None:
    answer, _ = ask(paris, "Paris2<new>Pa.. Capital of France?", Options(mode=Mode.LOOKUP, max_tokens=30))
    assert answer.rounds[-1].accepted < len(answer.rounds[-1].drafted)
    assert answer.rounds[-1].accepted >= 2


def test_ignoring_the_end_goes_on_and_own_stop_ids_still_stop(paris: MlxEngine) -> None:
    answer, done = ask(paris, "?", Options(max_tokens=9, ignore_eos=True))
    assert answer.tokens == [*b"Paris", 50, *b"<ne"]
    assert done.reason is Finish.LENGTH
    answer, done = ask(paris, "?", Options(max_tokens=9, ignore_eos=True, stop_ids=(ord("r"),)))
    assert (answer.text, answer.tokens, done.reason) == ("Pa", [*b"Par"], Finish.STOP)
    answer, _ = ask(paris, "?", Options(max_tokens=9, stop_ids=(ord("z"),)))
    assert answer.text == "Paris"


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_every_mode_says_the_same_and_the_stream_is_the_text(temperature: float, random_engine: MlxEngine) -> None:
    options = Options(temperature=temperature, seed=5, max_tokens=20, ignore_eos=True)
    plain, _ = ask(random_engine, "Once upon", replace(options, mode=Mode.BASELINE))
    assert plain.text == random_engine.tokeniser.decode(plain.tokens)
    for mode in MODES[1:]:
        answer, _ = ask(random_engine, "Once upon", replace(options, mode=mode))
        assert (answer.tokens, answer.text) == (plain.tokens, plain.text)


@pytest.mark.parametrize("mode", MODES)
def test_never_more_tokens_than_asked(mode: Mode, alphabet: MlxEngine) -> None:
    for most in (1, 2, 3, 7, 8, 20):
        answer, done = ask(alphabet, ABC * 3, Options(mode=mode, max_tokens=most))
        assert len(answer.tokens) == most
        assert answer.text == (ABC * 4)[:most]
        assert done.reason is Finish.LENGTH


def test_a_drafter_that_is_mostly_right_does_not_overshoot(alphabet: MlxEngine) -> None:
    drafter = alphabet.drafters[Mode.DSPARK]
    assert isinstance(drafter, DSpark)

    said = list((ABC * 9).encode())
    engine = MlxEngine(
        alphabet.target,
        {Mode.DSPARK: half(drafter, said, 10)},
        alphabet.tokeniser,
        alphabet.info,
    )
    for most in range(1, 20):
        answer, _ = ask(engine, ABC, Options(mode=Mode.DSPARK, max_tokens=most, max_draft=5))
        assert answer.tokens == said[:most]


@pytest.mark.parametrize("mode", [Mode.BASELINE, Mode.LOOKUP, Mode.AUTO])
@pytest.mark.parametrize(
    ("stop", "text", "count"),
    [("ghi", "abcdef", 9), ("j", "abcdefghi", 10), ("ja", "abcdefghi", 11), ("a", "", 1), ("hijab", "abcdefg", 12)],
)
def test_stop_strings_end_in_every_mode_at_the_same_token(
    mode: Mode, stop: str, text: str, count: int, alphabet: MlxEngine
) -> None:
    answer, done = ask(alphabet, ABC * 2, Options(mode=mode, max_tokens=40, stop=("nothing", stop)))
    assert (answer.text, len(answer.tokens), done.reason, done.stop) == (text, count, Finish.STOP, stop)


def test_p05_the_held_tail_is_released_at_the_length_limit(alphabet: MlxEngine) -> None:
    answer, done = ask(alphabet, ABC, Options(max_tokens=6, stop=("efghi",)))
    assert (answer.text, done.reason, done.stop) == ("abcdef", Finish.LENGTH, None)


def test_a_full_context_ends_the_answer_and_a_too_long_prompt_is_refused(root: Path) -> None:
    folder = write_target(root / "short", links=chain_of(*ABC.encode(), ord("a")), max_position_embeddings=24)
    engine = open_engine(Pair(folder, (root / "dflash",)))
    for mode in (Mode.BASELINE, Mode.DFLASH, Mode.LOOKUP):
        for length in (20, 23):
            prompt = Tokens(tuple((ABC * 3).encode()[:length]))
            answer, done = ask(engine, prompt, Options(mode=mode, max_tokens=50))
            assert (len(answer.tokens), done.reason) == (24 - length, Finish.LENGTH)
    for length in (24, 30):
        with pytest.raises(ContextFull, match=f"prompt is too long: {length} tokens > 24 maximum"):
            ask(engine, Tokens(tuple((ABC * 3).encode()[:length])), Options())


def test_cancel_during_prefill_ends_within_one_chunk(random_engine: MlxEngine) -> None:
    job, events = begin(random_engine, Tokens((97,) * 200), Options())
    assert next(events) == Prefill(0, 200, 0)
    assert next(events) == Prefill(32, 200, 0)
    job.cancel()
    (done,) = events
    assert isinstance(done, Done)
    assert (done.reason, done.timings.output_tokens) == (Finish.CANCELLED, 0)


@pytest.mark.parametrize("mode", MODES)
def test_cancel_during_decoding_ends_within_one_round(mode: Mode, random_engine: MlxEngine) -> None:
    job, events = begin(random_engine, Text("abc"), Options(mode=mode, max_tokens=200, ignore_eos=True))
    seen: list[Event] = []
    while sum(isinstance(event, Delta) for event in seen) < 3:
        seen.append(next(events))
    job.cancel()
    rest = list(events)
    done = rest[-1]
    assert isinstance(done, Done)
    assert done.reason is Finish.CANCELLED
    # At most the text that was held back; no tokens more.
    assert not any(event.tokens for event in rest if isinstance(event, Delta))
    assert done.timings.output_tokens == sum(len(event.tokens) for event in seen if isinstance(event, Delta))


def test_jobs_that_take_turns_say_what_they_say_alone(random_engine: MlxEngine) -> None:
    wishes = [
        (Text("first"), Options(mode=Mode.DSPARK, temperature=0.9, seed=1, max_tokens=12, ignore_eos=True)),
        (Text("the second one"), Options(mode=Mode.DFLASH, max_tokens=15, repetition_penalty=1.3, ignore_eos=True)),
        (Text("third third third"), Options(mode=Mode.AUTO, temperature=0.5, seed=2, max_tokens=9, ignore_eos=True)),
    ]
    alone = [ask(random_engine, prompt, options)[0] for prompt, options in wishes]
    turns = [(number, begin(random_engine, *wish)[1]) for number, wish in enumerate(wishes)]
    said: list[list[Event]] = [[] for _ in wishes]
    while turns:
        number, events = turns.pop(0)
        if (event := next(events, None)) is not None:
            said[number].append(event)
            turns.append((number, events))
    for (_, options), events, own in zip(wishes, said, alone, strict=True):
        answer, _ = collect(events, options)
        assert (answer.tokens, answer.text) == (own.tokens, own.text)


@pytest.mark.parametrize("prompt", [Text(""), Tokens(())])
def test_an_empty_prompt_is_refused(prompt: Prompt, random_engine: MlxEngine) -> None:
    with pytest.raises(InvalidRequest, match="the prompt is empty"):
        ask(random_engine, prompt, Options())


def test_half_a_surrogate_pair_is_refused(random_engine: MlxEngine) -> None:
    """JSON can spell it; an error of another kind would fault the engine for everybody."""
    for prompt in (Text("a\ud800"), Chat(({"role": "user", "content": "a\ud800"},))):
        with pytest.raises(InvalidRequest):
            ask(random_engine, prompt, Options())


@pytest.mark.parametrize("name", ["tokenize", "chat_template", "return_dict", "add_generation_prompt", "tools"])
def test_template_variables_cannot_change_what_rendering_is(name: str, random_engine: MlxEngine) -> None:
    chat = Chat(({"role": "user", "content": "hi"},), template={name: False})
    with pytest.raises(InvalidRequest, match=f"{name} cannot be set"):
        ask(random_engine, chat, Options())


@pytest.mark.parametrize("token", [-1, 260, 10**9])
def test_ids_outside_the_vocabulary_are_refused(token: int, random_engine: MlxEngine) -> None:
    """MLX would read past the end of its tables and bring the process down."""
    with pytest.raises(InvalidRequest, match=f"prompt names token {token}.* from 0 to 259"):
        ask(random_engine, Tokens((97, token)), Options())
    if token > 0:
        with pytest.raises(InvalidRequest, match=f"logit_bias names token {token}"):
            ask(random_engine, "abc", Options(logit_bias={97: 1.0, token: 1.0}))
        with pytest.raises(InvalidRequest, match=f"stop_ids names token {token}"):
            ask(random_engine, "abc", Options(stop_ids=(token,)))


def test_a_mode_whose_drafter_is_not_loaded_is_refused(root: Path) -> None:
    engine = open_engine(Pair(root / "random", (root / "dflash",)))
    with pytest.raises(InvalidRequest, match=r"no dspark drafter is loaded \(loaded: dflash\)"):
        ask(engine, "abc", Options(mode=Mode.DSPARK))


def test_a_chat_is_rendered_by_the_models_template(random_engine: MlxEngine) -> None:
    chat = Chat(({"role": "user", "content": "hi"},))
    _, done = ask(random_engine, chat, Options(max_tokens=1))
    assert done.prompt_ids == (257, *b"hi", 258)


def test_messages_that_do_not_fit_the_template_are_refused(random_engine: MlxEngine) -> None:
    with pytest.raises(InvalidRequest, match="chat template"):
        ask(random_engine, Chat(("not a message",)), Options())  # pyright: ignore[reportArgumentType]


def test_rejection_mode_is_repeatable_and_keeps_the_limits(random_engine: MlxEngine) -> None:
    options = Options(
        temperature=0.9, seed=3, max_tokens=15, acceptance=Acceptance.REJECTION, mode=Mode.DSPARK, ignore_eos=True
    )
    one, _ = ask(random_engine, "abc", options)
    two, _ = ask(random_engine, "abc", options)
    assert one.tokens == two.tokens
    assert len(one.tokens) == 15


def test_logprobs_and_margins_come_one_for_each_token(alphabet: MlxEngine) -> None:
    options = Options(mode=Mode.LOOKUP, max_tokens=14, logprobs=2, margins=True, stop=("ij",))
    _, events = begin(alphabet, Text(ABC * 2), options)
    deltas = [event for event in events if isinstance(event, Delta) and event.tokens]
    assert sum(len(delta.tokens) for delta in deltas) == 10
    for delta in deltas:
        assert len(delta.logprobs) == len(delta.margins) == len(delta.tokens)
        for token, choice in zip(delta.tokens, delta.logprobs, strict=True):
            assert choice.top[0] == (token, choice.logprob)  # greedy


def test_what_is_known_of_the_pair(random_engine: MlxEngine) -> None:
    info = random_engine.info
    assert (info.name, info.vocabulary, info.context) == ("random", 260, 2048)
    assert info.drafters == (Mode.DSPARK, Mode.DFLASH)
    assert (info.dtype, info.quantisation, info.end_ids) == ("float32", "none", (END,))


def test_a_cpu_checks_no_more_than_seven_drafts_unless_it_is_told_to(root: Path, tmp_path: Path) -> None:
    write_byte_drafter(tmp_path / "long", Mode.DSPARK, block=10)
    engine = open_engine(Pair(root / "random", (tmp_path / "long",)))
    usual, _ = ask(engine, "abc", Options(mode=Mode.DSPARK, max_tokens=14))
    told, _ = ask(engine, "abc", Options(mode=Mode.DSPARK, max_tokens=14, max_draft=10))
    assert len(usual.rounds[0].drafted) == 7
    assert len(told.rounds[0].drafted) == 10
    assert usual.tokens == told.tokens


def test_a_pair_is_loaded_again_on_the_thread_that_closed_one(root: Path) -> None:
    """As the window does, whose engine has one thread for all pairs; closing clears the thread's streams."""
    said: list[str] = []

    def work() -> None:
        for _ in range(3):
            engine = load(root, "alphabet")
            said.append(ask(engine, "a", Options(max_tokens=4))[0].text)
            engine.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert said == ["bcde"] * 3
