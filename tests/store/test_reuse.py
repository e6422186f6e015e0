"""The prefix cache by itself: which state it gives back, in how many bytes, and what it says when it has less."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from slipstream.events import Miss
from slipstream.store import shelf
from slipstream.store.pieces import Found
from slipstream.store.prefixes import Rows, nodes
from slipstream.store.prompt_file import Stored
from slipstream.store.prompts import PromptStore
from slipstream.store.reuse import WRITTEN_FROM, CacheDesk, PromptCache

WIDTH = 4  # bytes of a row


class NumpyArrays:
    """Rows are arrays of shape [1, 1, tokens, WIDTH]."""

    def cut(self, rows: Rows, start: int, stop: int) -> Rows:
        return {name: array[:, :, start:stop].copy() for name, array in rows.items()}

    def freeze(self, arrays: Rows) -> Mapping[str, Stored]:
        return {name: Stored("U8", array.shape, memoryview(array)) for name, array in arrays.items()}

    def thaw(self, arrays: Mapping[str, Stored]) -> Rows:
        return {
            name: np.frombuffer(stored.data, dtype=np.uint8).reshape(stored.shape).copy()
            for name, stored in arrays.items()
        }


def state_at(tokens: Sequence[int], salt: int) -> np.ndarray:
    """What a model would have computed: each row depends on every token up to its own. [tokens, WIDTH]"""
    total, rows = 17 + salt, np.zeros((len(tokens), WIDTH), dtype=np.uint8)
    for index, token in enumerate(tokens):
        total = (total * 1000003 + token + 1) % 2**32
        rows[index] = np.frombuffer(total.to_bytes(4, "little"), dtype=np.uint8)
    return rows


@dataclass
class Computed:
    """The state of some tokens, as a source."""

    tokens: Sequence[int]
    salt: int = 0
    at: Sequence[int] = ()  # checkpoints
    row_bytes: int = WIDTH
    checkpoints: dict[int, Rows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rows = state_at(self.tokens, self.salt)
        self.checkpoints = {at: {"whole": self._rows[at - 1].copy()} for at in self.at}

    def rows(self, start: int, stop: int) -> Rows:
        return {"k": self._rows[None, None, start:stop].copy()}


def keep(cache: PromptCache, tokens: Sequence[int], parts: Sequence[str] = ("target",), at: Sequence[int] = ()) -> None:
    cache.keep(tokens, {part: Computed(tokens, salt, at if salt == 0 else ()) for salt, part in enumerate(parts)})
    check(cache)


def look(
    cache: PromptCache, prompt: Sequence[int], parts: Sequence[str] = ("target",), *, whole: bool = False
) -> Found:
    """What is found, after checking that it is the state of this very prompt."""
    found = cache.find(prompt, {part: whole and part == "target" for part in parts})
    for _ in cache.fetch(found):
        pass
    assert 0 <= found.tokens < len(prompt)
    for salt, part in enumerate(parts):
        expected = state_at(prompt[: found.tokens], salt)
        pieces = [rows["k"][0, 0] for rows in found.rows_of(part)]
        got = np.concatenate(pieces) if pieces else expected[:0]
        assert np.array_equal(got, expected), "the state of other tokens"
    if whole and found.tokens:
        assert np.array_equal(found.fixed_of("target")["whole"], state_at(prompt[: found.tokens], 0)[-1])
    check(cache)
    return found


def check(cache: PromptCache) -> None:
    """The figures are what is there."""
    held = sum(node.bytes for node in nodes(cache._shelf.root))
    status = cache.status
    assert held == cache._shelf.bytes <= cache._shelf.limit
    assert status.ram_bytes == held == sum(entry.ram_bytes for entry in status.entries)
    for node in nodes(cache._shelf.root):
        assert node.parent is not None and node.parent.children[node.tokens[0]] is node
        assert node.start == node.parent.end


def made(ram: int, store: PromptStore | None = None) -> PromptCache:
    return PromptCache(NumpyArrays(), ram, store)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Opener]:
    opener = Opener(tmp_path)
    yield opener
    opener.close()


class Opener:
    """Opens the same folder again and again, as a program that is started again does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store: PromptStore | None = None

    def open(self, limit: int = 2**20, identity: str = "one", model: str = "/m") -> PromptStore:
        self.close()
        self.store = PromptStore.open(self.root, limit, model, identity)
        assert self.store is not None
        return self.store

    def close(self) -> None:
        if self.store is not None:
            self.store.close()
        self.store = None

    @property
    def files(self) -> list[Path]:
        return sorted(self.root.glob("*/*.safetensors"))


