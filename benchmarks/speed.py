"""Prefill and decode of a checkpoint, beside the machine's own limits.

    python benchmarks/speed.py [DIR] [--threads 1] [--dtype float32]
        [--experts dequantized] [--tokens 512] [--steps 40] [--repeats 5]
        [--kernels native|torch]

Prefill is one prompt of --tokens, logits of the last position; decode is greedy
after it, batch 1. Prints tokens/s (min, median, max) and the median's share of
the floor: bytes of the active weights over the measured read, and two operations
for each active weight over the measured product. Refuses to run when the golden
numbers are not reached.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import golden
import roof
import torch

import k3
from k3.config import sizes
from k3.kernels import choose
from k3.model import Model


def seconds(run: Callable[[], object], repeats: int) -> list[float]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


def row(name: str, tokens: int, times: list[float], floor_s: float) -> str:
    rates = sorted(tokens / t for t in times)
    middle = statistics.median(rates)
    share = middle * floor_s / tokens
    return (
        f"{name:<10} {rates[0]:9.1f} {middle:9.1f} {rates[-1]:9.1f} tok/s"
        f"   floor {tokens / floor_s:9.1f} tok/s   share {share:.2f}"
    )


@torch.inference_mode()
def measure(model: Model, args: argparse.Namespace) -> None:
    read, peak = roof.read_bytes_per_s(), roof.flops_per_s(model.dtype)
    active = sizes.parameters(model.config).active
    generator = torch.Generator().manual_seed(0)
    words = model.config.text.vocab_size
    ids = torch.randint(words, (1, args.tokens), generator=generator)
    state = model.init_state(1)

    def prefill() -> None:
        nonlocal state, logits
        logits, state = model(ids, state=model.init_state(1), logits="last")

    def step() -> None:
        nonlocal state, logits
        logits, state = model.step(logits[:, -1].argmax(-1, keepdim=True), state)

    logits = torch.zeros(1)
    prefill()
    times = seconds(prefill, args.repeats)
    print(row("prefill", args.tokens, times, args.tokens * 2 * active / peak))
    step()
    times = seconds(step, args.steps)
    print(row("decode", 1, times, active * model.dtype.itemsize / read))
    print(f"read {read / 1e9:.1f} GB/s, product {peak / 1e9:.0f} GFLOP/s")
    print(f"state {state.nbytes:,} bytes after {state.lens[0]} tokens")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dir", nargs="?", default="tiny")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--experts", default="dequantized")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--kernels", choices=choose.NAMES)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    golden.require()
    dtype = getattr(torch, args.dtype)
    model = k3.load(args.dir, dtype=dtype, experts=args.experts)
    print(f"{args.dir} {args.dtype} {args.experts} experts, {args.threads} thread(s)")
    with choose.use(args.kernels):
        print("; ".join(f"{name} {what}" for name, what in choose.lines().items()))
        measure(model, args)


if __name__ == "__main__":
    main()
