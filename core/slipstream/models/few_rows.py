"""Causal attention of a few rows on NVIDIA GPUs: one kernel where MLX puts eight operations together.

MLX-CUDA has an attention kernel for up to three rows; a verification has more. Small models wait for the number of
operations, not for the work in them, so that a round cost 2 ms more from the fourth row on (H200, 30 layers).
Metal's kernel takes eight rows by itself. The method is that of one pass with a running maximum ("online softmax",
Milakov and Gimelshein, 2018): a block has one query of one head, and its warps share the keys.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache, wraps
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from slipstream.models.host import number

logger = logging.getLogger(__name__)

ATTENTION = "scaled_dot_product_attention"  # the name under which mlx-lm's model files call it
ROWS = range(4, 17)  # that the kernel is for
KEYS = 4096  # beyond it, products of whole matrices are faster than a block for each query
HEAD_SIZES = (64, 96, 128, 256)
WARPS = 32
TOLERANCE = 2e-2  # of values around one: what half-precision arithmetic in another order may change

_SOURCE = """
    constexpr int PART = D / 32;  // of a head, that one thread has
    const int head = blockIdx.x, row = blockIdx.y, member = blockIdx.z;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int heads = q_shape[1], rows = q_shape[2];
    const int shared = head / (heads / k_shape[1]);
    const int seen = k_shape[2] - rows + row + 1;  // keys before this row, and its own
    const T* query = q + member * q_strides[0] + head * q_strides[1] + row * q_strides[2];
    const T* keys = k + member * k_strides[0] + shared * k_strides[1];
    const T* values = v + member * v_strides[0] + shared * v_strides[1];
    const float factor = scale[0] * 1.44269504f;  // exponents of two

    float own[PART], sum[PART], top = -3e38f, total = 0.0f;
    for (int i = 0; i < PART; ++i) {
      own[i] = factor * static_cast<float>(query[(lane * PART + i) * q_strides[3]]);
      sum[i] = 0.0f;
    }
    for (int at = warp; at < seen; at += WARPS) {
      const T* key = keys + at * k_strides[2];
      const T* value = values + at * v_strides[2];
      float score = 0.0f;
      for (int i = 0; i < PART; ++i) {
        score += own[i] * static_cast<float>(key[(lane * PART + i) * k_strides[3]]);
      }
      for (int other = 16; other > 0; other /= 2) {
        score += __shfl_xor_sync(0xffffffffu, score, other);
      }
      const float higher = fmaxf(top, score);
      const float before = exp2f(top - higher), now = exp2f(score - higher);
      top = higher;
      total = total * before + now;
      for (int i = 0; i < PART; ++i) {
        sum[i] = sum[i] * before + now * static_cast<float>(value[(lane * PART + i) * v_strides[3]]);
      }
    }

    __shared__ float tops[WARPS], totals[WARPS], sums[WARPS][D];
    if (lane == 0) {
      tops[warp] = top;
      totals[warp] = total;
    }
    for (int i = 0; i < PART; ++i) {
      sums[warp][lane * PART + i] = sum[i];
    }
    __syncthreads();
    float highest = tops[0], whole = 0.0f;
    for (int i = 1; i < WARPS; ++i) {
      highest = fmaxf(highest, tops[i]);
    }
    for (int i = 0; i < WARPS; ++i) {
      whole += totals[i] * exp2f(tops[i] - highest);
    }
    for (int i = threadIdx.x; i < D; i += 32 * WARPS) {
      float result = 0.0f;
      for (int each = 0; each < WARPS; ++each) {
        result += sums[each][i] * exp2f(tops[each] - highest);
      }
      out[((member * rows + row) * heads + head) * D + i] = static_cast<T>(result / whole);
    }