A = [n % 50 for n in range(700)]


def test_a_second_turn_computes_only_what_is_new() -> None:
    cache = made(2**20)
    assert look(cache, A).shortfall == (found := look(cache, A)).shortfall and found.tokens == 0
    keep(cache, A)
    found = look(cache, [*A, 1, 2, 3])
    assert (found.tokens, found.shortfall) == (700, None)
    again = look(cache, A)
    assert (again.tokens, again.shortfall) == (699, None), "the last token is always computed: its logits are wanted"


def test_it_says_where_a_prompt_parts_from_what_was_kept() -> None:
    cache = made(2**20)
    keep(cache, A)
    found = look(cache, [*A[:123], 99, *A[124:]])
    assert found.tokens == 123
    assert found.shortfall is not None and (found.shortfall.reason, found.shortfall.position) == (Miss.DIFFERS, 123)
    assert cache.status.misses == {"differs": 1} and cache.status.reused_tokens == 123


def test_what_prompts_share_is_kept_once_and_survives_the_short_ones() -> None:
    cache = made(2**20)
    keep(cache, A)
    keep(cache, [*A[:400], *[77] * 50])
    assert cache.status.ram_bytes == (700 + 50) * WIDTH
    keep(cache, A[:20])
    assert cache.status.ram_bytes == (700 + 50) * WIDTH, "a short request takes nothing of a long one's"
    assert look(cache, [*A, 5]).tokens == 700
    assert look(cache, [*A[:400], *[77] * 50, 5]).tokens == 450
    assert [(entry.start, entry.end) for entry in sorted(cache.status.entries, key=lambda e: (e.start, e.end))] == [
        (0, 400),
        (400, 450),
        (400, 700),
    ]


def test_p09_the_least_recently_used_goes_first_and_the_budget_holds() -> None:
    """A hundredth of a percent of P09's sizes: limit 5000 bytes, entries of 1000."""
    cache = made(5000)
    prompts = [[n, *range(249)] for n in range(12)]
    for number, prompt in enumerate(prompts):
        keep(cache, prompt)
        if number >= 3:
            assert look(cache, [*prompts[1], 7]).tokens == 250, "used again and again, so never the oldest"
    assert [look(cache, [*prompt, 7]).tokens for prompt in prompts] == [0, 250, *[0] * 6, *[250] * 4]
    found = look(cache, [*prompts[2], 7])
    assert found.shortfall is not None and found.shortfall.reason is Miss.EVICTED
    keep(cache, [99, *range(1499)])  # larger than the whole budget
    assert [look(cache, [*prompt, 7]).tokens for prompt in prompts[8:]] == [250] * 4, "the others are still there"


def test_ends_go_before_beginnings() -> None:
    cache = made(800 * WIDTH)
    keep(cache, A)
    keep(cache, [1, 1, *range(248)])
    assert 0 < look(cache, [*A, 5]).tokens == 512, "its last piece made room"


def test_what_is_gone_is_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "GONE_TOKENS", 1000)
    cache = made(100 * WIDTH)
    for number in range(100):
        keep(cache, [number, *range(80)])
    known = list(nodes(cache._shelf.root))
    gone = sum(shelf.NODE_TOKENS + len(node.tokens) for node in known if not node.is_there)
    assert 1000 - 81 - shelf.NODE_TOKENS <= gone <= 1000
    assert [node.tokens[0] for node in known if node.is_there] == [99]
    shortfall = look(cache, [98, *range(90)]).shortfall
    assert shortfall is not None and shortfall.reason is Miss.EVICTED


def test_a_drafters_state_comes_with_the_targets_or_not_at_all() -> None:
    cache = made(2**20)
    keep(cache, A, ["target"])
    found = look(cache, [*A, 5], ["target", "dspark"])
    assert found.tokens == 0 and found.shortfall is not None and found.shortfall.reason is Miss.PART
    keep(cache, A, ["target", "dspark"])
    assert cache.status.ram_bytes == 2 * 700 * WIDTH, "what was there is not kept twice"
    assert look(cache, [*A, 5], ["target", "dspark"]).tokens == 700
    assert look(cache, [*A, 5]).tokens == 700
    assert look(cache, [*A, 5], ["target", "dflash"]).tokens == 0


def test_state_that_cannot_be_cut_is_reused_from_its_checkpoints() -> None:
    cache = made(2**20)
    keep(cache, A, at=[100, 650, 700])
    assert look(cache, [*A, 5], whole=True).tokens == 700
    assert look(cache, A, whole=True).tokens == 650
    found = look(cache, [*A[:640], 99], whole=True)
    assert found.tokens == 100
    assert found.shortfall is not None and (found.shortfall.reason, found.shortfall.position) == (Miss.CHECKPOINT, 640)
    keep(cache, A, at=[640])  # the next one asks for it
    assert look(cache, [*A[:640], 99], whole=True).tokens == 640


