"""The machine's limits, measured now: what the other figures are held against.

    python benchmarks/roof.py [--threads 1]

Prints the best streaming read and the best matrix product of this minute, by PyTorch
and, where the native kernels are there, by loops of our own.
"""

import argparse

import torch

from k3.bench import limits
from k3.bench.limits import best as best
from k3.kernels.native import library


def read_bytes_per_s(num_bytes: int = 256 * 2**20) -> float:
    """Best streaming read over a buffer of so many bytes."""
    buffer = torch.ones(num_bytes // 4)
    return num_bytes / best(buffer.sum)


def flops_per_s(dtype: torch.dtype, size: int = 1024) -> float:
    """Best product of two square matrices in this dtype."""
    a, b = torch.randn(2, size, size).to(dtype).unbind(0)
    return 2 * size**3 / best(lambda: a @ b)


def own_read_bytes_per_s(num_bytes: int = 256 * 2**20) -> float:
    """Best streaming read by the native loop, of large pages as weights lie in."""
    return num_bytes / best(limits.reading(num_bytes))


def own_flops_per_s(rounds: int = 1_000_000) -> float:
    """Best fp32 fused products from registers; a roof for what is bound by them."""
    run, operations = limits.products(torch.float32, rounds)
    return operations / best(run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    threads = parser.parse_args().threads
    torch.set_num_threads(threads)
    print(f"read {read_bytes_per_s() / 1e9:.1f} GB/s")
    for kind in (torch.float32, torch.bfloat16):
        print(f"{kind} {flops_per_s(kind) / 1e9:.0f} GFLOP/s")
    if library.load() is not None:
        print(f"own read {own_read_bytes_per_s() / 1e9:.1f} GB/s")
        print(f"own float32 {own_flops_per_s() / 1e9:.0f} GFLOP/s")
