"""A reused prompt changes nothing: the ids are those of a run that computes everything, whoever drafts."""

from __future__ import annotations

import itertools
import json
import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten
from mlx_lm.models import gemma3_text, qwen3_next

import tiny
import tiny_families
import tiny_mtp
from slipstream.engine.engine import MlxEngine, open_engine
from slipstream.engine.pair import Pair
from slipstream.events import Delta, Done, Finish, Miss, Prefill, Timings
from slipstream.jobs import Job
from slipstream.models import backend, kept
from slipstream.store.prefixes import nodes
from slipstream.types import Acceptance, CacheLimits, Mode, Options, Request, Tokens
from tiny_runs import byte_config, write_byte_drafter, write_target, write_tokenizer

MODES = (Mode.AUTO, Mode.DSPARK, Mode.DFLASH, Mode.LOOKUP, Mode.BASELINE)
MIB = 2**20


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("reuse")
    write_byte_drafter(root / "dspark", Mode.DSPARK)
    write_byte_drafter(root / "dflash", Mode.DFLASH)
    write_target(root / "llama")
    return root


def load(root: Path, cache: Path | None, *, ram: int = 64 * MIB, disk: int = 64 * MIB, **pair: Any) -> MlxEngine:
    limits = None if cache is None else CacheLimits(ram, disk, str(cache))
    drafters = (root / "dspark", root / "dflash")
    return open_engine(Pair(root / "llama", drafters, **pair), limits)


def ask(
    engine: MlxEngine, prompt: Sequence[int], *, cancel_at: int | None = None, **options: Any
) -> tuple[list[int], Timings]:
    """The ids, with events that say what they promise."""
    given: dict[str, Any] = {"ignore_eos": True, "max_tokens": 12, **options}
    chosen = Options(**given)
    job = Job(Request(Tokens(tuple(prompt)), chosen), lambda _: None)
    ids: list[int] = []
    first: int | None = None
    for count, event in enumerate(engine.run(job)):
        if count == cancel_at:
            job.cancel()
        match event:
            case Prefill(done, total, reused):
                first = reused if first is None else first
                assert reused <= done <= total == len(prompt)
            case Delta():
                ids += event.tokens
            case Done():
                assert event.timings.reused_tokens < len(prompt)
                if event.timings.shortfall is None or event.timings.shortfall.reason is not Miss.DAMAGED:
                    assert first == event.timings.reused_tokens, "the first event says it, for message_start"
                return ids, event.timings
            case _:
                pass
    raise AssertionError("no Done")


def restarted(engine: MlxEngine) -> None:
    """As a process that ends in order does, but for the device, which the next engine of this thread needs."""
    assert engine.prompt_cache is not None
    engine.prompt_cache.close()