def test_old_checkpoints_of_a_long_conversation_are_thinned() -> None:
    cache = made(2**20)
    tokens: list[int] = []
    for turn in range(20):
        tokens += [turn] * 10
        keep(cache, tokens, at=[len(tokens)])
    held = [node.end for node in nodes(cache._shelf.root) if node.slabs["target"].fixed is not None]
    assert sorted(held) == [10, 170, 180, 190, 200]


def test_it_is_there_again_after_a_restart(stores: Opener) -> None:
    cache = made(2**20, store := stores.open())
    keep(cache, A, ["target", "dspark"], at=[300, 700])
    keep(cache, [*A[:350], *range(100)], ["target", "dspark"])
    store.wait()
    assert len(stores.files) == 6
    cache = made(2**20, stores.open())
    assert cache.status.ram_bytes == 0 and cache.status.disk_bytes == sum(f.stat().st_size for f in stores.files)
    assert look(cache, [*A, 5], ["target", "dspark"], whole=True).tokens == 700
    assert look(cache, [*A[:350], *range(100), 5], ["target", "dspark"]).tokens == 450
    # The second prompt's first 50 tokens behind the branch are the first one's.
    assert cache.status.ram_bytes == 2 * 750 * WIDTH + WIDTH, "what was read is in memory now"


def test_a_short_prompt_is_not_worth_a_file(stores: Opener) -> None:
    cache = made(2**20, store := stores.open())
    keep(cache, A[: WRITTEN_FROM - 1])
    store.wait()
    assert not stores.files and look(cache, A).tokens == WRITTEN_FROM - 1


def test_what_memory_has_no_room_for_is_read_from_disk(stores: Opener) -> None:
    cache = made(1000, store := stores.open())
    keep(cache, A)
    store.wait()
    found = look(cache, [*A, 5])
    assert found.tokens == 700
    cache = made(0, stores.open())
    assert look(cache, [*A, 5]).tokens == 700


def test_a_file_serves_every_prompt_that_begins_as_it_does(stores: Opener) -> None:
    """Two prompts share the beginning of a file, whose tokens go on as one of them does."""
    other = [*A[:400], *[77] * 300]
    store = stores.open()
    cache = made(0, store)
    keep(cache, A)
    store.wait()
    keep(cache, other)
    store.wait()
    files = stores.files
    for _ in range(2):
        assert look(cache, [*other, 5]).tokens == 700
        assert look(cache, [*A, 5]).tokens == 700
        assert look(cache, [*A[:300], 99]).tokens == 300
        assert stores.files == files, "nobody's file was taken for damaged"
        cache = made(0, stores.open())  # and after a restart


def test_the_disk_has_a_budget_too(stores: Opener) -> None:
    cache = made(2**20, store := stores.open(limit=20_000))
    for number in range(12):
        keep(cache, [number, *range(400)])
        store.wait()
        assert store.bytes <= 20_000
        assert sum(path.stat().st_size for path in stores.files) <= 20_000 + 4096, "one more while it is replaced"
    cache = made(0, store := stores.open(limit=20_000))
    kept = [look(cache, [number, *range(400), 5]).tokens for number in range(12)]
    assert kept[-1] == 401 and kept[0] == 0 and kept == sorted(kept)
    cache = made(0, store := stores.open(limit=5_000))  # made smaller since
    assert store.bytes <= 5_000


def test_nothing_is_said_of_another_models_files_once_they_are_gone(stores: Opener) -> None:
    cache = made(2**20, store := stores.open())
    keep(cache, A)
    store.wait()
    cache = made(2**20, stores.open(identity="two"))
    cache.clear()
    found = look(cache, [*A, 5])
    assert found.shortfall is not None and found.shortfall.reason is Miss.NEW


def test_another_models_files_are_not_used_and_give_way(stores: Opener) -> None:
    cache = made(2**20, store := stores.open(limit=20_000))
    keep(cache, A)
    store.wait()
    cache = made(2**20, store := stores.open(limit=20_000, identity="two"))
    assert store.bytes > 0
    found = look(cache, [*A, 5])
    assert found.tokens == 0 and found.shortfall is not None and found.shortfall.reason is Miss.IDENTITY
    for number in range(12):
        keep(cache, [number, *range(400)])
        store.wait()
    assert not [path for path in stores.files if path.parent != store._folder]
    cache = made(2**20, stores.open(identity="one", model="/other"))
    found = look(cache, [*A, 5])
    assert found.shortfall is not None and found.shortfall.reason is Miss.NEW


