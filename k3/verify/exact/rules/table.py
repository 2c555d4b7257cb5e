"""The one table of rules."""

from collections.abc import Callable
from typing import Any

from k3.verify.exact.rules import (
    attention,
    choice,
    convolution,
    function,
    gradient,
    logarithm,
    matrix,
    ring,
)

RULES: dict[str, Callable[..., Any]] = {
    **ring.RULES,
    **matrix.RULES,
    **convolution.RULES,
    **function.RULES,
    **logarithm.RULES,
    **choice.RULES,
    **attention.RULES,
    **gradient.RULES,
}
