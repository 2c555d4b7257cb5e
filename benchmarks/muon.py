"""What Muon costs on B9: its share of a step, and how near its products are to peak.

    python benchmarks/muon.py [--threads 1] [--rounds 5] [--clock cpu] [--shape B9]

Times in turn, medians: forward and backward of 2 by 256 tokens, the whole optimizer
step of Muon and of AdamW (clipping, rounding into the model and all), Newton-Schulz
alone over every matrix, experts included, and the best bf16 product of this minute.
The share is of a step of 8,192 tokens, 16 passes of 512. Operations are those of five
rounds without use of symmetry: 4 r^2 c + 2 r^3 each. Then the orthogonality residual
of each head: what is left of |X X^T - 1| after five rounds.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import checkpoints
import torch

from k3.model import Model
from k3.train import muon
from k3.train.masters import Masters

TOKENS, STEP_TOKENS = 512, 8192
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def operations(masters: Masters) -> int:
    """Multiplications and additions of all rounds over all matrices."""
    total = 0
    for name, cut in masters.muon.cuts.items():
        for view in cut.views(masters.weights[name].data):
            short, long = sorted(view.shape[1:])
            total += len(view) * (4 * short * short * long + 2 * short**3)
    return muon.STEPS * total


def product_peak(dtype: torch.dtype, now: Callable[[], float]) -> float:
    """Best operations a second of one product, over sizes from 256 to 1,024."""
    best = 0.0
    for size in (256, 512, 1024):
        a, b = torch.randn(2, size, size).to(dtype).unbind(0)
        for _ in range(3):
            began = now()
            for _ in range(1024 // size * 4):
                a @ b
            best = max(best, 2 * size**3 * (1024 // size * 4) / (now() - began))
    return best


def gradients(model: Model, rows: torch.Tensor) -> list[torch.Tensor]:
    """Forward and backward of the next-token loss."""
    logits = model(rows)[:, :-1].flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(logits, rows[:, 1:].flatten())
    held = [p for p in model.parameters() if p.requires_grad]
    found = torch.autograd.grad(loss, held, allow_unused=True)
    pairs = zip(held, found, strict=True)
    return [torch.zeros_like(p) if g is None else g for p, g in pairs]


def straighten(masters: Masters) -> None:
    """Newton-Schulz alone over every matrix, in the optimizer's batches."""
    by_shape: dict[tuple[int, ...], list[torch.Tensor]] = {}
    for name, cut in masters.muon.cuts.items():
        for view in cut.views(masters.muon.moments[name]):
            by_shape.setdefault(tuple(view.shape[1:]), []).append(view)
    for shape, views in by_shape.items():
        room = max(1, muon.BATCH_VALUES // (shape[0] * shape[1]))
        for part in torch.cat(views).split(room):
            muon.newton_schulz(part, dtype=masters.muon.dtype)


def residuals(masters: Masters) -> dict[str, tuple[int, float, float]]:
    """By leaf: matrices, and median and largest of |X X^T - 1|_F / sqrt(rows)."""
    found: dict[str, list[float]] = {}
    for name, cut in masters.muon.cuts.items():
        leaf = name.removesuffix(".weight").split(".")[-1]
        for view in cut.views(masters.muon.moments[name]):
            X = muon.newton_schulz(view, dtype=masters.muon.dtype)
            X = X.mT if X.shape[1] > X.shape[2] else X
            gap = X @ X.mT - torch.eye(X.shape[1])
            sizes = gap.norm(dim=(1, 2)) / X.shape[1] ** 0.5
            found.setdefault(leaf, []).extend(sizes.tolist())
    return {
        leaf: (len(v), statistics.median(v), max(v))
        for leaf, v in sorted(found.items())
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="cpu")
    parser.add_argument("--shape", choices=checkpoints.SHAPES, default="B9")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = Model(checkpoints.config(args.shape), dtype=torch.float32).init_weights(0)
    rows = torch.randint(4000, (2, TOKENS // 2))
    common = {"betas": (0.9, 0.95), "weight_decay": 0.1}
    adamw = Masters(model, **common)
    masters = Masters(model, optimizer="muon", **common)
    found = gradients(model, rows)
    now = CLOCKS[args.clock]
    work = {
        "forward and backward": lambda: gradients(model, rows),
        "muon step": lambda: masters.step(found, 1e-5, 1.0),
        "newton-schulz": lambda: straighten(masters),
        "adamw step": lambda: adamw.step(found, 1e-5, 1.0),
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    peaks = []
    for run in work.values():
        run()
    for _ in range(args.rounds):
        for name, run in work.items():
            began = now()
            run()
            times[name].append(now() - began)
        peaks.append(product_peak(masters.muon.dtype, now))
    report(masters, {n: statistics.median(t) for n, t in times.items()}, max(peaks))
    print(f"{args.threads} thread(s), {args.clock} clock, {args.rounds} rounds")


def report(masters: Masters, median: dict[str, float], peak: float) -> None:
    """Print times, the share of a long step, and products against their peak."""
    for name, seconds in median.items():
        print(f"{name:<22} {seconds:7.3f} s")
    passes = STEP_TOKENS // TOKENS
    for name in ("muon", "adamw"):
        step = median[f"{name} step"]
        long = passes * median["forward and backward"] + step
        short = median["forward and backward"] + step
        print(
            f"{name}: {step / long:.1%} of a step of {STEP_TOKENS} tokens, "
            f"{step / short:.1%} of one of {TOKENS}"
        )
    work = operations(masters)
    floor = work / peak
    print(
        f"newton-schulz: {muon.STEPS} rounds, {masters.muon.orthogonalized} matrices, "
        f"{work / 1e9:.0f} GFLOP, peak {peak / 1e9:.0f} GFLOP/s in "
        f"{masters.muon.dtype}: {floor:.3f} s; {median['newton-schulz'] / floor:.2f} "
        f"times that, the whole muon step {median['muon step'] / floor:.2f}"
    )
    for leaf, (count, middle, largest) in residuals(masters).items():
        print(f"residual {leaf:<24} {count:4} matrices {middle:.3f} (to {largest:.3f})")


if __name__ == "__main__":
    main()
