"""Logarithms: x + log(y) keeps y, so that exp of it is exp(x) y exactly.

Its residues are x plus a random function of y with log(1/y) = -log(y): log(a) + log(b)
is not known to be log(ab), but both have the same exponential.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from k3.verify.exact.rules import ring
from k3.verify.exact.rules.function import exp
from k3.verify.exact.tensor import ExactTensor, constant, make, make_log


def log(run: Any, x: Any) -> ExactTensor:
    """The natural logarithm."""
    x = run.lift(x)
    if x.cell.constant:
        return constant(run, x.f.log(), x.dtype)
    field, residues = run.tower.fields[0], x.c
    run.tower.count("log", residues[0])
    up = run.tower.oracle("log", residues[0])
    down = run.tower.oracle("log", field.inv(residues[0]))
    levels = zip(run.tower.fields, up, down, strict=True)
    out = make(run, x.f.log(), [fl.sub(u, v) for fl, u, v in levels], x.dtype)
    return make_log(out, [torch.zeros_like(p) for p in residues], residues)


def log_sum_exp(run: Any, x: ExactTensor, dim: Any, keepdim: bool) -> ExactTensor:
    """log of the sum of exponentials over axes."""
    dims = list(dim) if isinstance(dim, list | tuple) else [dim]
    out = log(run, ring.total(run, exp(run, x), dims, keepdim))
    out.f = x.f.logsumexp(dims, keepdim)
    return out


def softplus(run: Any, x: Any) -> ExactTensor:
    """log(1 + exp(x))."""
    x = run.lift(x)
    out = log(run, ring.add(run, exp(run, x), 1.0))
    out.f = torch.nn.functional.softplus(x.f)
    return out


def _logaddexp(run: Any, func: Any, a: Any, b: Any) -> ExactTensor:
    out = log(run, ring.add(run, exp(run, a), exp(run, b)))
    out.f = torch.logaddexp(run.lift(a).f, run.lift(b).f)
    return out


def _log_softmax(
    run: Any, func: Any, x: Any, dim: int, *, half_to_float: bool = False
) -> ExactTensor:
    out = ring.sub(run, x, log_sum_exp(run, x, dim, True))
    out.f = x.f.log_softmax(dim)
    return out


def _log_softmax_backward(
    run: Any, func: Any, g: Any, y: Any, *, dim: int, input_dtype: Any = None
) -> ExactTensor:
    summed = ring.total(run, g, [dim], True)
    return ring.sub(run, g, ring.mul(run, exp(run, y), summed))


def _softplus(run: Any, func: Any, x: Any, *_: Any, **__: Any) -> ExactTensor:
    return softplus(run, x)


def _nll(
    run: Any,
    func: Any,
    x: ExactTensor,
    target: Tensor,
    *,
    weight: Any = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> tuple[ExactTensor, ExactTensor]:
    kept = target != ignore_index
    at = target.where(kept, 0)
    rows = torch.arange(len(at))
    chosen = ring.each(run, x, x.f[rows, at], lambda _, p: p[rows, at])
    factor = -kept.double() / (kept.sum() if reduction == 1 else 1)
    losses = ring.mul(run, chosen, factor)
    out = losses if reduction == 0 else ring.total(run, losses)
    return out, run.lift(kept.sum().double())


def _nll_backward(
    run: Any, func: Any, g: Any, x: Any, *, target: Tensor, **given: Any
) -> ExactTensor:
    kept = target != given["ignore_index"]
    mark = torch.zeros(x.shape, dtype=torch.float64)
    mark[torch.arange(len(target)), target.where(kept, 0)] = -kept.double()
    mark = mark / kept.sum() if given["reduction"] == 1 else mark
    column = run.lift(g)
    if given["reduction"] == 0:
        column = ring.each(run, column, column.f[:, None], lambda _, p: p[:, None])
    return ring.mul(run, column, mark)


RULES: dict[str, Callable[..., Any]] = {
    "log": lambda run, func, x: log(run, x),
    "log1p": lambda run, func, x: log(run, ring.add(run, x, 1.0)),
    "logsumexp": lambda run, func, x, dim, keepdim=False: log_sum_exp(
        run, x, dim, keepdim
    ),
    "logaddexp": _logaddexp,
    "softplus": _softplus,
    "_log_softmax": _log_softmax,
    "_log_softmax_backward_data": _log_softmax_backward,
    "nll_loss_forward": _nll,
    "nll_loss_backward": _nll_backward,
}
