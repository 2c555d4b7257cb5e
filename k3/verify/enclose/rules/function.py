"""Functions: how far the value moves over a ball, and what the library may add."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from k3.verify.enclose.ball import Ball, Unsupported
from k3.verify.enclose.rounding import gamma
from k3.verify.enclose.rules.ring import axes, mul, square, sub

SILU_SLOPE = 1.1
"""The largest slope of x sigmoid(x) is 1.0998."""
GELU_SLOPE = 1.13
"""The largest slope of both forms of GELU is 1.129."""


def logistic_spread(x: Tensor, r: Tensor) -> Tensor:
    """How far sigmoid moves: at most s(x) s(-x) (e^r - 1), and at most 1."""
    return (x.sigmoid() * (-x).sigmoid() * torch.expm1(r)).clamp(max=1.0)


def exp(run: Any, x: Any) -> Ball:
    """e^x."""
    x = run.lift(x)
    m = x.m.exp()
    dead = (x.m == -math.inf) & (x.r == 0)
    r = torch.where(dead, 0.0, m * torch.expm1(x.r) + run.rounding.tiny(x.dtype))
    return run.out(m, r, x.dtype, run.rounding.library(x.dtype), least=0.0)


def sigmoid(run: Any, x: Any) -> Ball:
    """1 / (1 + e^-x)."""
    x = run.lift(x)
    r, rel = logistic_spread(x.m, x.r), run.rounding.library(x.dtype)
    return run.out(x.m.sigmoid(), r, x.dtype, rel, least=0.0)


def tanh(run: Any, x: Any) -> Ball:
    """2 sigmoid(2 x) - 1."""
    x = run.lift(x)
    r = (2 * logistic_spread(2 * x.m, 2 * x.r)).clamp(max=2.0)
    return run.out(x.m.tanh(), r, x.dtype, run.rounding.library(x.dtype))


def rsqrt(run: Any, x: Any) -> Ball:
    """1 / sqrt(x), unknown where x may be zero."""
    x = run.lift(x)
    low = torch.maximum(x.m - x.r, torch.full_like(x.m, x.least))
    m = x.m.rsqrt()
    r = torch.where(low > 0, low.clamp_min(1e-300).rsqrt() - m, math.inf)
    return run.out(m, r.clamp_min(0.0), x.dtype, run.rounding.library(x.dtype))


def sqrt(run: Any, x: Any) -> Ball:
    """The square root: it moves by at most sqrt(r), and r / (sqrt(low) + sqrt(m))."""
    x = run.lift(x)
    low, m = (x.m - x.r).clamp_min(max(0.0, x.least)).sqrt(), x.m.clamp_min(0).sqrt()
    r = torch.where(x.r > 0, torch.minimum(x.r.sqrt(), x.r / (low + m)), 0.0)
    return run.out(m, r, x.dtype, run.rounding.library(x.dtype), least=0.0)


def _sloped(
    op: Callable[..., Tensor], slope: float, ulps: int = 2
) -> Callable[..., Ball]:
    """A function whose slope is bounded; its parts are library functions."""

    def rule(run: Any, func: Any, x: Any, **given: Any) -> Ball:
        x = run.lift(x)
        rel = ulps * run.rounding.library(x.dtype)
        return run.out(op(x.m, **given), slope * x.r, x.dtype, rel)

    return rule


def _gelu(run: Any, func: Any, x: Any, *, approximate: str = "none") -> Ball:
    x = run.lift(x)
    m = torch.nn.functional.gelu(x.m, approximate=approximate)
    # 1 + erf cancels for negative x: the error is relative to |x|, not to the value.
    lost = 2 * run.rounding.library(x.dtype) * (x.m.abs() + x.r)
    return run.out(m, GELU_SLOPE * x.r + lost, x.dtype)


def _softplus(run: Any, func: Any, x: Any, **given: Any) -> Ball:
    if given:
        raise Unsupported(f"{func}: balls know softplus without options: got {given}")
    x = run.lift(x)
    m = torch.nn.functional.softplus(x.m)
    # Torch returns x itself above 20.
    cut = torch.where(x.m + x.r > 20, math.exp(-20), 0.0)
    return run.out(m, x.r + cut, x.dtype, 2 * run.rounding.library(x.dtype))


def softmax(run: Any, x: Any, dim: int, dtype: torch.dtype | None = None) -> Ball:
    """Softmax: with all scores within e, a weight moves by at most e^(2 e) - 1."""
    x, claimed = run.lift(x), dtype or x.dtype
    m, live = x.m.softmax(dim).nan_to_num(0.0), x.m != -math.inf
    centre = torch.where(live, x.m, x.m.amax(dim, keepdim=True))
    span = centre.amax(dim, keepdim=True) - centre.amin(dim, keepdim=True)
    u = run.rounding.wide(claimed)
    e = torch.where(live, x.r, 0.0).amax(dim, keepdim=True) + u * span
    rel = 2 * gamma(x.shape[dim], u) + 3 * run.rounding.library(claimed)
    r = m * torch.expm1(2 * e + rel) + run.rounding.tiny(claimed)
    r = torch.where(live, r.clamp(max=1.0), 0.0)
    return run.out(m, r, claimed, least=0.0)


def _softmax(
    run: Any,
    func: Any,
    x: Any,
    dim: int,
    *,
    half_to_float: bool = False,
    dtype: torch.dtype | None = None,
) -> Ball:
    return softmax(run, x, dim, torch.float32 if half_to_float else dtype)


def _logsumexp(run: Any, func: Any, x: Any, dim: Any, *, keepdim: bool = False) -> Ball:
    x = run.lift(x)
    dims, u = axes(x, dim), run.rounding.wide(x.dtype)
    m = x.m.logsumexp(dims, keepdim)
    live = x.m != -math.inf
    top = torch.where(live, x.m.abs() + x.r, 0.0).amax(dims, keepdim)
    n = math.prod(x.shape[d] for d in dims)
    # Beyond 104 less than the largest an exponential is zero in fp32.
    lost = gamma(n, u) + 2 * run.rounding.library(x.dtype) + u * (104 + 2 * top)
    carried = torch.where(live, x.r, 0.0).amax(dims, keepdim)
    dead = m == -math.inf
    return run.out(m, torch.where(dead, 0.0, carried + lost), x.dtype)


def _logaddexp(run: Any, func: Any, a: Any, b: Any) -> Ball:
    x, y = run.lift(a), run.lift(b)
    both = Ball(run, torch.stack([x.m, y.m]), torch.stack([x.r, y.r]), x.dtype)
    return _logsumexp(run, func, both, 0)


def _rms_norm(
    run: Any, func: Any, x: Any, shape: Any, *, weight: Any = None, eps: Any = None
) -> tuple[Ball, Ball]:
    """x / R with R = sqrt(mean x^2 + eps) moves by (r + |y| RMS(r)) / min R.

    RMS is a norm, so R moves by at most RMS(r) while x does: no interval for the sum
    of squares is needed, and R >= sqrt(eps).
    """
    x = run.lift(x)
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    dims = list(range(x.dim() - len(shape), x.dim()))
    n, u = math.prod(shape), run.rounding.wide(x.dtype)
    R = (x.m.square().mean(dims, True) + eps).sqrt()
    moved = x.r.square().mean(dims, True).sqrt()
    rel = gamma(n + 4, u) + 2 * run.rounding.library(x.dtype)
    # The fused kernel gets eps in fp32.
    rel = rel + 2.0**-24 * eps / R.square()
    low = torch.maximum((R - moved) * (1 - 2 * u), torch.full_like(R, eps**0.5))
    y = x.m / R
    out = run.out(y, (x.r + y.abs() * moved) / low, x.dtype, rel)
    scale = run.out(1 / R, moved / (R * low), x.dtype, rel)
    return (out if weight is None else mul(run, out, weight)), scale


def _norm(
    run: Any,
    func: Any,
    x: Any,
    ord: Any = 2,
    *,
    dim: Any = None,
    keepdim: bool = False,
    **_: Any,
) -> Ball:
    if ord != 2:
        raise Unsupported(f"{func} has a rule for the 2-norm only: got {ord}")
    x = run.lift(x)
    dims = axes(x, dim)
    n = math.prod(x.shape[d] for d in dims)
    m = x.m.square().sum(dims, keepdim).sqrt()
    moved = x.r.square().sum(dims, keepdim).sqrt()
    rel = gamma(n + 2, run.rounding.wide(x.dtype)) + run.rounding.library(x.dtype)
    return run.out(m, moved, x.dtype, rel, least=0.0)


def power(run: Any, base: float, x: Any) -> Ball:
    """base^x of a positive number and a ball."""
    x = run.lift(x)
    m = base**x.m
    r = m * torch.expm1(abs(math.log(base)) * x.r)
    rel = run.rounding.library(x.dtype) + 2.0**-50 * abs(math.log(base)) * x.m.abs()
    return run.out(m, r, x.dtype, rel, least=0.0)


def _pow(run: Any, func: Any, x: Any, exponent: Any) -> Ball:
    """x^2, x^3, or a positive number to the power of a ball."""
    if not isinstance(x, Tensor) and float(x) > 0:
        return power(run, float(x), exponent)
    if exponent == 2:
        return square(run, x)
    if exponent == 3:
        return mul(run, square(run, x), x)
    raise Unsupported(f"{func}: balls have the powers 2 and 3 only: got {exponent}")


def _wave(op: Callable[[Tensor], Tensor]) -> Callable[..., Ball]:
    def rule(run: Any, func: Any, x: Any) -> Ball:
        x = run.lift(x)
        # The library errs relative to its value or, near a zero, to the argument.
        rel = run.rounding.library(x.dtype)
        lost = rel + 2.0**-52 * x.m.abs()
        return run.out(op(x.m), x.r.clamp(max=2.0) + lost, x.dtype, rel)

    return rule


RULES: dict[str, Callable[..., Any]] = {
    "exp": lambda run, func, x: exp(run, x),
    "pow": _pow,
    "expm1": lambda run, func, x: sub(run, exp(run, x), 1.0),
    "sigmoid": lambda run, func, x: sigmoid(run, x),
    "tanh": lambda run, func, x: tanh(run, x),
    "rsqrt": lambda run, func, x: rsqrt(run, x),
    "sqrt": lambda run, func, x: sqrt(run, x),
    "silu": _sloped(torch.nn.functional.silu, SILU_SLOPE),
    "softplus": _softplus,
    "gelu": _gelu,
    "_softmax": _softmax,
    "softmax": _softmax,
    "_safe_softmax": _softmax,
    "logsumexp": _logsumexp,
    "logaddexp": _logaddexp,
    "linalg_vector_norm": _norm,
    "_fused_rms_norm": _rms_norm,
    "rms_norm": lambda run, func, *a, **k: _rms_norm(run, func, *a, **k)[0],
    "sin": _wave(torch.sin),
    "cos": _wave(torch.cos),
}
