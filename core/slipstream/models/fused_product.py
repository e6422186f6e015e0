"""A product of few rows with packed weights on NVIDIA GPUs, with what stands before and behind it in one kernel.

The rows' RMS norm before it, and behind it a sum with other rows or the activation of a gated layer, are operations of
their own in MLX, and of a small model each takes the host longer to describe than the device to compute. Weights are
multiplied as the small integers that they are packed into, which half precision holds exactly; a group's scale and bias
come in afterwards, in single precision. A row's result does not depend on how many others there are.

Tensor cores multiply 16 outputs by 16 inputs with 8 rows at a time (PTX ISA, `mma.m16n8k16`). Warps share the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from slipstream.models.fused_kernels import SUM_OF_WARP

HALVES = (mx.bfloat16, mx.float16)
TILE = 16  # rows of a block
WARPS = 12  # of a block, at most
REGISTERS = 64  # of a thread, for the weights that it asks for at once, at most
PLAIN_GROUP = 64  # inputs that are taken together where weights are not packed

HALF_TYPES = (("__nv_bfloat16", "bf16"), ("__half", "f16"))  # in CUDA, and in PTX

MULTIPLY = """__device__ inline void multiply(
    float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2], const @TYPE@*) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.@KIND@.@KIND@.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
"""

HEADER = (
    SUM_OF_WARP
    + """
template <int N, typename T>
struct alignas(N * sizeof(T)) Several {
  T of[N];
};

template <int N>
__device__ inline void load_words(const unsigned* from, unsigned (&to)[N]) {
  constexpr int AT_ONCE = N < 4 ? N : 4;
  for (int i = 0; i < N; i += AT_ONCE) {
    const auto some = *reinterpret_cast<const Several<AT_ONCE, unsigned>*>(from + i);
    for (int j = 0; j < AT_ONCE; ++j) {
      to[i + j] = some.of[j];
    }
  }
}

