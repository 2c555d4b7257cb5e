"""MXFP4 decode and encode, nanoseconds a value on one thread.

python benchmarks/mx.py

Against the two obvious forms, after checking that all three agree bit for bit:
`nibbles` indexes 16 values by each nibble, `bytes` a table of pairs by each byte.
`copy` writes the decoded values from memory, which no decoder can beat by much.
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from k3.kernels import mx

SHAPES = ((256, 256), (1024, 1024), (3072, 3584))
ROUNDS = 15


def nibbles(packed: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """Decode by indexing with each nibble."""
    values = torch.tensor(mx.E2M1 + tuple(-v for v in mx.E2M1), dtype=dtype)
    both = torch.stack([packed & 15, packed >> 4], -1).long()
    return _scaled(values[both], scale, dtype)


def pairs(packed: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    """Decode by indexing a table [256 2] with each byte."""
    values = torch.tensor(mx.E2M1 + tuple(-v for v in mx.E2M1), dtype=dtype)
    byte = torch.arange(256)
    table = torch.stack([values[byte & 15], values[byte >> 4]], -1)
    return _scaled(table[packed.long()], scale, dtype)


def _scaled(values: Tensor, scale: Tensor, dtype: torch.dtype) -> Tensor:
    factor = torch.pow(2.0, scale.double() - 127).to(dtype)
    groups = values.view(*scale.shape, mx.GROUP)
    return (groups * factor.unsqueeze(-1)).view(scale.shape[0], -1)


def nanoseconds(run: Callable[[], object], count: int) -> str:
    """Return min/median/max of ROUNDS runs, a value."""
    run()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) / count * 1e9)
    return f"{min(times):6.2f} {statistics.median(times):6.2f} {max(times):6.2f}"


def main() -> None:
    torch.set_num_threads(1)
    print("ns a value, 1 thread            min median    max")
    for rows, columns in SHAPES:
        packed = torch.randint(0, 256, (rows, columns // 2), dtype=torch.uint8)
        scale = torch.randint(100, 130, (rows, columns // 32), dtype=torch.uint8)
        for dtype in mx.DTYPES:
            out = mx.decode(packed, scale, dtype)
            for form in (nibbles, pairs):
                if not torch.equal(form(packed, scale, dtype), out):
                    raise SystemExit(f"{form.__name__} disagrees: nothing is timed")
            source, count = out.clone(), rows * columns
            runs = {
                "decode": lambda p=packed, s=scale, o=out: mx.decode(
                    p, s, o.dtype, out=o
                ),
                "nibbles": lambda p=packed, s=scale, d=dtype: nibbles(p, s, d),
                "bytes": lambda p=packed, s=scale, d=dtype: pairs(p, s, d),
                "copy": lambda o=out, x=source: o.copy_(x),
                "encode": lambda x=source: mx.encode(x),
            }
            print(f"[{rows} {columns}] {dtype}")
            for name, run in runs.items():
                print(f"  {name:26s} {nanoseconds(run, count)}")


if __name__ == "__main__":
    main()
