"""Nothing is timed that does not reach the released model's numbers."""

from pathlib import Path

import torch

import k3
from k3.verify.compare import compare

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "tiny_release"


def require() -> None:
    """Compare with the golden numbers. Raises: SystemExit where they are missed."""
    report = compare(k3.load(GOLDEN, dtype=torch.float32), GOLDEN / "golden.npz")
    if not report.ok:
        raise SystemExit(
            f"the golden numbers are not reached, nothing is timed\n{report}"
        )