"""


@cache
def _kernel() -> Callable[..., list[mx.array]]:
    make: Any = mx.fast.cuda_kernel
    return make(
        name="few_rows",
        input_names=["q", "k", "v", "scale"],
        output_names=["out"],
        source=_SOURCE,
        ensure_row_contiguous=False,
    )


@cache
def _constant(value: float) -> mx.array:
    constant = mx.array([value], dtype=mx.float32)
    mx.eval(constant)
    return constant


def attend(queries: mx.array, keys: mx.array, values: mx.array, scale: float) -> mx.array:
    """Queries [batch, heads, rows, size], the last of the keys [batch, kv heads, keys, size]: as the queries."""
    batch, heads, rows, size = queries.shape
    (out,) = _kernel()(
        inputs=[queries, keys, values, _constant(scale)],
        template=[("T", queries.dtype), ("D", size), ("WARPS", WARPS)],
        grid=(heads * 32 * WARPS, rows, batch),
        threadgroup=(32 * WARPS, 1, 1),
        output_shapes=[(batch, rows, heads, size)],
        output_dtypes=[queries.dtype],
    )
    return out.transpose(0, 2, 1, 3)


def covers(rows: int, keys: mx.array | None) -> bool:
    """Whether so many rows after these keys [..., size], some of which may be room for more, are the kernel's."""
    return keys is not None and rows in ROWS and keys.shape[-2] <= KEYS and _is_right(keys.shape[-1], keys.dtype)


def _fits(queries: mx.array, keys: mx.array, values: mx.array) -> bool:
    return (
        queries.shape[3] == keys.shape[3] == values.shape[3]
        and queries.dtype == keys.dtype == values.dtype
        and covers(queries.shape[2], keys)
    )


@cache
def _is_right(size: int, dtype: mx.Dtype) -> bool:
    """Whether the kernel can be compiled and gives MLX's own results here. Tried once."""
    if size not in HEAD_SIZES or not mx.cuda.is_available():
        return False
    shapes = ((1, 4, 5, size), (1, 2, 70, size), (1, 2, 70, size))
    queries, keys, values = (
        mx.random.normal(shape, key=mx.random.key(seed)).astype(dtype) for seed, shape in enumerate(shapes)
    )
    scale = size**-0.5
    try:
        ours = attend(queries, keys[:, :, :67], values[:, :, :67], scale)
        own = mx.fast.scaled_dot_product_attention(
            queries, keys[:, :, :67], values[:, :, :67], scale=scale, mask="causal"
        )
        difference = number(mx.max(mx.abs(ours.astype(mx.float32) - own.astype(mx.float32))))
    except (RuntimeError, ValueError) as error:
        logger.warning("attention of a few rows is left to MLX, which is slower: %s", str(error).splitlines()[0])
        return False
    if not difference <= TOLERANCE:  # NaN too
        logger.warning("attention of a few rows is left to MLX, which is slower: ours is off by %.3g", difference)
        return False
    return True


def open_up(layers: Iterable[nn.Module]) -> None:
    """Let the attention of a model's layers use the kernel, wherever their mask is plainly causal."""
    for layer in layers:
        for mixer in layer.children().values():
            if isinstance(mixer, nn.Module):
                _wrap(type(mixer).__call__.__globals__)


def _wrap(file: dict[str, Any]) -> None:
    """Attention is looked up by mlx-lm's model files in their own globals, so that is where it is wrapped."""
    plain = file.get(ATTENTION)
    if plain is None or hasattr(plain, "takes_few_rows"):
        return

    @wraps(plain)
    def attention(
        queries: mx.array,
        keys: Any,
        values: Any,
        cache: Any = None,
        scale: float = 1.0,
        mask: Any = None,
        **others: Any,
    ) -> Any:
        if mx.cuda.is_available() and hasattr(cache, "bits") and not isinstance(keys, mx.array):
            # MLX-CUDA multiplies packed rows in some shapes alone (0.32.4), and these have all lengths.
            packing: dict[str, Any] = {"group_size": cache.group_size, "bits": cache.bits}
            keys, values = (mx.dequantize(*each, **packing) for each in (keys, values))
            cache = None
        is_plain = isinstance(mask, str) and mask == "causal" and others.get("sinks") is None
        if is_plain and isinstance(keys, mx.array) and _fits(queries, keys, values):
            return attend(queries, keys, values, scale)
        return plain(queries, keys, values, cache=cache, scale=scale, mask=mask, **others)

    attention.takes_few_rows = True  # type: ignore[attr-defined]
    file[ATTENTION] = attention