def test_one_process_at_a_time_has_the_disk(stores: Opener) -> None:
    stores.open()
    assert PromptStore.open(stores.root, 2**20, "/m", "one") is None


def test_clearing_empties_memory_and_disk(stores: Opener) -> None:
    desk = CacheDesk()
    desk.clear()
    assert desk.as_json() == {"enabled": False}
    cache = made(2**20, store := stores.open())
    desk.attach(cache)
    keep(cache, A)
    store.wait()
    desk.clear()
    assert (desk.as_json()["ram_bytes"], desk.as_json()["disk_bytes"], desk.as_json()["entries"]) == (0, 0, ())
    stores.close()
    assert not stores.files
    assert look(cache, [*A, 5]).tokens == 0


def test_closing_writes_what_waits_within_its_time(stores: Opener) -> None:
    cache = made(2**20, stores.open())
    keep(cache, A)
    cache.close()
    stores.store = None
    assert len(stores.files) == 2
    cache = made(2**20, store := stores.open())
    keep(cache, [9, *A])
    store.close(flush_s=-1.0)
    stores.store = None
    assert not list(stores.root.glob("*/.*")), "nothing is half there"
    assert look(made(0, stores.open()), [*A, 5]).tokens == 700


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_it_gives_the_state_of_the_prompt_that_asks(seed: int, stores: Opener) -> None:
    """Random conversations that branch, budgets, evictions, restarts; half of them with checkpoints."""
    chance = random.Random(seed)
    whole = bool(seed % 2)
    ram, disk = chance.choice([0, 500, 3000, 2**20]), chance.choice([0, 8000, 2**20])

    def opened() -> PromptCache:
        return made(ram, stores.open(limit=disk) if disk else None)

    cache = opened()
    prompts: list[list[int]] = [[]]
    reused = 0
    for _ in range(40):
        base = chance.choice(prompts[-6:])
        prompt = base[: chance.randint(0, len(base))] if chance.random() < 0.5 else list(base)
        prompt += [chance.randrange(3) for _ in range(chance.choice([1, 5, 60, 400]))]
        parts = chance.choice([["target"], ["target", "dspark"], ["target", "dflash"]])
        found = look(cache, prompt, parts, whole=whole)
        reused += found.tokens
        answer = prompt + [chance.randrange(3) for _ in range(chance.choice([0, 3, 30]))]
        at = sorted({chance.randint(1, len(answer)), len(prompt)}) if whole else []
        keep(cache, answer, parts, at)
        prompts.append(answer)
        if chance.random() < 0.1:
            cache.clear()
        if disk and chance.random() < 0.15:
            if chance.random() < 0.5 and stores.store is not None:
                stores.store.wait()
            cache = opened()
    assert reused > 0 or ram <= 500


@pytest.mark.parametrize("seed", range(40))
def test_no_damage_to_a_file_is_ever_used(seed: int, stores: Opener) -> None:
    chance = random.Random(seed)
    cache = made(2**20, store := stores.open())
    keep(cache, A, ["target", "dspark"], at=[300, 700])
    store.wait()
    stores.close()
    before = {path: path.read_bytes() for path in stores.files}
    path = chance.choice(stores.files)
    data = bytearray(before[path])
    match seed % 8:
        case 0:
            data = data[: chance.randrange(len(data))]
        case 1:
            data += bytes(chance.randrange(1, 100))
        case 2:
            data[: chance.randrange(1, 16)] = b"\xff" * chance.randrange(1, 16)
        case 3:
            data = bytearray(before[chance.choice([other for other in stores.files if other != path])])
        case 4:
            data = bytearray()
        case 5:
            data = bytearray(chance.randbytes(len(data)))
        case _:
            at = chance.randrange(min(900, len(data))) if seed % 2 else chance.randrange(len(data))
            data[at] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(data))
    (path.parent / f".{path.name}.tmp").write_bytes(before[path][:50])
    cache = made(2**20, stores.open())
    found = look(cache, [*A, 5], ["target", "dspark"], whole=True)
    assert found.tokens in (0, 300, 700)
    if bytes(data) != before[path]:
        assert found.tokens < 700 and found.shortfall is not None
    assert not list(stores.root.glob("*/.*.tmp"))
    keep(cache, A, ["target", "dspark"], at=[300, 700])
    assert look(cache, [*A, 5], ["target", "dspark"], whole=True).tokens == 700, "and it is mended by the next request"
