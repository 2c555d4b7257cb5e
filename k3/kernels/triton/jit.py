"""Compiling a kernel, and what all of them share."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
import triton

INTERPRETED = triton.knobs.runtime.interpret
"""Whether kernels run in Triton's interpreter on the CPU (TRITON_INTERPRET=1)."""


def triton_jit(function: Callable[..., Any]) -> Any:
    """triton.jit of the function itself, without the shape checks of a test run."""
    return triton.jit(inspect.unwrap(function))


def whole(x: torch.Tensor) -> bool:
    """Whether products of x go through fp32.

    True for fp32, and in the interpreter, whose bf16 products are wrong.
    """
    return INTERPRETED or x.dtype == torch.float32
