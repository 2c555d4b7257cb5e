"""The machine's limits, measured now: what the other figures are held against.

    python benchmarks/roof.py [--threads 1]

Prints the best streaming read and the best matrix product of this minute.
"""

import argparse
import time
from collections.abc import Callable

import torch


def best(run: Callable[[], object], repeats: int = 10) -> float:
    """Shortest of some runs, in seconds."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def read_bytes_per_s(num_bytes: int = 256 * 2**20) -> float:
    """Best streaming read over a buffer of so many bytes."""
    buffer = torch.ones(num_bytes // 4)
    return num_bytes / best(buffer.sum)


def flops_per_s(dtype: torch.dtype, size: int = 1024) -> float:
    """Best product of two square matrices in this dtype."""
    a, b = torch.randn(2, size, size).to(dtype).unbind(0)
    return 2 * size**3 / best(lambda: a @ b)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    print(f"read {read_bytes_per_s() / 1e9:.1f} GB/s")
    for kind in (torch.float32, torch.bfloat16):
        print(f"{kind} {flops_per_s(kind) / 1e9:.0f} GFLOP/s")
