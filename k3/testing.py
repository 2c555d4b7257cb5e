"""A pytest plug-in: one fixture for each operator, with its vectors and its verdict.

    def test_my_recurrence(k3_kda_recurrent):
        k3_kda_recurrent.check(my_recurrence)

The fixture holds `inputs`, `expected` and `operator`; `check` fails the test with what
differs, and with the layout or scale under which the function would be right. torch is
not imported before a fixture is used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from k3.verify.operators import Operator
    from k3.verify.operators.verdict import Verdict

NAMES = (
    "kda.recurrent",
    "kda.chunk",
    "kda.gate",
    "kda.gate_unbounded",
    "short_conv",
    "l2_norm",
    "mla.expanded",
    "mla.absorbed",
    "rms_norm",
    "situ",
    "attn_res",
    "moe.route",
    "moe.experts",
    "mx.decode",
    "mx.encode",
    "vision.rotate",
    "vision.attend",
    "vision.merge",
    "vision.stretch",
    "sample.greedy",
    "sample.draw",
)


@dataclass(frozen=True, slots=True)
class Vectors:
    """An operator's inputs and the equation's outputs in float64."""

    operator: "Operator"
    inputs: dict[str, Any]
    expected: dict[str, Any]

    def check(
        self,
        function: Callable[..., Any],
        *,
        dtype: str = "float32",
        seed: int = 0,
        exact: bool = False,
        signature: str = "k3",
        tolerance: float | None = None,
    ) -> "Verdict":
        """Fail the test unless the function is right; the options of k3 compare."""
        import torch

        from k3.verify.adapters import adapted
        from k3.verify.operators.check import check

        verdict = check(
            adapted(function, self.operator.name, signature),
            self.operator,
            dtype=getattr(torch, dtype),
            seed=seed,
            exact=exact,
            tolerance=tolerance,
        )
        if not verdict:
            pytest.fail(str(verdict), pytrace=False)
        return verdict


def fixture(name: str) -> Any:
    """The fixture of an operator: kda.recurrent is k3_kda_recurrent."""

    @pytest.fixture(name=f"k3_{name.replace('.', '_')}")
    def vectors() -> Vectors:
        from k3.verify.operators import find

        operator = find(name)
        inputs = operator.inputs()
        return Vectors(operator, inputs, operator.expected(inputs))

    vectors.__doc__ = f"Vectors of {name}, and `check(function)`."
    return vectors


globals().update({f"k3_{n.replace('.', '_')}": fixture(n) for n in NAMES})
