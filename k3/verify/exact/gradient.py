"""Are the gradients that autograd computes those of the equation?

A random combination s of the outputs and a random direction r of the inputs: backward,
<grad <s, out>, r> on the first engine; forward, <s, d out/dr> on the second. They agree
for random s and r exactly if all gradients do.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from k3.verify.exact import run
from k3.verify.exact.cover import gradients
from k3.verify.exact.dual import Dual
from k3.verify.exact.equal import equal, with_weights
from k3.verify.exact.number import Num
from k3.verify.exact.report import Report
from k3.verify.exact.tensor import ExactTensor


def gradient(
    program: Any,
    reference: Callable[..., Any],
    inputs: Mapping[str, Any],
    **options: Any,
) -> Report:
    """Compare all first derivatives: arguments as those of `equal`, without cuts.

    On a difference each input is asked alone, and the report's `first` names the first
    whose gradient differs.
    """
    given = with_weights(program, inputs)
    options = {"covering": False, "locating": False} | options
    report = _along(program, reference, given, (), options)
    if report.equal:
        return report
    names = list(run.named(run.drawn(given, lambda name, _: name), ""))
    for name in names:
        alone = _along(program, reference, given, (name,), options | {"seeds": 1})
        if not alone.equal:
            alone.problem = f"gradient of {name.removeprefix('.')}"
            alone.difference = None
            return alone
    return report


def _along(
    program: Any,
    reference: Callable[..., Any],
    inputs: Mapping[str, Any],
    only: tuple[str, ...],
    options: dict[str, Any],
) -> Report:
    """Compare derivatives along a random direction of some inputs, or of all."""

    def backward(**values: Any) -> Any:
        leaves: dict[str, ExactTensor] = {}

        def leaf(name: str, x: ExactTensor) -> ExactTensor:
            leaves[name] = x.detach().requires_grad_()  # type: ignore[assignment]
            return leaves[name]

        with torch.enable_grad():
            given = _mapped(values, leaf, ExactTensor)
            out = run.named(run.call(program, given))
            names = [n for n in leaves if not only or n in only]
            grads = gradients(list(out.values()), [leaves[n] for n in names])
        return _inner(dict(zip(names, grads, strict=True)))

    def forward(**values: Any) -> Any:
        def dual(name: str, x: Num) -> Dual:
            moves = not only or name in only
            return Dual(x, x.run.draw(f"toward{name}", x.f) if moves else x * 0)

        out = run.named(reference(**_mapped(values, dual, Num)))
        total: Any = 0
        for i, y in enumerate(v for v in out.values() if isinstance(v, Dual)):
            s = y.run.draw(f"shake.{i}", y.x.f)
            total = total + (s * y.d).reshape((-1,)).sum()
        return total

    return equal(backward, forward, inputs, **options)


def _inner(grads: Mapping[str, Any]) -> Any:
    """The inner product of all gradients with the random direction."""
    total: Any = 0.0
    for name, g in grads.items():
        if g is not None:
            total = total + (g * g.run.draw(f"toward{name}", g.f).to(g.dtype)).sum()
    return total


def _mapped(
    values: Any, op: Callable[[str, Any], Any], kind: type, at: str = ""
) -> Any:
    """A nest of inputs with every drawn one replaced, by its path."""
    if isinstance(values, Mapping):
        return {k: _mapped(v, op, kind, f"{at}.{k}") for k, v in values.items()}
    if isinstance(values, list):
        return [_mapped(v, op, kind, f"{at}.{i}") for i, v in enumerate(values)]
    return op(at, values) if isinstance(values, kind) else values
