"""KDA alone: 8 heads of 128, native against PyTorch's chunk form, in turn.

    python benchmarks/kda.py [--tokens 4096] [--threads 1 2] [--repeats 5]

Prints tokens/s (medians), the median of the ratios of neighbours, and the floor: three
fused products for each element of the memory and token over the measured fp32 peak of
as many threads. Then forward and backward together at 512 tokens. Refuses to run where
the two forms do not agree.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import roof
import torch
from torch import Tensor

from k3.kernels import choose, kda

HEADS, SIZE = 8, 128


def inputs(tokens: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    wide = (tokens, HEADS, SIZE)
    q, k = (torch.nn.functional.normalize(normal(*wide), dim=-1) for _ in range(2))
    g, beta = -torch.sigmoid(normal(*wide)), torch.sigmoid(normal(tokens, HEADS))
    state = normal(1, HEADS, SIZE, SIZE)
    return [q * SIZE**-0.5, k, normal(*wide), g, beta, state]


def forward(made: list[Tensor]) -> Tensor:
    return kda.chunk(*made[:5], state=made[5], lens=(len(made[0]),))[0]


def both_ways(made: list[Tensor]) -> Tensor:
    leaves = [x.detach().requires_grad_() for x in made]
    return torch.autograd.grad(forward(leaves).sum(), leaves)[0]


def in_turn(
    run: Callable[[list[Tensor]], Tensor], made: list[Tensor], repeats: int
) -> dict[str, list[float]]:
    """Seconds of each form, one after the other."""
    times: dict[str, list[float]] = {"native": [], "torch": []}
    for _ in range(repeats):
        for name, found in times.items():
            with choose.use(name):
                start = time.perf_counter()
                run(made)
                found.append(time.perf_counter() - start)
    return times


def row(name: str, tokens: int, times: dict[str, list[float]]) -> str:
    rates = {k: tokens / statistics.median(t) for k, t in times.items()}
    pairs = zip(times["torch"], times["native"], strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    return (
        f"{name:<18} native {rates['native']:9,.0f} tok/s   torch "
        f"{rates['torch']:8,.0f} tok/s   ratio {ratio:5.2f}"
    )


def check(made: list[Tensor]) -> None:
    found = {}
    for name in ("native", "torch"):
        with choose.use(name):
            found[name] = forward(made)
    gap = (found["native"] - found["torch"]).abs().max() / found["torch"].abs().max()
    if not gap < 1e-5:
        raise SystemExit(f"the forms differ by {gap:.1e}: nothing is timed")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    made, short = inputs(args.tokens), inputs(512)
    check(short)
    print(f"KDA, {HEADS} heads of {SIZE}, fp32, {choose.lines()['native']}")
    for threads in args.threads:
        torch.set_num_threads(threads)
        times = in_turn(forward, made, args.repeats)
        peak = roof.own_flops_per_s()
        floor = peak / (6 * HEADS * SIZE * SIZE)
        share = args.tokens / statistics.median(times["native"]) / floor
        print(f"{threads} thread(s), fp32 peak {peak / 1e9:.0f} GFLOP/s")
        print(row(f"forward {args.tokens}", args.tokens, times), end="")
        print(f"   floor {floor:,.0f} tok/s   share {share:.2f}")
        print(row("both ways 512", 512, in_turn(both_ways, short, args.repeats)))


if __name__ == "__main__":
    main()
