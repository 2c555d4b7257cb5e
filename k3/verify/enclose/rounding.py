"""What is assumed of the machine: unit roundoffs, library functions, underflow, order.

Source: the standard model of floating-point arithmetic, Higham, Accuracy and Stability
of Numerical Algorithms, 2nd edition, chapters 2 to 4.
"""

from dataclasses import dataclass

import torch

from k3 import errors

BITS = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}
"""Significant bits, the leading one included."""

SLACK = 2.0**-50
"""What float64 itself may cost the centre and the radius, relative to both."""

LIBRARY_ULP = 4
"""exp, tanh, sigmoid, rsqrt, ... err by at most so many units in the last place."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rounding:
    """A model of the machine that a ball must cover.

    `declared` rounds every tensor in the dtype it claims. Otherwise all arithmetic is
    float64: the ball then holds what the program means over the real numbers.
    """

    declared: bool = True
    ulp: int = LIBRARY_ULP

    def __post_init__(self) -> None:
        whole = isinstance(self.ulp, int) and not isinstance(self.ulp, bool)
        if not whole or self.ulp < 1:
            raise errors.RequestError(
                "ulp is the accuracy of library functions, a whole number of at least "
                f"1: got {self.ulp!r}; the default is {LIBRARY_ULP}"
            )

    def unit(self, dtype: torch.dtype) -> float:
        """Unit roundoff: the relative error of one rounding to nearest."""
        return 2.0 ** -BITS[dtype if self.declared else torch.float64]

    def wide(self, dtype: torch.dtype) -> float:
        """Unit roundoff of what is computed inside an operation: at least fp32."""
        narrow = dtype in (torch.bfloat16, torch.float16)
        return self.unit(torch.float32 if narrow else dtype)

    def library(self, dtype: torch.dtype) -> float:
        """Relative error of a library function, before its result is rounded."""
        return 2 * self.ulp * self.wide(dtype)

    def tiny(self, dtype: torch.dtype) -> float:
        """What is lost where a result is flushed to zero."""
        return float(torch.finfo(self.of(dtype)).smallest_normal)

    def largest(self, dtype: torch.dtype) -> float:
        """Beyond this a value may be infinite, and nothing is known of it."""
        return float(torch.finfo(self.of(dtype)).max)

    def of(self, dtype: torch.dtype) -> torch.dtype:
        """The dtype that is really rounded to."""
        return dtype if self.declared else torch.float64

    def lines(self) -> list[str]:
        """The assumptions, for a person."""
        return [
            "every +, -, *, / and sqrt is rounded to nearest in the dtype of its "
            "result (u = 2^-24 in fp32, 2^-8 in bf16), fused or not",
            "sums and products of matrices add in any order, in fp32 where values "
            "are bf16, and are rounded once to the dtype of the result",
            f"library functions (exp, tanh, sigmoid, rsqrt, ...) err by at most "
            f"{self.ulp} units in the last place of fp32 before that rounding",
            "a triangular system is solved by substitution",
            "a result below the smallest normal number may become zero",
        ]


def gamma(n: float, u: float) -> float:
    """Relative error of n roundings in a row: n u / (1 - n u), inf where that breaks.

    Source: Higham, section 3.1.
    """
    return n * u / (1 - n * u) if n * u < 1 else float("inf")
