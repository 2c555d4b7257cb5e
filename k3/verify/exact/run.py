"""Running a program on the first engine and a reference on the second."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._python_dispatch import _disable_current_modes

from k3.kernels import mx
from k3.verify.exact import cut
from k3.verify.exact import readings as readings
from k3.verify.exact.mode import ExactMode
from k3.verify.exact.number import Num, Reference
from k3.verify.exact.tensor import ExactTensor
from k3.verify.exact.tower import Tower

Attach = Callable[[nn.Module, cut.Tap], list[Any]]


@dataclass(slots=True)
class Run:
    """What one side gave: outputs by name, and its cut points."""

    outputs: dict[str, Any]
    cuts: cut.Cuts
    notes: dict[str, int] = field(default_factory=dict)
    mode: ExactMode | None = None


def is_float(x: Any) -> bool:
    """Whether an input is drawn; integers and everything else are passed as given."""
    if isinstance(x, Tensor):
        return x.is_floating_point()
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def drawn(inputs: Any, draw: Callable[[str, Any], Any], name: str = "") -> Any:
    """Inputs with every float array replaced by draw(its path, it)."""
    if isinstance(inputs, Mapping):
        return {k: drawn(v, draw, f"{name}.{k}") for k, v in inputs.items()}
    if isinstance(inputs, list | tuple) and any(is_float(x) for x in inputs):
        return [drawn(v, draw, f"{name}.{i}") for i, v in enumerate(inputs)]
    return draw(name, inputs) if is_float(inputs) else inputs


def program(
    function: Any,
    inputs: Mapping[str, Any],
    mode: ExactMode,
    attach: Attach | None = None,
    *,
    grad: bool = False,
    cuts: cut.Cuts | None = None,
) -> Run:
    """Run a module (weights from `inputs`) or a function in exact arithmetic."""

    def draw(name: str, x: Any) -> ExactTensor:
        return mode.draw(name, torch.as_tensor(x), requires_grad=grad)

    values, cuts = drawn(inputs, draw), cuts or cut.Cuts()
    handles = []
    if attach is not None and isinstance(function, nn.Module):
        handles = attach(function, cuts)
    try:
        with mode, constants_are_decoded(), torch.set_grad_enabled(grad):
            out = call(function, values)
    finally:
        for handle in handles:
            handle.remove()
    return Run(named(out), cuts, dict(mode.notes), mode)


def call(function: Any, values: Mapping[str, Any]) -> Any:
    """A function of its inputs by name; a module with `weights` in their place."""
    if not isinstance(function, nn.Module):
        return function(**values)
    rest = {k: v for k, v in values.items() if k != "weights"}
    return functional_call(function, values["weights"], (), rest)


def reference(
    function: Callable[..., Any],
    inputs: Mapping[str, Any],
    run: Reference,
    cutting: bool = False,
) -> Run:
    """Run a reference on Python integers; with cut points it is given `tap`."""

    def draw(name: str, x: Any) -> Num:
        given = x.detach().double().numpy() if isinstance(x, Tensor) else x
        return run.draw(name, given)

    cuts = cut.Cuts()
    taps = {"tap": cuts} if cutting else {}
    with np.errstate(all="ignore"):
        out = function(**drawn(inputs, draw), **taps)
    return Run(named(out), cuts, dict(run.notes))


def named(out: Any, name: str = "out") -> dict[str, Any]:
    """The arrays of a nested result by their paths."""
    if out is None:
        return {}
    if isinstance(out, Mapping):
        parts = [named(v, f"{name}.{k}") for k, v in out.items()]
    elif isinstance(out, list | tuple):
        parts = [named(v, f"{name}[{i}]") for i, v in enumerate(out)]
    else:
        return {name: out}
    return {k: v for part in parts for k, v in part.items()}


def values(x: Any, tower: Tower) -> tuple[Any, Any]:
    """Residues of level 0 and shadows of one output of either side."""
    if isinstance(x, ExactTensor):
        return x.c[0].numpy(), x.f.numpy()
    if not isinstance(x, Num):
        given = x.numpy() if isinstance(x, Tensor) else x
        x = Reference(tower).constant(given)
    return np.asarray(x.c[0]).astype(np.int64), x.f


@contextmanager
def constants_are_decoded() -> Iterator[None]:
    """Packed bytes are no values: MXFP4 decodes outside, to exact constants."""
    original = mx.decode

    def decode(*args: Any, **kwargs: Any) -> Tensor:
        with _disable_current_modes():
            return original(*args, **kwargs)

    mx.decode = decode
    try:
        yield
    finally:
        mx.decode = original
