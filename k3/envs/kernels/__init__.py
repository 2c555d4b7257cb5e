"""Kernels in C, graded in a sandbox: correctness first, then speed."""

from k3.envs.kernels.bench import Bench as Bench
from k3.envs.kernels.task import KernelTask as KernelTask
from k3.envs.kernels.task import make as make
from k3.envs.kernels.verdict import Verdict as Verdict
from k3.envs.kernels.verdict import marks as marks

__all__ = ["Bench", "KernelTask", "Verdict", "make", "marks"]
