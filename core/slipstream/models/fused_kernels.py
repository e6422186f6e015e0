"""CUDA kernels of a forward of few rows, each of which does what MLX puts several operations together for.

A small model on a large GPU waits for the host, which describes and encodes every operation, not for the work in them.
The attention is that of one pass with a running maximum ("online softmax", Milakov and Gimelshein, 2018): a block has
one query of one head, and its warps share the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import mlx.core as mx

WARPS = 32  # of a block of the attention, which share its keys
THREADS = 256  # of a block of `add_norm`
CHOOSERS = 1024  # threads of a block of `choose`

SUM_OF_WARP = """
__device__ inline float sum_of_warp(float value) {
  for (int other = 16; other > 0; other /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, other);
  }
  return value;
}
"""

HEADER = (
    SUM_OF_WARP
    + """
// A warp's head of queries or keys, normed if it has to be and turned to its place, in the precision that is kept.
template <typename T, int D, int NORM, typename W>
__device__ void turn(const T* raw, const W* weight, float eps, const float* freqs, int place, float* out) {
  constexpr int PART = D / 32;  // of a head, that one thread has
  const int lane = threadIdx.x % 32;
  float factor = 0.0f;
  if (NORM) {
    for (int i = 0; i < PART; ++i) {
      const float own = static_cast<float>(raw[lane * PART + i]);
      factor += own * own;
    }
    factor = rsqrtf(sum_of_warp(factor) / D + eps);
  }
  auto at = [&](int e) {
    const float own = static_cast<float>(raw[e]);
    if (!NORM) {
      return own;
    }
    const T unit = static_cast<T>(own * factor);
    return static_cast<float>(static_cast<T>(static_cast<float>(unit) * static_cast<float>(weight[e])));
  };
  for (int i = 0; i < PART; ++i) {
    const int e = lane * PART + i;
    float sine, cosine;
    sincosf(place * freqs[e % (D / 2)], &sine, &cosine);
    const float other = at((e + D / 2) % D);
    out[i] = static_cast<float>(static_cast<T>(at(e) * cosine + (e < D / 2 ? -other : other) * sine));
  }
}
"""
)

ADD_NORM = """
    const int width = x_shape[1];
    const T* own = x + blockIdx.x * width;
    const T* more = y + blockIdx.x * width;
    __shared__ float sums[THREADS / 32];
    float squares = 0.0f;
    for (int i = threadIdx.x; i < width; i += THREADS) {
      const T sum = static_cast<T>(static_cast<float>(own[i]) + static_cast<float>(more[i]));
      total[blockIdx.x * width + i] = sum;
      squares += static_cast<float>(sum) * static_cast<float>(sum);
    }
    squares = sum_of_warp(squares);
    if (threadIdx.x % 32 == 0) {
      sums[threadIdx.x / 32] = squares;
    }
    __syncthreads();
    squares = 0.0f;
    for (int i = 0; i < THREADS / 32; ++i) {
      squares += sums[i];
    }
    const float factor = rsqrtf(squares / width + eps[0]);
    for (int i = threadIdx.x; i < width; i += THREADS) {
      const T unit = static_cast<T>(static_cast<float>(total[blockIdx.x * width + i]) * factor);
      normed[blockIdx.x * width + i] = static_cast<T>(static_cast<float>(unit) * static_cast<float>(weight[i]));
    }