template <typename T>
__device__ inline unsigned both(float low, float high) {
  Several<2, T> pair;
  pair.of[0] = static_cast<T>(low);
  pair.of[1] = static_cast<T>(high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// Four weights, the step's of a thread's, as two pairs.
template <typename T, int BITS, int WORDS>
__device__ inline void weights_of(const unsigned (&words)[WORDS], int step, unsigned& low, unsigned& high) {
  if (BITS == 16) {
    low = words[2 * step % WORDS];
    high = words[(2 * step + 1) % WORDS];
  } else {
    const unsigned own = BITS == 8 ? words[step % WORDS] : words[step / 2 % WORDS] >> 16 * (step % 2);
    float each[4];
    for (int i = 0; i < 4; ++i) {  // 2^23 and a small integer, as the bits of a float
      each[i] = __uint_as_float(0x4b000000u | (own >> BITS * i & ((1u << BITS % 16) - 1))) - 8388608.0f;
    }
    low = both<T>(each[0], each[1]);
    high = both<T>(each[2], each[3]);
  }
}

#ifndef ON_CPU
"""
    + "\n".join(MULTIPLY.replace("@TYPE@", type_).replace("@KIND@", kind) for type_, kind in HALF_TYPES)
    + """#endif
"""
)

# A thread has `quarter` of a group's inputs, of the outputs `row` and `row` + 8, and in `multiply` also of the token
# `row` of each eight. GATED: of the outputs' first half and of their second.
PRODUCT = """
    constexpr int GROUPS = K / GROUP;
    constexpr int EACH = (GROUPS + WARPS - 1) / WARPS;  // groups of a warp
    constexpr int WORDS = GROUP * BITS / 128;
    constexpr int LINES = GATED ? 4 : 2;  // outputs of a thread
    constexpr int STRIDE = 20;  // of 16 sums, so that no two threads of a warp write into the same bank
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, quarter = lane % 4;
    const int outputs = GATED ? w_shape[0] / 2 : w_shape[0];
    const int first = blockIdx.x * 16, from = blockIdx.y * TILE;
    const int here = x_shape[0] - from < TILE ? x_shape[0] - from : TILE;

    // Asked for before anything is waited for.
    unsigned words[EACH][LINES][WORDS];
    float scale[EACH][LINES], shift[EACH][LINES];
    #pragma unroll
    for (int each = 0; each < EACH; ++each) {
      const int group = warp + each * WARPS;
      #pragma unroll
      for (int line = 0; line < LINES; ++line) {
        const int wanted = first + row + 8 * (line % 2);
        const size_t own = (wanted < outputs ? wanted : outputs - 1) + (line / 2) * outputs;
        if (group < GROUPS) {
          load_words<WORDS>(w + own * (K * BITS / 32) + group * 4 * WORDS + quarter * WORDS, words[each][line]);
          scale[each][line] = BITS == 16 ? 1.0f : static_cast<float>(scales[own * GROUPS + group]);
          shift[each][line] = BITS == 16 ? 0.0f : static_cast<float>(biases[own * GROUPS + group]);
        }
      }
    }

    __shared__ float factors[TILE];
    if (NORM) {
      for (int token = warp; token < here; token += WARPS) {
        const T* own = x + static_cast<size_t>(from + token) * K;
        float squares = 0.0f;
        for (int i = 4 * lane; i < K; i += 128) {
          const auto some = *reinterpret_cast<const Several<4, T>*>(own + i);
          for (int j = 0; j < 4; ++j) {
            squares += static_cast<float>(some.of[j]) * static_cast<float>(some.of[j]);
          }
        }
        squares = sum_of_warp(squares);
        if (lane == 0) {
          factors[token] = rsqrtf(squares / K + static_cast<float>(eps[0]));
        }
      }
      __syncthreads();
    }

    float sums[LINES / 2][TILE / 8][4] = {};
    const unsigned one = both<T>(1.0f, 1.0f), ones[4] = {one, one, one, one};
    #pragma unroll
    for (int each = 0; each < EACH; ++each) {
      const int group = warp + each * WARPS;
      if (group >= GROUPS) {
        break;
      }
      float part[LINES / 2][TILE / 8][4] = {}, plain[TILE / 8][4] = {};  // of the integers, and of the inputs
      #pragma unroll
      for (int step = 0; step < GROUP / 16; ++step) {
        unsigned a[LINES / 2][4];
        for (int line = 0; line < LINES; ++line) {
          weights_of<T, BITS>(words[each][line], step, a[line / 2][line % 2], a[line / 2][2 + line % 2]);
        }
        const int input = group * GROUP + quarter * (GROUP / 4) + 4 * step;
        #pragma unroll
        for (int tile = 0; tile < TILE / 8; ++tile) {
          if (8 * tile < here) {
            const int token = 8 * tile + row;
            unsigned b[2] = {0, 0};
            if (token < here) {
              auto some = *reinterpret_cast<const Several<4, T>*>(x + static_cast<size_t>(from + token) * K + input);
              if (NORM) {
                const auto weight = *reinterpret_cast<const Several<4, T>*>(norm + input);
                for (int i = 0; i < 4; ++i) {
                  const T unit = static_cast<T>(static_cast<float>(some.of[i]) * factors[token]);
                  some.of[i] = static_cast<T>(static_cast<float>(unit) * static_cast<float>(weight.of[i]));
                }
              }
              const auto pairs = *reinterpret_cast<const Several<2, unsigned>*>(&some);
              b[0] = pairs.of[0];
              b[1] = pairs.of[1];
            }
            for (int set = 0; set < LINES / 2; ++set) {
              multiply(part[set][tile], a[set], b, x);
            }
            if (BITS < 16) {
              multiply(plain[tile], ones, b, x);
            }
          }
        }
      }
      for (int set = 0; set < LINES / 2; ++set) {
        for (int tile = 0; tile < TILE / 8; ++tile) {
          for (int i = 0; i < 4; ++i) {
            const int line = 2 * set + i / 2;
            sums[set][tile][i] += scale[each][line] * part[set][tile][i] + shift[each][line] * plain[tile][i];
          }
        }
      }
    }

    __shared__ float all[WARPS][LINES / 2][TILE][STRIDE];
    for (int set = 0; set < LINES / 2; ++set) {
      for (int tile = 0; tile < TILE / 8; ++tile) {
        for (int i = 0; i < 4; ++i) {
          all[warp][set][8 * tile + 2 * quarter + i % 2][row + 8 * (i / 2)] = sums[set][tile][i];
        }
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < here * 16; i += 32 * WARPS) {
      const int token = i / 16, output = first + i % 16;
      if (output < outputs) {
        float whole[LINES / 2] = {};
        for (int set = 0; set < LINES / 2; ++set) {
          for (int other = 0; other < WARPS; ++other) {
            whole[set] += all[other][set][token][i % 16];
          }
        }
        const size_t at = static_cast<size_t>(from + token) * outputs + output;
        T result = static_cast<T>(whole[0]);
        if (MORE) {
          result = static_cast<T>(static_cast<float>(result) + static_cast<float>(more[MORE == 1 ? at : output]));
        }
        if (GATED) {
          const float gate = static_cast<float>(result);
          const T open = static_cast<T>(1.0f / (1.0f + expf(-gate)));
          const T active = static_cast<T>(gate * static_cast<float>(open));
          const T up = static_cast<T>(whole[LINES / 2 - 1]);
          result = static_cast<T>(static_cast<float>(active) * static_cast<float>(up));
        }
        out[at] = result;
      }
    }
"""


@cache
def _product() -> Callable[..., list[mx.array]]:
    make: Any = mx.fast.cuda_kernel
    inputs = ["x", "w", "scales", "biases", "norm", "eps", "more"]
    return make(name="product", input_names=inputs, output_names=["out"], source=PRODUCT, header=HEADER)


@dataclass(frozen=True, slots=True)
class Norm:
    """An RMS norm: `weight` [inputs], `eps` [1] in float32."""

    weight: mx.array
    eps: mx.array


@dataclass(frozen=True, slots=True)
class Product:
    """Weights [outputs, inputs], packed or in half precision, and what is added to each output, if anything."""

    weight: mx.array  # in 32-bit words
    scales: mx.array
    biases: mx.array
    bias: mx.array | None
    inputs: int
    group: int
    bits: int

    @classmethod
    def of(cls, module: Any) -> Product | None:
        """None: weights of another kind, or too many inputs."""
        bias = module.get("bias")
        if isinstance(module, nn.QuantizedLinear | nn.QuantizedEmbedding):
            group, bits = module.group_size, module.bits
            if module.mode != "affine" or bits not in (4, 8) or group not in (32, 64, 128):
                return None
            weight, scales, biases = module.weight, module["scales"], module["biases"]
        elif type(module) in (nn.Linear, nn.Embedding) and module.weight.shape[1] % PLAIN_GROUP == 0:
            group, bits, weight = PLAIN_GROUP, 16, module.weight.view(mx.uint32)
            scales = biases = module.weight
            mx.eval(weight)  # a view that is still to be made would be made in every graph
        else:
            return None
        if scales.dtype not in HALVES or (bias is not None and bias.dtype != scales.dtype):
            return None
        made = cls(weight, scales, biases, bias, weight.shape[1] * 32 // bits, group, bits)
        _, each = made._groups
        return made if each * 4 * group * bits // 128 <= REGISTERS else None

    @property
    def dtype(self) -> mx.Dtype:
        """Of what it is multiplied with."""
        return self.scales.dtype

    @property
    def _groups(self) -> tuple[int, int]:
        """Warps of a block, and groups of inputs that each has."""
        groups = self.inputs // self.group
        each = -(groups // -WARPS)
        return -(groups // -each), each

    def __call__(
        self, x: mx.array, *, norm: Norm | None = None, plus: mx.array | None = None, gated: bool = False
    ) -> mx.array:
        """The product of `x` [rows, inputs], normed before: [rows, outputs].

        `plus` [rows, outputs] is added. `gated`: the first half of the outputs, activated by SiLU, times the second.
        """
        assert x.dtype == self.dtype
        assert x.shape[1] == self.inputs
        assert self.bias is None or (plus is None and not gated)
        rows, outputs = x.shape[0], self.weight.shape[0] // (2 if gated else 1)
        warps, _ = self._groups
        more, kind = (plus, 1) if plus is not None else (self.bias, 2) if self.bias is not None else (x, 0)
        before = (x, self.scales) if norm is None else (norm.weight, norm.eps)
        (out,) = _product()(
            inputs=[x, self.weight, self.scales, self.biases, *before, more],
            template=[
                ("T", x.dtype),
                ("K", self.inputs),
                ("GROUP", self.group),
                ("BITS", self.bits),
                ("WARPS", warps),
                ("TILE", TILE),
                ("NORM", int(norm is not None)),
                ("MORE", kind),
                ("GATED", int(gated)),
            ],
            grid=(-(outputs // -16) * 32 * warps, -(rows // -TILE), 1),
            threadgroup=(32 * warps, 1, 1),
            output_shapes=[(rows, outputs)],
            output_dtypes=[x.dtype],
        )
        return out
