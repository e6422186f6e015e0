"""A GGUF file's tensors as plain numbers, exactly: `mx.load` would round BF16 to half precision on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from slipstream.errors import UnsupportedModel
from slipstream.models.gguf_header import SIZES, Header, byte_count

Bytes = NDArray[np.uint8]
BLOCK = 32  # weights that share a scale, in every packed type read here


def read_tensors(header: Header) -> dict[str, mx.array]:
    """Every tensor by its GGUF name; packed ones in float32. Raises UnsupportedModel naming the first other type."""
    for name, tensor in header.tensors.items():
        if tensor.kind not in _READERS:
            raise UnsupportedModel(
                f"{header.path}: tensor {name!r} is {tensor.kind}, which is not read exactly; choose a "
                f"{' or '.join(_READERS)} version of it, or its safetensors repository",
                tensor=name,
                kind=tensor.kind,
            )
    data: Any = np.memmap(header.path, dtype=np.uint8, mode="r", offset=header.start)
    out: dict[str, mx.array] = {}
    for name, tensor in header.tensors.items():
        size = byte_count(header.path, name, tensor.kind, tensor.shape)
        raw: Bytes = np.array(data[tensor.offset : tensor.offset + size])
        out[name] = _READERS[tensor.kind](raw).reshape(tensor.shape)
    return out


def _plain(kind: Any) -> Callable[[Bytes], mx.array]:
    return lambda raw: mx.array(raw.view(kind))


def _bfloat16(raw: Bytes) -> mx.array:
    return mx.array(raw.view(np.uint16)).view(mx.bfloat16)


def _q8_0(raw: Bytes) -> mx.array:
    blocks = raw.reshape(-1, SIZES["Q8_0"][1])
    return mx.array(_half(blocks, 0) * blocks[:, 2:].view(np.int8).astype(np.float32))


def _q4_0(raw: Bytes) -> mx.array:
    blocks = raw.reshape(-1, SIZES["Q4_0"][1])
    return mx.array(_half(blocks, 0) * (_nibbles(blocks[:, 2:]) - 8))


def _q4_1(raw: Bytes) -> mx.array:
    blocks = raw.reshape(-1, SIZES["Q4_1"][1])
    return mx.array(_half(blocks, 0) * _nibbles(blocks[:, 4:]) + _half(blocks, 2))


def _half(blocks: Bytes, at: int) -> NDArray[np.float32]:
    """Each block's float16 at a byte, as a column."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view(np.float16).astype(np.float32)


def _nibbles(packed: Bytes) -> NDArray[np.float32]:
    """The low halves of a block's bytes are its first weights, the high halves the rest."""
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


_READERS: dict[str, Callable[[Bytes], mx.array]] = {
    "F32": _plain(np.float32),
    "F16": _plain(np.float16),
    "BF16": _bfloat16,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q8_0": _q8_0,
}