"""

# Rows are requests. `at` [4, tokens]: each token's row, its position, which token is the first new one of its row, and
# how many positions it sees.
ATTEND = """
    constexpr int PART = D / 32;
    constexpr int WIDTH = (HEADS + 2 * KV) * D;
    const int head = blockIdx.x, token = blockIdx.y, tokens = qkv_shape[0];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = at[token], position = at[tokens + token], first = at[2 * tokens + token];
    const int seen = at[3 * tokens + token];
    const int start = position - (token - first);  // rows that the cache held before
    const int shared = head / (HEADS / KV);
    T* buffers[ROWS][2] = {@BUFFERS@};
    const int capacities[ROWS] = {@CAPACITIES@};
    T* keys = buffers[row][0] + shared * capacities[row] * D;
    T* values = buffers[row][1] + shared * capacities[row] * D;

    float query[PART], key[PART], sum[PART], top = -3e38f, total = 0.0f;
    turn<T, D, NORM>(qkv + token * WIDTH + head * D, query_norm, numbers[1], freqs, position, query);
    for (int i = 0; i < PART; ++i) {
      query[i] *= numbers[0] * 1.44269504f;  // exponents of two
      sum[i] = 0.0f;
    }
    const T* new_keys = qkv + (HEADS + shared) * D;
    const T* new_values = qkv + (HEADS + KV + shared) * D;
    for (int k = warp; k < seen; k += WARPS) {
      const T* value;
      if (k < start) {
        value = values + k * D;
        for (int i = 0; i < PART; ++i) {
          key[i] = static_cast<float>(keys[k * D + lane * PART + i]);
        }
      } else {
        value = new_values + (first + k - start) * WIDTH;
        turn<T, D, NORM>(new_keys + (first + k - start) * WIDTH, key_norm, numbers[1], freqs, k, key);
      }
      float score = 0.0f;
      for (int i = 0; i < PART; ++i) {
        score += query[i] * key[i];
      }
      score = sum_of_warp(score);
      const float higher = fmaxf(top, score);
      const float before = exp2f(top - higher), now = exp2f(score - higher);
      top = higher;
      total = total * before + now;
      for (int i = 0; i < PART; ++i) {
        sum[i] = sum[i] * before + now * static_cast<float>(value[lane * PART + i]);
      }
    }

    // Behind what the cache held, where no block of this pass reads: its own key and value.
    if (WRITES && head % (HEADS / KV) == 0 && warp == 0) {
      turn<T, D, NORM>(new_keys + token * WIDTH, key_norm, numbers[1], freqs, position, key);
      for (int i = 0; i < PART; ++i) {
        keys[position * D + lane * PART + i] = static_cast<T>(key[i]);
        values[position * D + lane * PART + i] = new_values[token * WIDTH + lane * PART + i];
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
      out[(token * HEADS + head) * D + i] = static_cast<T>(result / whole);
    }
"""


# Keys and values of every layer from one product: kv [tokens, layers, 2, KV, D] -> out [layers, 2, KV, tokens, D].
PLACE = """
    constexpr int PART = D / 32;
    const int part = blockIdx.x, token = blockIdx.y, tokens = kv_shape[0], lane = threadIdx.x;
    const int layer = part / (2 * KV);
    const T* raw = kv + (static_cast<size_t>(token) * LAYERS * 2 * KV + part) * D;
    T* own = out + (static_cast<size_t>(part) * tokens + token) * D;
    if (part / KV % 2 == 0) {
      float key[PART];
      turn<T, D, 1>(raw, norms + layer * D, numbers[1], freqs, at[token], key);
      for (int i = 0; i < PART; ++i) {
        own[lane * PART + i] = static_cast<T>(key[i]);
      }
    } else {
      for (int i = 0; i < PART; ++i) {
        own[lane * PART + i] = raw[lane * PART + i];
      }
    }
"""

# One slot of a chain: the likeliest token of logits [rows, slots, V] plus bias [rows, V], and what the table says of
# it. Tokens and embeddings of the slots before are taken over.
CHOOSE = """
    const int row = blockIdx.x, slots = logits_shape[1], vocabulary = logits_shape[2], rank = table_shape[1];
    const int slot = index[0];
    const A* own = logits + (row * slots + slot) * vocabulary;
    const T* more = bias + row * vocabulary;
    float best = -3e38f;
    int place = 0;
    for (int i = threadIdx.x; i < vocabulary; i += CHOOSERS) {
      const float score = static_cast<float>(own[i]) + static_cast<float>(more[i]);
      if (score > best) {
        best = score;
        place = i;
      }
    }
    __shared__ float bests[CHOOSERS];
    __shared__ int places[CHOOSERS];
    bests[threadIdx.x] = best;
    places[threadIdx.x] = place;
    for (int half = CHOOSERS / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) {
        const float other = bests[threadIdx.x + half];
        const int where = places[threadIdx.x + half];
        if (other > bests[threadIdx.x] || (other == bests[threadIdx.x] && where < places[threadIdx.x])) {
          bests[threadIdx.x] = other;
          places[threadIdx.x] = where;
        }
      }
    }
    __syncthreads();
    const int token = REDUCED ? ids[places[0]] : places[0];
    for (int i = threadIdx.x; i < slots; i += CHOOSERS) {
      tokens[row * slots + i] = i == slot ? token : tokens_before[row * slots + i];
    }
    for (int i = threadIdx.x; i < slots * rank; i += CHOOSERS) {
      const int at = row * slots * rank + i;
      embedded[at] = i / rank == slot ? last[row * rank + i % rank] : embedded_before[at];
    }
    for (int i = threadIdx.x; i < rank; i += CHOOSERS) {
      newest[row * rank + i] = table[token * rank + i];
    }
