"""Products that are one where a model's layers ask for several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest

import tiny
import tiny_families
from slipstream.models import joined
from slipstream.models.target import TOLERANCE, Target
from tiny_families import FAMILIES

IDS = mx.array([3, 1, 4, 1, 5, 9, 2])


def logits(target: Target) -> mx.array:
    out = target.forward(IDS, target.make_cache()).logits
    assert out is not None
    return out.astype(mx.float32)


def layers(target: Target) -> list[nn.Module]:
    assert target._parts is not None
    return target._parts.layers


def joints(target: Target) -> list[joined.Joint]:
    found = (module for layer in layers(target) for _, module in layer.named_modules())
    return [part._joint for part in found if isinstance(part, joined.Part) and part._index == 0]


def join(target: Target) -> int:
    return joined.join(layers(target), lambda: logits(target), TOLERANCE)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "8-bit", "4-bit"])
def test_the_same_logits_come_of_fewer_products(precision: str) -> None:
    target = tiny.target(precision)
    before, bytes_before = logits(target), target.read_bytes
    assert join(target) == 2 * tiny.LAYERS
    assert mx.allclose(logits(target), before, rtol=1e-4, atol=1e-4 if precision != "bfloat16" else 0.1)
    assert target.read_bytes == bytes_before
    assert len(joints(target)) == 2 * tiny.LAYERS
    assert all(joint.rows is None and not joint.parts for joint in joints(target))  # nothing outlives its pass


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_the_same_logits(family: str) -> None:
    target = tiny_families.target(family)
    before = logits(target)
    join(target)
    assert mx.allclose(logits(target), before, rtol=1e-4, atol=1e-4)
    assert all(joint.rows is None for joint in joints(target))


class Crossing(nn.Module):
    """Keys and values of other rows than the queries', as where layers share them."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(8, width, bias=False) for width in (8, 4, 4))

    def __call__(self, rows: mx.array) -> mx.array:
        other = rows * 2
        return mx.concatenate([self.q_proj(rows), self.k_proj(other), self.v_proj(other)], axis=-1)


class Alike(Crossing):
    def __call__(self, rows: mx.array) -> mx.array:
        return mx.concatenate([self.v_proj(rows), self.k_proj(rows), self.q_proj(rows)], axis=-1)


def run(module: Crossing) -> Callable[[], mx.array]:
    rows = mx.random.normal((1, 3, 8), key=mx.random.key(0))
    return lambda: module(rows)


def test_parts_are_asked_in_any_order() -> None:
    module = Alike()
    before = run(module)()
    assert joined.join([module], run(module), TOLERANCE) == 1
    assert mx.allclose(run(module)(), before, atol=1e-6)


def test_what_is_asked_with_other_rows_stays_as_it_was() -> None:
    module = Crossing()
    own = module.q_proj
    assert joined.join([module], run(module), TOLERANCE) == 0
    assert module.q_proj is own


def test_a_joint_product_asked_with_other_rows_is_still_right() -> None:
    module = Crossing()
    expected = run(module)()
    joined._joined(module)
    assert mx.allclose(run(module)(), expected, atol=1e-6)


def test_other_results_are_not_taken(caplog: pytest.LogCaptureFixture) -> None:
    module = Alike()
    calls: list[int] = []

    def probe() -> mx.array:
        calls.append(1)
        return run(module)() * len(calls)

    assert joined.join([module], probe, TOLERANCE) == 0
    assert isinstance(module.q_proj, nn.Linear)
    assert "gave other results" in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        lambda module: setattr(module, "k_proj", nn.Linear(8, 4, bias=True)),
        lambda module: setattr(module, "k_proj", nn.Linear(16, 4, bias=False)),
        lambda module: setattr(module, "k_proj", nn.Identity()),
        lambda module: setattr(module, "q_proj", nn.Linear(8, joined.LARGEST // 32, bias=False)),
        lambda module: module.v_proj.set_dtype(mx.float16),
    ],
    ids=["bias", "inputs", "kind", "size", "type"],
)
def test_unlike_or_large_products_are_left_alone(change: Callable[[Any], None]) -> None:
    module = Alike()
    change(module)
    assert joined._joined(module) == []
