"""Will it fit: what a pair takes at a context, against what this machine can give. Loads nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from slipstream.errors import WontFit
from slipstream.store import shape
from slipstream.store.candidate import Candidate, of_drafter, of_folder
from slipstream.store.shape import Shape
from slipstream.store.sizes import words

DEFAULT_CONTEXT = 32_768  # that people ask about, where the model has as much
LEAST_CONTEXT = 2_048  # with less, a model is of no use
SPARE = 0.9  # of the limit: above it a pair is tight

# As in the engine: tokens of a prompt run at once, rows of the widest check of drafts.
GPU_CHUNK, CPU_CHUNK = 512, 32
VERIFY_ROWS = 17
_LEAST_WORKING = 32 * 2**20  # what any pass leaves about
_FUSED_HEADS = (64, 80, 128)  # head sizes for which MLX's GPU attention needs no matrix of scores

Kind = Literal["GPU working set", "GPU memory", "free memory", "memory of this container", "memory of this machine"]


class Verdict(StrEnum):
    FITS = "fits"
    TIGHT = "tight"  # it fits, with less than a tenth to spare
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class Limit:
    """What this machine can give a model, in bytes."""

    bytes: int
    kind: Kind
    machine: int  # physical memory, for people
    on_gpu: bool
    packs_drafters: bool = False  # to 4 bits when they are loaded: on Metal


@dataclass(frozen=True, slots=True)
class Fit:
    """The numbers that decide, in bytes."""

    target: int
    drafter: int
    kv: int  # the target's cache at `context`, recurrent states included
    drafter_kv: int
    working: int  # what the widest pass needs beside them
    loading: int  # what is held beside the weights only while they are read
    context: int
    limit: Limit
    longest_context: int  # the longest that fits, 0 when not even the weights do
    is_known: bool = True  # False: the config does not say what the cache is; it is left out

    @property
    def total(self) -> int:
        """At the worst moment: while loading, or while answering."""
        answering = self.kv + self.drafter_kv + self.working
        return self.target + self.drafter + max(answering, self.loading)

    @property
    def verdict(self) -> Verdict:
        if self.total > self.limit.bytes:
            return Verdict.TOO_LARGE
        return Verdict.TIGHT if self.total > SPARE * self.limit.bytes else Verdict.FITS

    def check(self, name: str) -> None:
        """Raises WontFit when it does not, with what would help."""
        if self.verdict is not Verdict.TOO_LARGE:
            return
        least = self.target + self.drafter + max(self.working, self.loading)
        way = (
            f"use a context of at most {self.longest_context:,} tokens, or --kv-bits 8"
            if self.longest_context >= LEAST_CONTEXT
            else "choose a smaller model or one with fewer bits"
        )
        raise WontFit(
            f"{name} needs {words(self.total)} at a context of {self.context:,} tokens ({words(least)} "
            f"without any) and the {self.limit.kind} has {words(self.limit.bytes)}; {way}",
            needed=self.total,
            limit=self.limit.bytes,
            longest_context=self.longest_context,
        )


def fit(
    target: Path | Candidate,
    drafters: Sequence[Path | Candidate] = (),
    *,
    context: int | None = None,
    kv_bits: int = 0,
    cpu_bytes: int = 4,
    against: Limit | None = None,
) -> Fit:
    """Whether a pair fits at a context (None: the model's own, at most 32,768).

    `cpu_bytes`: of the numbers that a CPU computes in. `against`: what `limit()` says, if it is known already.
    Raises ModelIncomplete for a folder that is not whole.
    """
    against = limit() if against is None else against
    main = target if isinstance(target, Candidate) else of_folder(target)
    others = [drafter if isinstance(drafter, Candidate) else of_drafter(drafter) for drafter in drafters]
    own = shape.of_config(main.config)
    shapes = [found for other in others if (found := shape.of_config(_plain_attention(other.config))) is not None]
    if context is None:
        context = min(DEFAULT_CONTEXT, own.context if own else DEFAULT_CONTEXT)
    element = main.element_bytes if against.on_gpu else cpu_bytes

    def at(tokens: int) -> tuple[int, int, int]:
        kv = own.cache_bytes(tokens, element, kv_bits) if own else 0
        drafter_kv = sum(each.cache_bytes(tokens, element) for each in shapes)
        return kv, drafter_kv, working_bytes(own, tokens, element, on_gpu=against.on_gpu)

    weights = main.stored if against.on_gpu else main.elements * cpu_bytes
    drafter = sum(other.packed if against.packs_drafters else other.elements * element for other in others)
    # A CPU converts each tensor when it has been read; a drafter's checkpoint stays until all of it is packed.
    loading = max(
        [0 if against.on_gpu else main.in_flight, *(other.elements * other.element_bytes for other in others)]
    )

    def fits(tokens: int) -> bool:
        return weights + drafter + max(loading, sum(at(tokens))) <= against.bytes

    kv, drafter_kv, working = at(context)
    longest = _longest(fits, own.context if own else 0)
    return Fit(weights, drafter, kv, drafter_kv, working, loading, context, against, longest, own is not None)


def working_bytes(own: Shape | None, context: int, element: int, *, on_gpu: bool) -> int:
    """Beside weights and caches, at the worst moment: a chunk of the prompt, or the check of a block of drafts.

    Fitted to what MLX 0.32 was seen to allocate (tests/bench/fit.py): of one layer the inputs, the widest part and
    its output live at once, and a growing layer's rows twice; logits in float32 and what is sorted of them.
    """
    if own is None:
        return _LEAST_WORKING
    chunk = GPU_CHUNK if on_gpu else CPU_CHUNK
    head_dim = own.hidden // own.heads
    scores = 0 if on_gpu and head_dim in _FUSED_HEADS else 2 * chunk * own.heads * context * element
    prefill = chunk * (4 * own.hidden + 3 * own.intermediate) * element + scores
    verify = VERIFY_ROWS * own.vocabulary * 4 * 3
    growing = max((layer.bytes(context, element) for layer in own.layers), default=0)
    return _LEAST_WORKING + max(prefill, verify) + growing


def _longest(fits: Any, most: int) -> int:
    """The longest context, in steps of 256 tokens, for which `fits` is true. Any: a function of a whole number."""
    low, high = 0, most // shape.STEP
    if not fits(0):
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle * shape.STEP):
            low = middle
        else:
            high = middle - 1
    return low * shape.STEP


def _plain_attention(config: Mapping[str, Any]) -> dict[str, Any]:
    """A drafter's config for its cache: what it inherited from its target's config does not hold for its own layers."""
    nested: Mapping[str, Any] = config.get("transformer_layer_config") or config
    wanted = ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "num_hidden_layers")
    plain = {key: nested[key] for key in (*wanted, "vocab_size", "intermediate_size") if nested.get(key) is not None}
    if nested.get("global_head_dim"):
        plain["head_dim"] = nested["global_head_dim"]
        plain["num_key_value_heads"] = nested.get("num_global_key_value_heads") or plain.get("num_key_value_heads")
    return plain


# -- this machine


def limit() -> Limit:
    """What this machine can give. On a thread that may use MLX; on a Mac the answer does not change.

    A Mac's GPU may use its recommended working set, about two thirds to three quarters of the memory; beyond it the
    system swaps. On Linux it is what is free now, to this container if it has a limit.
    """
    import mlx.core as mx

    on_gpu = mx.default_device() == mx.gpu
    machine, free, kind = _system_memory()
    if on_gpu:
        info: Mapping[str, Any] = mx.device_info()
        if size := info.get("max_recommended_working_set_size"):
            return Limit(int(size), "GPU working set", int(info.get("memory_size", size)), on_gpu, packs_drafters=True)
        if size := info.get("free_memory") or info.get("total_memory"):
            return Limit(int(size), "GPU memory", int(info.get("total_memory", size)), on_gpu)
    return Limit(free, kind, machine, on_gpu)


def headroom(against: Limit) -> int:
    """What can still be allocated, in bytes, beside what this process has already. On the engine's thread."""
    import mlx.core as mx

    if against.on_gpu:
        return against.bytes - mx.get_active_memory()
    _, free, _ = _system_memory()
    return free + mx.get_cache_memory()


def _system_memory() -> tuple[int, int, Kind]:
    if sys.platform == "linux":
        return _linux_memory()
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return total, total, "memory of this machine"  # MLX on a Mac's CPU, which nobody runs for long


def _linux_memory(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> tuple[int, int, Kind]:
    """Physical memory, what is free, and the name of what limits it: a container's own limit where that is less."""
    table = {
        line.split(":")[0]: int(line.split()[1]) * 1024
        for line in (proc / "meminfo").read_text().splitlines()
        if line.endswith(" kB")
    }
    total, free = table["MemTotal"], table["MemAvailable"]
    best = free
    kind: Kind = "free memory"
    for most, used, reclaimable in _cgroup_limits(proc, cgroups):
        left = most - used + reclaimable
        if most < total and left < best:
            best, kind = max(0, left), "memory of this container"
    return total, best, kind


def _cgroup_limits(proc: Path, cgroups: Path) -> list[tuple[int, int, int]]:
    """(limit, use, of that file cache that can go) of every group this process is in, of both versions of cgroups."""
    found: list[tuple[int, int, int]] = []
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, names = cgroups, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            base = cgroups / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        parts = Path(path.lstrip("/")).parts
        # A group within a container is often not visible under its own path: then its root is the container's.
        for depth in range(len(parts), -1, -1):
            folder = base.joinpath(*parts[:depth])
            try:
                most, used = (int((folder / name).read_text()) for name in names[:2])
                stat = dict(row.split() for row in (folder / "memory.stat").read_text().splitlines())
            except (OSError, ValueError):  # not there, or "max"
                continue
            found.append((most, used, int(stat.get(names[2], 0))))
    return found
