"""The one table of rules."""

from collections.abc import Callable
from typing import Any

from k3.verify.enclose.rules.attention import RULES as ATTENTION
from k3.verify.enclose.rules.choice import RULES as CHOICE
from k3.verify.enclose.rules.function import RULES as FUNCTION
from k3.verify.enclose.rules.matrix import RULES as MATRIX
from k3.verify.enclose.rules.ring import RULES as RING

RULES: dict[str, Callable[..., Any]] = {
    **RING,
    **MATRIX,
    **FUNCTION,
    **CHOICE,
    **ATTENTION,
}