"""


@dataclass(frozen=True, slots=True)
class Heads:
    """How a layer's heads are laid out, normed and turned. The arrays are constants."""

    count: int  # of queries
    freqs: mx.array  # [size / 2]: radians a position of each pair
    numbers: mx.array  # [2]: factor of the scores, epsilon of the norms
    norms: tuple[mx.array, mx.array] | None = None  # of queries and of keys, [size]

    @property
    def arrays(self) -> list[mx.array]:
        query_norm, key_norm = self.norms or (self.numbers, self.numbers)
        return [self.freqs, self.numbers, query_norm, key_norm]


def attend_inputs(rows: int) -> list[str]:
    caches = [f"{kind}{row}" for row in range(rows) for kind in ("keys", "values")]
    return ["qkv", "at", "freqs", "numbers", "query_norm", "key_norm", *caches]


def attend_source(rows: int) -> str:
    """The attention of so many requests, whose caches are its last inputs."""
    buffers = ", ".join(f"{{const_cast<T*>(keys{row}), const_cast<T*>(values{row})}}" for row in range(rows))
    capacities = ", ".join(f"static_cast<int>(keys{row}_shape[2])" for row in range(rows))
    return ATTEND.replace("@BUFFERS@", buffers).replace("@CAPACITIES@", capacities)


def _kernel(
    name: str, inputs: Sequence[str], outputs: Sequence[str], source: str, *, copies: bool = True
) -> Callable[..., list[mx.array]]:
    """`copies`: inputs that are not contiguous are copied. A copy of a cache would be written instead of it."""
    make: Any = mx.fast.cuda_kernel
    return make(
        name=name,
        input_names=list(inputs),
        output_names=list(outputs),
        source=source,
        header=HEADER,
        ensure_row_contiguous=copies,
    )


@cache
def _add_norm() -> Callable[..., list[mx.array]]:
    return _kernel("add_norm", ("x", "y", "weight", "eps"), ("total", "normed"), ADD_NORM)


@cache
def _attend(rows: int) -> Callable[..., list[mx.array]]:
    return _kernel(f"attend_{rows}", attend_inputs(rows), ("out",), attend_source(rows), copies=False)


@cache
def _place() -> Callable[..., list[mx.array]]:
    return _kernel("place", ("kv", "at", "freqs", "numbers", "norms"), ("out",), PLACE)


@cache
def _choose() -> Callable[..., list[mx.array]]:
    inputs = ("logits", "bias", "index", "ids", "table", "last", "tokens_before", "embedded_before")
    return _kernel("choose", inputs, ("tokens", "embedded", "newest"), CHOOSE)


def add_norm(x: mx.array, y: mx.array, weight: mx.array, eps: mx.array) -> tuple[mx.array, mx.array]:
    """The sum of x and y [tokens, width], and its RMS norm times `weight` [width]. `eps`: [1], float32."""
    total, normed = _add_norm()(
        inputs=[x, y, weight, eps],
        template=[("T", x.dtype), ("THREADS", THREADS)],
        grid=(x.shape[0] * THREADS, 1, 1),
        threadgroup=(THREADS, 1, 1),
        output_shapes=[x.shape, x.shape],
        output_dtypes=[x.dtype, x.dtype],
    )
    return total, normed


