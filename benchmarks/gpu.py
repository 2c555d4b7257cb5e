"""CUDA kernels: each against float64, and timed against PyTorch and the card's limit.

    python benchmarks/gpu.py [--output FILE] [--minutes 7] [--only NAME]
    TRITON_INTERPRET=1 python benchmarks/gpu.py --interpret

Needs a CUDA device and the extra gpu (Triton, fla-core). Prints a table and writes it
to FILE; what is not reached in the time is a row that says so. Exit status: 0 all
agree, 1 a kernel differs or fails, 3 there is no device or no Triton. `--interpret`
runs the Triton kernels at tiny sizes on the CPU: no time means anything then, and fla
is left out.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import torch
from gpu_cases import Case, cases
from torch import Tensor

HEAD = (
    "| kernel | sizes | error | allowed | ms | torch ms | ratio | floor ms | share |\n"
    "|---|---|---|---|---|---|---|---|---|"
)
NO_DEVICE = 3
SECONDS_A_FORM = 0.4


class Card:
    """Where the kernels run, how they are timed, and its limits of this minute."""

    def __init__(self, interpret: bool) -> None:
        self.interpret = interpret
        self.device = torch.device("cpu" if interpret else "cuda")
        self.bytes_per_s = self.flops_per_s = float("nan")
        if not interpret:
            self.bytes_per_s, self.flops_per_s = self.limits()

    def limits(self) -> tuple[float, float]:
        """The best copy (read and written bytes) and the best bf16 product."""
        x = torch.empty(2**28, device=self.device)
        y = torch.empty_like(x)
        moved = 2 * x.nbytes / min(self.times(lambda: y.copy_(x)))
        a, b = (torch.randn(8192, 8192, device=self.device).bfloat16() for _ in "ab")
        return moved, 2 * 8192**3 / min(self.times(lambda: a @ b))

    def times(self, run: Callable[[], object]) -> list[float]:
        """Seconds of some calls after a warm-up, which compiles."""
        run()
        first = self.once(run)
        count = 1 if self.interpret else int(SECONDS_A_FORM / max(first, 1e-4))
        return [self.once(run) for _ in range(min(max(count, 3), 50))]

    def once(self, run: Callable[[], object]) -> float:
        if self.interpret:
            start = time.perf_counter()
            run()
            return time.perf_counter() - start
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop) / 1e3

    def put(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: x.to(self.device) for name, x in given.items()}


def gap(got: Tensor, want: Tensor) -> float:
    """Largest difference over the largest value wanted; NaN is as far as can be."""
    got, want = got.detach(), want.detach()
    off = (got.double() - want.double()).abs().max() / want.double().abs().max().clamp(
        1e-30
    )
    return float(off) if torch.isfinite(off) else float("inf")


def error(case: Case, sizes: tuple[int, ...], card: Card) -> float:
    """The kernel's worst error against PyTorch's form in float64."""
    torch.manual_seed(sum(sizes))
    given = case.make(sizes)
    ours, reference = next(iter(case.forms.values())), list(case.forms.values())[-1]
    exact = {n: x.double() if x.is_floating_point() else x for n, x in given.items()}
    pairs = zip(ours(card.put(given)), reference(exact), strict=True)
    return max(gap(got.cpu(), want) for got, want in pairs)


def row(case: Case, card: Card) -> tuple[str, bool]:
    """One row of the table, and whether the kernel agrees."""
    try:
        worst = max(error(case, sizes, card) for sizes in case.check)
        timed = case.tiny if card.interpret else case.timed
        torch.manual_seed(0)
        given = card.put(case.make(timed))
        name = next(iter(case.forms))
        spent = {
            form: statistics.median(card.times(lambda run=run: run(given)))
            for form, run in case.forms.items()
        }
        moved, operations = case.work(given)
    except Exception as failure:
        what = f"{type(failure).__name__}: {failure}".splitlines()[0][:200]
        return f"| {case.name} | failed: {what} | | | | | | | |", False
    floor = max(moved / card.bytes_per_s, operations / card.flops_per_s)
    cells = [
        f"{case.name} ({name})",
        " x ".join(map(str, timed)),
        f"{worst:.1e}",
        f"{case.allowed:.0e}",
        *(f"{1e3 * seconds:.3f}" for seconds in spent.values()),
        f"{spent['torch'] / spent[name]:.2f}",
        f"{1e3 * floor:.3f}",
        f"{floor / spent[name]:.2f}",
    ]
    return f"| {' | '.join(cells)} |", worst <= case.allowed


def rows(chosen: list[Case], card: Card, deadline: float) -> Iterator[tuple[str, bool]]:
    for case in chosen:
        if card.interpret and "fla" in case.forms:
            yield (
                f"| {case.name} | left out: fla has no interpreter | | | | | | | |",
                True,
            )
        elif time.monotonic() > deadline:
            yield f"| {case.name} | not reached in the time | | | | | | | |", True
        else:
            yield row(case, card)
            if not card.interpret:
                torch.cuda.empty_cache()


def heading(card: Card) -> str:
    """The card, the versions, the commit and the limits."""
    device = "Triton's interpreter on a CPU"
    if not card.interpret:
        device = torch.cuda.get_device_name()
    packages = [f"torch {torch.__version__}"]
    for module, package in (("triton", "triton"), ("fla", "fla-core")):
        if find_spec(module):
            packages.append(f"{package} {version(package)}")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    ).stdout.strip()
    limits = (
        f"copy {card.bytes_per_s / 1e12:.2f} TB/s, bf16 product "
        f"{card.flops_per_s / 1e12:.0f} TFLOP/s"
    )
    return (
        f"{device}; {', '.join(packages)}; commit {commit}; {limits}\n"
        f"`python benchmarks/gpu.py {' '.join(sys.argv[1:])}`\n\n{HEAD}"
    )


def absent(interpret: bool) -> str | None:
    """Why nothing can run here, in one sentence."""
    if find_spec("triton") is None:
        return "Triton is not installed, so nothing was checked; install k3[gpu]"
    if interpret and os.environ.get("TRITON_INTERPRET") != "1":
        return "--interpret needs TRITON_INTERPRET=1 in the environment; set it"
    if not interpret and not torch.cuda.is_available():
        return (
            "torch sees no CUDA device, so nothing was checked or timed; run it on a "
            "machine with one, or with TRITON_INTERPRET=1 and --interpret"
        )
    return None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path)
    parser.add_argument("--minutes", type=float, default=7.0)
    parser.add_argument("--only", default="", help="kernels whose name has this text")
    parser.add_argument("--interpret", action="store_true")
    args = parser.parse_args()
    why = absent(args.interpret)
    if why is not None:
        print(f"gpu: {why}")
        return NO_DEVICE
    deadline = time.monotonic() + 60 * args.minutes
    chosen = [case for case in cases() if args.only.lower() in case.name.lower()]
    card = Card(args.interpret)
    lines, agree = [heading(card)], True
    print(lines[0], flush=True)
    for line, right in rows(chosen, card, deadline):
        print(line if right else f"{line} <- differs", flush=True)
        lines.append(line if right else f"{line} **differs**")
        agree &= right
    if args.output:
        args.output.write_text("\n".join(lines) + "\n")
    return 0 if agree else 1


if __name__ == "__main__":
    raise SystemExit(main())
