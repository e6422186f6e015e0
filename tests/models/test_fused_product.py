"""Products with what stands around them in one CUDA kernel, run on the CPU (`cuda_on_cpu.py`)."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest

import cuda_on_cpu
from slipstream.models import fused_product
from slipstream.models.fused_product import Norm, Product
from slipstream.models.host import number

pytestmark = pytest.mark.skipif(cuda_on_cpu.COMPILER is None, reason="needs a C++ compiler (apt-get install g++)")
EPS = 1e-5
OUTPUTS = 40  # no multiple of what a block computes


@pytest.fixture(autouse=True)
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mx.fast, "cuda_kernel", cuda_on_cpu.kernel)
    fused_product._product.cache_clear()


def module(bits: int, group: int, inputs: int, dtype: mx.Dtype, *, bias: bool = False) -> tuple[Any, mx.array]:
    """A product, and its weights in single precision."""
    mx.random.seed(inputs + bits)
    plain = nn.Linear(inputs, OUTPUTS, bias=bias)
    plain.set_dtype(dtype)
    if bits == 16:
        return plain, plain.weight.astype(mx.float32)
    packed = nn.QuantizedLinear.from_linear(plain, group, bits)
    scales, biases = (packed[name].astype(mx.float32) for name in ("scales", "biases"))
    return packed, mx.dequantize(packed.weight, scales, biases, group, bits)


CASES = [
    (4, 32, 64, mx.float16, "norm"),
    (8, 64, 128, mx.bfloat16, "plus"),
    (16, 64, 128, mx.bfloat16, "gated"),
    *(
        pytest.param(bits, group, inputs, dtype, kind, marks=pytest.mark.slow)
        for bits, group, inputs in ((4, 64, 832), (4, 128, 384), (8, 32, 832), (8, 128, 256), (16, 64, 832))
        for dtype in (mx.bfloat16, mx.float16)
        for kind in ("norm", "plus", "gated", "bias")
    ),
]


@pytest.mark.parametrize(("bits", "group", "inputs", "dtype", "kind"), CASES)
def test_products_are_right_to_the_last_rounding(
    bits: int, group: int, inputs: int, dtype: mx.Dtype, kind: str
) -> None:
    """And each row has the very same result alone as among others."""
    layer, weights = module(bits, group, inputs, dtype, bias=kind == "bias")
    product = Product.of(layer)
    assert product is not None
    assert product.inputs == inputs
    rows = mx.random.normal((19, inputs)).astype(dtype)
    more = mx.random.normal((19, OUTPUTS)).astype(dtype)
    norm = Norm((1 + 0.1 * mx.random.normal((inputs,))).astype(dtype), mx.array([EPS]))
    is_normed, is_gated = kind in ("norm", "gated"), kind == "gated"
    found = product(
        rows, norm=norm if is_normed else None, plus=more if kind == "plus" else None, gated=is_gated
    ).astype(mx.float32)
    before = mx.fast.rms_norm(rows, norm.weight, EPS) if is_normed else rows
    expected = before.astype(mx.float32) @ weights.T
    if kind == "plus":
        expected = expected + more
    if kind == "bias":
        expected = expected + layer.bias
    if is_gated:
        gate, up = mx.split(expected, 2, axis=-1)
        expected = nn.silu(gate) * up
    step = 2.0 ** (-8 if dtype == mx.bfloat16 else -11)
    assert number(mx.max(mx.abs(found - expected))) <= 4 * step * number(mx.max(mx.abs(expected)))
    for row in (0, 18):
        part = slice(row, row + 1)
        alone = product(
            rows[part], norm=norm if is_normed else None, plus=more[part] if kind == "plus" else None, gated=is_gated
        )
        assert mx.array_equal(alone[0].astype(mx.float32), found[row])


def test_weights_of_other_kinds_are_left_to_mlx() -> None:
    single = nn.Linear(64, 32)
    assert Product.of(single) is None
    single.set_dtype(mx.bfloat16)
    assert Product.of(single) is not None
    assert Product.of(nn.QuantizedLinear.from_linear(single, 64, 6)) is None
    assert Product.of(nn.QuantizedLinear.from_linear(single, 32, 4, mode="mxfp4")) is None
    odd = nn.Linear(72, 32)
    odd.set_dtype(mx.bfloat16)
    assert Product.of(odd) is None