def attend(qkv: mx.array, at: mx.array, heads: Heads, caches: Sequence[mx.array], *, writes: bool) -> mx.array:
    """Attention of new tokens to what their rows' caches hold, and to each other as far as `at` says.

    `qkv` [tokens, (heads + 2 kv heads) * size], neither normed nor turned; `at` [4, tokens], int32, as above; `caches`:
    keys and values [1, kv heads, capacity, size] of each row in turn, contiguous. Returns [tokens, heads * size].

    With `writes` the new keys and values are **written into** the caches, which must have room for them. MLX knows
    nothing of it: who asks for it sees to it that nobody else has these arrays, and that what is returned was evaluated
    before MLX reads or writes them (`in_place.py`).
    """
    _, kv_heads, _, size = caches[0].shape
    assert all(each.dtype == qkv.dtype for each in caches)
    rows = len(caches) // 2
    (out,) = _attend(rows)(
        inputs=[qkv, at, *heads.arrays, *caches],
        template=[
            ("T", qkv.dtype),
            ("D", size),
            ("HEADS", heads.count),
            ("KV", kv_heads),
            ("NORM", int(heads.norms is not None)),
            ("WRITES", int(writes)),
            ("ROWS", rows),
            ("WARPS", WARPS),
        ],
        grid=(heads.count * 32 * WARPS, qkv.shape[0], 1),
        threadgroup=(32 * WARPS, 1, 1),
        output_shapes=[(qkv.shape[0], heads.count * size)],
        output_dtypes=[qkv.dtype],
    )
    return out


def place(kv: mx.array, at: mx.array, heads: Heads, norms: mx.array, kv_heads: int) -> mx.array:
    """Normed and turned keys, and values, [layers, 2, kv heads, tokens, size] of a product [tokens, the same in a row].

    `at` [tokens], int32: positions. `norms` [layers, size]: of the keys.
    """
    layers, size = norms.shape
    (out,) = _place()(
        inputs=[kv, at, heads.freqs, heads.numbers, norms],
        template=[("T", kv.dtype), ("D", size), ("KV", kv_heads), ("LAYERS", layers)],
        grid=(layers * 2 * kv_heads * 32, kv.shape[0], 1),
        threadgroup=(32, 1, 1),
        output_shapes=[(layers, 2, kv_heads, kv.shape[0], size)],
        output_dtypes=[kv.dtype],
    )
    return out


def choose(
    logits: mx.array,
    bias: mx.array,
    index: mx.array,
    ids: mx.array | None,
    table: mx.array,
    last: mx.array,
    before: tuple[mx.array, mx.array],
) -> tuple[mx.array, mx.array, mx.array]:
    """One slot of a chain of the likeliest tokens.

    `logits` [rows, slots, draft vocabulary], `bias` [rows, draft vocabulary] of slot `index` [1]; `ids`: the target's
    of the draft vocabulary, if it is another; `table` [vocabulary, rank]; `last` [rows, rank]: of the token before the
    slot; `before`: what the slot before returned first. Returns tokens [rows, slots] and embeddings of the token before
    each slot [rows, slots, rank], both as far as this slot, and the new token's embedding [rows, rank].
    """
    assert bias.dtype == table.dtype == last.dtype
    rows = logits.shape[0]
    tokens, embedded, newest = _choose()(
        inputs=[logits, bias, index, index if ids is None else ids, table, last, *before],
        template=[("A", logits.dtype), ("T", table.dtype), ("REDUCED", int(ids is not None)), ("CHOOSERS", CHOOSERS)],
        grid=(rows * CHOOSERS, 1, 1),
        threadgroup=(CHOOSERS, 1, 1),
        output_shapes=[each.shape for each in (*before, last)],
        output_dtypes=[each.dtype for each in (*before, last)],
    )
    return tokens, embedded, newest