@pytest.fixture(scope="module")
def cold(root: Path) -> MlxEngine:
    return load(root, None)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_random_conversations_say_what_a_cold_run_says(seed: int, root: Path, cold: MlxEngine, tmp_path: Path) -> None:
    """Branches, budgets so small that much is evicted, restarts, cancels; greedy and seeded; every mode."""
    assert backend._loaded is None, "with a faster BLAS ties may occur"
    chance = random.Random(seed)
    ram, disk = chance.choice([(64 * MIB, 0), (MIB // 2, 64 * MIB), (MIB // 2, MIB), (0, 64 * MIB), (MIB, 0)])
    engine = load(root, tmp_path, ram=ram, disk=disk)
    modes = itertools.cycle(chance.sample(MODES, len(MODES)))
    prompts: list[list[int]] = [[chance.randrange(256) for _ in range(150)]]
    reused = 0
    for _ in range(10):
        base = chance.choice(prompts[-3:])
        prompt = base[: chance.randint(len(base) // 2, len(base))] if chance.random() < 0.4 else list(base)
        prompt += [chance.choice((65, 66, 67, chance.randrange(256))) for _ in range(chance.choice([1, 30, 100]))]
        options: dict[str, Any] = {
            "mode": next(modes),
            "temperature": chance.choice([0.0, 0.8]),
            "seed": chance.randrange(100),
            "max_tokens": chance.choice([1, 2, 20]),
        }
        if chance.random() < 0.2:
            ask(engine, prompt, cancel_at=chance.randrange(6), **options)
        ids, timings = ask(engine, prompt, **options)
        assert ids == ask(cold, prompt, **options)[0]
        reused += timings.reused_tokens
        prompts.append([*prompt, *ids])
        if disk and chance.random() < 0.3:
            restarted(engine)
            engine = load(root, tmp_path, ram=ram, disk=disk)
    assert reused > 0
    restarted(engine)


@pytest.mark.slow
def test_a_models_own_heads_begin_from_a_kept_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a hybrid, whose state is kept at checkpoints; after a restart too, and after a prompt that parts from it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tiny_families, "FAMILIES", tiny_mtp.bytes_family("qwen3_5"))
    folder, _ = tiny_mtp.write(tmp_path / "model", "qwen3_5", "published")
    write_tokenizer(folder)

    def opened(cache: Path | None) -> MlxEngine:
        limits = None if cache is None else CacheLimits(64 * MIB, 64 * MIB, str(cache))
        return open_engine(Pair(folder, (folder,), guard_memory=False), limits)

    engine, fresh = opened(tmp_path / "kept"), opened(None)
    prompt = [(7 * n * n + 3) % 250 for n in range(290)]
    first, _ = ask(engine, prompt, mode=Mode.MTP)
    assert first == ask(fresh, prompt, mode=Mode.MTP)[0] == ask(fresh, prompt, mode=Mode.BASELINE)[0]
    restarted(engine)
    engine = opened(tmp_path / "kept")
    for turn in ([*prompt, *first, 1, 2, 3], [*prompt, 9, 9, 9]):
        warm, timings = ask(engine, turn, mode=Mode.MTP, temperature=0.8, seed=4)
        assert timings.reused_tokens >= len(prompt) - 1
        assert warm == ask(fresh, turn, mode=Mode.BASELINE, temperature=0.8, seed=4)[0]
    restarted(engine)


@pytest.mark.parametrize(
    "mode", [Mode.AUTO, Mode.DSPARK, *(pytest.param(mode, marks=pytest.mark.slow) for mode in MODES[2:])]
)
@pytest.mark.parametrize("kv_bits", [0, pytest.param(8, marks=pytest.mark.slow)])
def test_the_second_turn_of_every_mode(mode: Mode, kv_bits: int, root: Path, tmp_path: Path) -> None:
    """Also of a packed cache; the drafter says after the reused prefix what it would say after a computed one."""
    engine = load(root, tmp_path, kv_bits=kv_bits)
    fresh = load(root, None, kv_bits=kv_bits)
    prompt = [(7 * n * n + 3) % 250 for n in range(300)]
    first, timings = ask(engine, prompt, mode=mode)
    assert timings.shortfall is not None and timings.shortfall.reason is Miss.NEW
    second = [*prompt, *first, 1, 2, 3]
    variants: list[dict[str, Any]] = [
        {},
        {"temperature": 0.9, "seed": 5},
        {"acceptance": Acceptance.REJECTION, "temperature": 0.9},
    ]
    for options in variants:
        warm, timings = ask(engine, second, mode=mode, **options)
        assert timings.reused_tokens >= len(second) - 4 and timings.shortfall is None
        assert warm == ask(fresh, second, mode=mode, **options)[0]
        if mode is not Mode.AUTO:  # whose rounds go by measured time
            assert rounds(engine, second, mode, **options) == rounds(fresh, second, mode, **options)
    restarted(engine)


def rounds(engine: MlxEngine, prompt: Sequence[int], mode: Mode, **options: Any) -> list[object]:
    """What was drafted and kept in each round."""
    chosen = Options(ignore_eos=True, max_tokens=12, mode=mode, **options)
    events = engine.run(Job(Request(Tokens(tuple(prompt)), chosen), lambda _: None))
    return [event.round for event in events if isinstance(event, Delta)]


def test_p10_the_tail_that_a_template_adds_to_an_unfinished_turn(
    root: Path, cold: MlxEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A fifth of P10's conversation; 6,000 tokens are in the slow suite."""
    caplog.set_level(logging.INFO, "slipstream.engine.kept")
    engine = load(root, tmp_path)
    turn, tail = [(5 * n + n * n) % 250 for n in range(400)], [60, 116, 62, 10]
    first, _ = ask(engine, [*turn, *tail])
    second = [*turn, *first, *[9] * 30, *tail]
    warm, timings = ask(engine, second)
    assert timings.reused_tokens == 400 and timings.shortfall is not None
    assert (timings.shortfall.reason, timings.shortfall.position) == (Miss.DIFFERS, 400)
    assert f"reused 400 of {len(second)} prompt tokens (differs at token 400)" in caplog.text
    assert warm == ask(cold, second)[0]
    again, timings = ask(engine, second)
    assert again == warm and timings.reused_tokens == len(second) - 1 and timings.shortfall is None
    restarted(engine)


def test_a_request_may_ask_for_a_whole_computation(root: Path, tmp_path: Path) -> None:
    engine = load(root, tmp_path)
    prompt = [1, *range(200)]
    ask(engine, prompt)
    job = Job(Request(Tokens(tuple(prompt)), Options(max_tokens=1), reuse=False), lambda _: None)
    done = list(engine.run(job))[-1]
    assert isinstance(done, Done) and done.timings.reused_tokens == 0
    assert done.timings.shortfall is not None and done.timings.shortfall.reason is Miss.OFF
    restarted(engine)


def test_a_cancelled_prompt_is_not_lost(root: Path, tmp_path: Path) -> None:
    engine = load(root, tmp_path)
    prompt = [(3 * n + 1) % 256 for n in range(400)]
    _, timings = ask(engine, prompt, cancel_at=5)
    assert timings.output_tokens == 0
    _, timings = ask(engine, prompt)
    assert timings.reused_tokens >= 4 * 32
    restarted(engine)


def test_a_changed_model_never_meets_its_old_state(root: Path, tmp_path: Path) -> None:
    """Weights, drafter and precision are part of what a kept prompt depends on."""
    write_target(tmp_path / "llama", seed=1)
    for name in ("dspark", "dflash"):
        (tmp_path / name).symlink_to(root / name)
    prompt = [(3 * n + 1) % 256 for n in range(300)]
    cache = tmp_path / "cache"

    def reuse(mode: Mode = Mode.DSPARK, **pair: Any) -> tuple[int, Miss | None]:
        engine = load(tmp_path, cache, **pair)
        _, timings = ask(engine, prompt, mode=mode, max_tokens=2)
        restarted(engine)
        return timings.reused_tokens, timings.shortfall.reason if timings.shortfall else None

    assert reuse() == (0, Miss.NEW)
    assert reuse() == (299, None)
    assert reuse(kv_bits=8) == (0, Miss.IDENTITY)
    write_target(tmp_path / "llama", seed=2)
    assert reuse() == (0, Miss.IDENTITY)
    assert reuse() == (299, None)
    (tmp_path / "dspark").unlink()
    write_byte_drafter(tmp_path / "dspark", Mode.DSPARK, seed=9)
    assert reuse() == (0, Miss.PART)
    assert reuse() == (299, None)
    assert reuse(Mode.BASELINE) == (299, None)


@pytest.mark.slow
def test_a_damaged_file_costs_time_and_nothing_else(root: Path, cold: MlxEngine, tmp_path: Path) -> None:
    prompt = [(3 * n + 1) % 256 for n in range(1400)]
    engine = load(root, tmp_path)
    ask(engine, prompt, max_tokens=1)
    restarted(engine)
    expected = ask(cold, prompt)[0]
    files = sorted(tmp_path.glob("*/*.safetensors"))
    assert len(files) == 6  # three pieces of the target's state, three of the drafter's
    for file in files:
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(bytes(data))
        engine = load(root, tmp_path)
        ids, timings = ask(engine, prompt)
        assert ids == expected and timings.reused_tokens in (0, 512, 1024)
        assert timings.shortfall is not None and timings.shortfall.reason is Miss.DAMAGED
        ids, timings = ask(engine, prompt)
        assert ids == expected and timings.reused_tokens == len(prompt) - 1
        restarted(engine)


def test_conversations_side_by_side_keep_their_entries_within_the_budget(root: Path, tmp_path: Path) -> None:
    """Ten of them, and a title call between any two turns."""
    engine = load(root, tmp_path, disk=0, ram=24 * MIB)
    chance = random.Random(0)
    talks = [[n, *(chance.randrange(256) for _ in range(100))] for n in range(10)]
    for turn in range(3):
        for number, talk in enumerate(talks):
            ids, timings = ask(engine, talk, max_tokens=4)
            assert timings.reused_tokens >= (len(talk) - 12 if turn else 0)
            talks[number] = [*talk, *ids, *[turn] * 10]
            ask(engine, [200, *(chance.randrange(256) for _ in range(40))], max_tokens=2)
            assert engine.prompt_cache is not None
            held = sum(node.bytes for node in nodes(engine.prompt_cache._shelf.root))
            assert held == engine.prompt_cache.status.ram_bytes <= 24 * MIB
    restarted(engine)


def test_jobs_that_take_turns_share_what_is_kept(root: Path, cold: MlxEngine, tmp_path: Path) -> None:
    """One reads from disk while another evicts and a third branches off."""
    prompt = [(11 * n + 1) % 256 for n in range(700)]
    engine = load(root, tmp_path)
    ask(engine, prompt, max_tokens=1)
    restarted(engine)
    engine = load(root, tmp_path, ram=MIB)
    prompts = [prompt, [*prompt[:600], *[7] * 50], [5, *prompt[:500]], [*prompt, 1, 2]]
    runs = [
        engine.run(Job(Request(Tokens(tuple(p)), Options(max_tokens=6, ignore_eos=True)), lambda _: None))
        for p in prompts
    ]
    ids: list[list[int]] = [[] for _ in runs]
    left = set(range(4))
    while left:
        for index in sorted(left):
            event = next(runs[index])
            if isinstance(event, Delta):
                ids[index] += event.tokens
            if isinstance(event, Done):
                assert event.reason is Finish.LENGTH
                left.remove(index)
    assert ids == [ask(cold, p, max_tokens=6)[0] for p in prompts]
    restarted(engine)


def write_windowed(folder: Path) -> Path:
    """A Gemma 3 of windows of 40 tokens."""
    config = byte_config(
        model_type="gemma3_text",
        sliding_window=40,
        sliding_window_pattern=4,
        query_pre_attn_scalar=32,
        rope_local_base_freq=1000.0,
        tie_word_embeddings=False,
    )
    return write_model(folder, gemma3_text.Model(gemma3_text.ModelArgs.from_dict(config)), config)


def write_hybrid(folder: Path) -> Path:
    """A Qwen3-Next: three recurrent layers of four."""
    config = byte_config(
        model_type="qwen3_next",
        linear_num_value_heads=4,
        linear_num_key_heads=2,
        linear_key_head_dim=32,
        linear_value_head_dim=32,
        linear_conv_kernel_dim=4,
        num_experts=0,
        num_experts_per_tok=0,
        decoder_sparse_step=1,
        shared_expert_intermediate_size=64,
        mlp_only_layers=[],
        moe_intermediate_size=64,
        partial_rotary_factor=0.5,
        full_attention_interval=4,
    )
    return write_model(folder, qwen3_next.Model(qwen3_next.ModelArgs.from_dict(config)), config)


def write_model(folder: Path, model: Any, config: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    tiny.randomise(model, 0)
    weights: dict[str, mx.array] = dict(tree_flatten(model.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    write_tokenizer(folder)
    return folder


USER, ASSISTANT = 257, 258  # the byte tokenizer's marks


@pytest.mark.parametrize("kind", ["windowed", "hybrid"])
def test_layers_of_every_kind_reuse_a_conversation(kind: str, tmp_path: Path) -> None:
    folder = (write_windowed if kind == "windowed" else write_hybrid)(tmp_path / "model")
    limits = CacheLimits(64 * MIB, 64 * MIB, str(tmp_path / "cache"))
    warm, cold = open_engine(Pair(folder), limits), open_engine(Pair(folder))
    has_fixed = kept.has_fixed(warm.target.make_cache())
    assert has_fixed or kind == "windowed"
    chance = random.Random(1)

    def words(count: int) -> list[int]:
        return [chance.randrange(256) for _ in range(count)]

    system = [USER, *words(150)]
    prompt = [*system, USER, *words(120), ASSISTANT]
    for turn in range(4):
        ids, timings = ask(warm, prompt, temperature=0.7, seed=turn)
        assert ids == ask(cold, prompt, temperature=0.7, seed=turn)[0]
        if turn:
            assert timings.reused_tokens >= len(prompt) - 40
        # The answer is rendered in other words than it was said in: the end of the last prompt is what both share.
        said = ids if turn % 2 else words(8)
        if turn == 2:
            restarted(warm)
            warm = open_engine(Pair(folder), limits)
        prompt = [*prompt, *said, USER, *words(10), ASSISTANT]
    ids, timings = ask(warm, prompt)
    again, timings = ask(warm, prompt)
    assert ids == again and timings.reused_tokens >= len(prompt) - 24
    other = [*system, USER, *words(60), ASSISTANT]
    ids, timings = ask(warm, other)
    assert ids == ask(cold, other)[0] and timings.reused_tokens >= (len(system) if not has_fixed else 0)
    third = [*system, USER, *words(60), ASSISTANT]
    ids, timings = ask(warm, third)
    assert ids == ask(cold, third)[0]
    assert timings.reused_tokens >= len(system), "a new conversation begins behind the system prompt"
    restarted(warm)


@pytest.mark.slow
def test_6000_tokens_then_a_second_turn_then_a_restart(root: Path, tmp_path: Path) -> None:
    """The goal: at most 2 % of the tokens are computed again, and the ids are a cold run's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny, "LAYERS", 2)
        patch.setattr(tiny, "TAPS", (0, 1))
        write_target(tmp_path / "llama", max_position_embeddings=8192)
        write_byte_drafter(tmp_path / "dspark", Mode.DSPARK)
        write_byte_drafter(tmp_path / "dflash", Mode.DFLASH)
    cache = tmp_path / "cache"
    engine, fresh = load(tmp_path, cache), load(tmp_path, None)
    engine._chunk = fresh._chunk = 512
    prompt = [(7 * n * n + n) % 251 for n in range(6000)]
    first, _ = ask(engine, prompt, max_tokens=20)
    second = [*prompt, *first, *range(60)]
    warm, timings = ask(engine, second)
    assert (timings.prompt_tokens - timings.reused_tokens) / timings.prompt_tokens <= 0.02
    print(f"\nsecond turn: {timings.prompt_tokens - timings.reused_tokens} of {timings.prompt_tokens} computed")
    assert warm == ask(fresh, second)[0]
    restarted(engine)
    third = [*second, *warm, *range(60)]
    engine = load(tmp_path, cache)
    engine._chunk = 512
    warm, timings = ask(engine, third)
    print(f"after a restart: {timings.prompt_tokens - timings.reused_tokens} of {timings.prompt_tokens} computed")
    assert (timings.prompt_tokens - timings.reused_tokens) / timings.prompt_tokens <= 0.02
    assert warm == ask(fresh, third)[0]
    restarted(engine)
