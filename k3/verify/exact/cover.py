"""Weights that never reached the output: an exact backward pass finds them."""

from collections.abc import Mapping
from typing import Any

import torch

from k3.verify.exact import run
from k3.verify.exact.mode import ExactMode
from k3.verify.exact.report import Report
from k3.verify.exact.tensor import ExactTensor, Unsupported
from k3.verify.exact.tower import Tower


def untested(
    program: Any, inputs: Mapping[str, Any], report: Report
) -> dict[str, tuple[int, int]] | None:
    """Entries with gradient zero of each drawn input, and its size.

    None where an operation of the backward pass has no rule; the report says which.
    """
    mode = ExactMode(Tower(31, 2, 0))
    values: dict[str, ExactTensor] = {}

    def draw(name: str, x: Any) -> ExactTensor:
        made = mode.draw(name, torch.as_tensor(x), requires_grad=True)
        values[name.removeprefix(".")] = made
        return made

    given = run.drawn(inputs, draw)
    try:
        with mode, run.constants_are_decoded(), torch.enable_grad():
            outputs = run.named(run.call(program, given))
            grads = gradients(list(outputs.values()), list(values.values()))
    except (Unsupported, RuntimeError) as error:
        report.notes[f"coverage not measured: {error}"] = 1
        return None
    return {
        name: (x.numel() if g is None else _zeros(g), x.numel())
        for (name, x), g in zip(values.items(), grads, strict=True)
    }


def gradients(outputs: list[Any], inputs: list[Any]) -> list[Any]:
    """Gradients of a random combination of all entries of the outputs."""
    live = [y for y in outputs if isinstance(y, ExactTensor) and y.requires_grad]
    shake = [y.run.draw(f"shake.{i}", y.f).to(y.dtype) for i, y in enumerate(live)]
    return list(torch.autograd.grad(live, inputs, shake, allow_unused=True))


def _zeros(g: Any) -> int:
    return int((g.c[0] == 0).sum())
