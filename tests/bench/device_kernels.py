"""Has MLX-CUDA compile the wide quantised products of the built-in pair, each in a process of its own.

    python3 tests/bench/device_kernels.py [--processes 6]

MLX compiles such a kernel at its first use (20 to 40 s and 2 to 4 GB of memory each) and keeps it in MLX_PTX_CACHE_DIR.
A second run, or one with an earlier folder in place, takes seconds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product

# (type, bits, group) of the 8-bit target, of drafters in bfloat16 and float16, and of the target as shipped.
KINDS = (("bfloat16", 8, 64), ("bfloat16", 4, 64), ("float16", 4, 64), ("float16", 4, 32), ("float16", 8, 32))
ROWS = (8, 32, 64)  # there is a kernel for up to 16, 32 and 64 rows
COLUMNS = (576, 1536)  # and another where the outputs divide by 128

ONE = """
import sys, time
import mlx.core as mx
name, bits, group, rows, outputs = sys.argv[1], *map(int, sys.argv[2:])
dtype = getattr(mx, name)
packed = mx.quantize(mx.random.normal((outputs, 576)).astype(dtype), group_size=group, bits=bits)
x = mx.random.normal((rows, 576)).astype(dtype)
mx.eval(packed, x)
began = time.perf_counter()
mx.eval(mx.quantized_matmul(x, *packed, transpose=True, group_size=group, bits=bits))
print(*sys.argv[1:], f"{time.perf_counter() - began:.1f} s", flush=True)
"""


def compile_one(kind: tuple[str, int, int], rows: int, outputs: int) -> int:
    arguments = [*map(str, kind), str(rows), str(outputs)]
    return subprocess.run([sys.executable, "-c", ONE, *arguments], check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=6, help="at a time (%(default)s)")
    args = parser.parse_args()
    with ThreadPoolExecutor(args.processes) as threads:
        codes = list(threads.map(lambda case: compile_one(*case), product(KINDS, ROWS, COLUMNS)))
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(main())
