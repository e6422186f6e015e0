"""CUDA kernels of ours on the CPU: the same source, compiled by a C++ compiler, a thread for each of a block's.

`mx.fast.cuda_kernel` can be replaced by `kernel` here: what it returns runs at once, and writes
into the memory of its inputs where the source does.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

COMPILER = shutil.which("g++")

_SHIM = r"""
#include <array>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>
struct Index { int x, y, z; };
static thread_local Index threadIdx, blockIdx;
struct Block {
  std::barrier<> all;
  std::vector<std::unique_ptr<std::barrier<>>> warps;
  std::vector<float> lanes;
  std::vector<std::array<unsigned, 6>> pieces;
  explicit Block(int threads) : all(threads), lanes(threads), pieces(threads) {
    for (int i = 0; i < threads / 32; ++i) warps.emplace_back(new std::barrier<>(32));
  }
};
static thread_local Block* block;
static void __syncthreads() { block->all.arrive_and_wait(); }
static float __shfl_xor_sync(unsigned, float value, int other) {
  const int own = threadIdx.x;
  block->lanes[own] = value;
  block->warps[own / 32]->arrive_and_wait();
  const float found = block->lanes[own ^ other];
  block->warps[own / 32]->arrive_and_wait();
  return found;
}
static float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
static float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  explicit bfloat16(float value) {
    const uint32_t all = std::bit_cast<uint32_t>(value);
    bits = (all + 0x7fff + (all >> 16 & 1)) >> 16;
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};
// A tensor core's product, as the layout of its pieces is published (PTX ISA, mma.m16n8k16 with .bf16).
template <typename T>
static void multiply(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2], const T*) {
  const int own = threadIdx.x, first = own / 32 * 32, lane = own % 32;
  block->pieces[own] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  block->warps[own / 32]->arrive_and_wait();
  auto piece = [&](int from, int index, int inner) {
    const unsigned pair = block->pieces[first + from * 4 + inner % 8 / 2][index];
    return float(std::bit_cast<T>(uint16_t(pair >> 16 * (inner % 2))));
  };
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
    for (int inner = 0; inner < 16; ++inner) {
      sums[i] += piece(row % 8, row / 8 + 2 * (inner / 8), inner) * piece(column, 4 + inner / 8, inner);
    }
  }
  block->warps[own / 32]->arrive_and_wait();
}
#define __device__
#define __shared__ static
#define ON_CPU
"""
_NAMES = {mx.float32: "float", mx.bfloat16: "bfloat16", mx.float16: "_Float16", mx.int32: "int", mx.uint32: "unsigned"}


def kernel(
    *,
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
) -> Callable[..., list[mx.array]]:
    del name

    def call(
        inputs: Sequence[mx.array],
        template: Sequence[tuple[str, Any]],
        grid: tuple[int, int, int],
        threadgroup: tuple[int, int, int],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[mx.Dtype],
    ) -> list[mx.array]:
        if ensure_row_contiguous:
            inputs = [mx.contiguous(each) for each in inputs]
        mx.eval(list(inputs))
        outputs = [mx.zeros(shape, dtype=dtype) for shape, dtype in zip(output_shapes, output_dtypes, strict=True)]
        outputs = [mx.contiguous(each + 0) for each in outputs]
        mx.eval(outputs)
        types = [f"const {_NAMES[each.dtype]}*" for each in inputs] + [f"{_NAMES[each.dtype]}*" for each in outputs]
        arguments = list(zip(types, [*input_names, *output_names], strict=True))
        threads = threadgroup[0]
        blocks = (grid[0] // threads, grid[1] // threadgroup[1])
        assert grid[0] % threads == grid[2] - 1 == 0
        run = _compiled(header, source, tuple(template), tuple(arguments))
        arrays = [*inputs, *outputs]
        shapes = [np.array(each.shape, dtype=np.int32) for each in arrays]
        memory = [_memory(each) for each in arrays]
        run(*(_pointer(each) for pair in zip(memory, shapes, strict=True) for each in pair), *blocks, threads)
        return outputs

    return call


def _memory(array: mx.array) -> np.ndarray:
    """Not a copy: a kernel may write into it."""
    shared: Any = array.view(mx.uint16) if array.dtype in (mx.bfloat16, mx.float16) else array
    mx.eval(shared)
    return np.asarray(memoryview(shared))


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


@cache
def _compiled(
    header: str, source: str, template: tuple[tuple[str, Any], ...], arguments: tuple[tuple[str, str], ...]
) -> Any:
    values = "".join(
        f"typedef {_NAMES[value]} {name};\n" if isinstance(value, mx.Dtype) else f"constexpr int {name} = {value};\n"
        for name, value in template
    )
    taken = ", ".join(f"{kind} {name}, const int* {name}_shape" for kind, name in arguments)
    given = ", ".join(f"{name}, {name}_shape" for _, name in arguments)
    text = f"""{_SHIM}{header}
namespace ours {{
{values}
static void body({taken}) {{
{source}
}}
}}
extern "C" void run({taken}, int blocks_x, int blocks_y, int threads_) {{
  Block block_(threads_);
  std::vector<std::thread> all_;
  for (int thread_ = 0; thread_ < threads_; ++thread_) {{
    all_.emplace_back([&, thread_] {{
      block = &block_;
      threadIdx = {{thread_, 0, 0}};
      for (int each_ = 0; each_ < blocks_x * blocks_y; ++each_) {{
        blockIdx = {{each_ % blocks_x, each_ / blocks_x, 0}};
        ours::body({given});
        __syncthreads();
      }}
    }});
  }}
  for (auto& thread_ : all_) thread_.join();
}}
"""
    library = _folder() / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
    if not library.exists():
        assert COMPILER is not None
        file = library.with_suffix(".cpp")
        file.write_text(text)
        command = [COMPILER, "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", str(file), "-o", str(library)]
        subprocess.run(command, check=True)
    return ctypes.CDLL(str(library)).run


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="slipstream-kernels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
