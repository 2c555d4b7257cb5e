"""The machine's limits: a streaming read, and fused products from registers.

By loops of our own where the native kernels are built, by PyTorch where not.
"""

import time
from collections.abc import Callable

import torch

from k3.kernels.native import library, pages

Run = Callable[[], object]
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
"""The processor's time is of all threads; others on the machine disturb it less."""

ROUNDS = 1_000_000
SQUARE = 1024


def seconds(run: Run, clock: str = "wall") -> float:
    """What one call takes."""
    now = CLOCKS[clock]
    start = now()
    run()
    return now() - start


def best(run: Run, repeats: int = 10, clock: str = "wall") -> float:
    """Shortest of some runs, in seconds; one run before them is not counted."""
    run()
    return min(seconds(run, clock) for _ in range(repeats))


def reading(num_bytes: int) -> Run:
    """A streaming read of so many bytes, in large pages as weights lie in."""
    held, sink = torch.ones(num_bytes // 4), torch.empty(1, dtype=torch.float64)
    if library.load() is None:
        return held.sum
    pages.enlarge([held])
    read = library.function("k3_roof_read", "pipi")
    return lambda: read(
        held.data_ptr(), held.numel(), sink.data_ptr(), torch.get_num_threads()
    )


def products(dtype: torch.dtype, rounds: int = ROUNDS) -> tuple[Run, float]:
    """A loop of products and the operations of one call of it.

    The loop is of fp32 fused products in registers; where the processor has bf16 dot
    products, which do two for one, a call counts double in bf16. Without native
    kernels it is PyTorch's product of two square matrices.
    """
    if library.load() is None:
        a, b = torch.randn(2, SQUARE, SQUARE).to(dtype).unbind(0)
        return (lambda: a @ b), 2.0 * SQUARE**3
    out = torch.empty(2, dtype=torch.float64)
    loop = library.function("k3_roof_products", "ipi")

    def run() -> None:
        loop(rounds, out.data_ptr(), torch.get_num_threads())

    run()
    narrow = dtype == torch.bfloat16 and library.level() == "avx512bf16"
    return run, float(out[0]) * (2 if narrow else 1)
