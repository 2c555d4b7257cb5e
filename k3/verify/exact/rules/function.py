"""exp as a homomorphism, uninterpreted functions, and what is built from them."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from k3.verify.exact.rules.ring import (
    add,
    divide,
    integer_power,
    mul,
    reciprocal,
    sub,
    total,
)
from k3.verify.exact.tensor import ExactTensor, Unsupported, constant, make

UNINTERPRETED_EXP = "exp of a value without levels left: uninterpreted here"
DEAD = -1e30
"""A shadow below this is a mask: its exponential is exactly 0."""


def opaque(
    run: Any, tag: str, x: Any, shadow: Callable[[Tensor], Tensor]
) -> ExactTensor:
    """A random function of the value; a constant goes through the real one."""
    x = run.lift(x)
    if x.cell.constant:
        return constant(run, shadow(x.f), x.dtype)
    run.tower.count(tag, x.c[0])
    return make(run, shadow(x.f), run.tower.oracle(tag, x.c[0]), x.dtype)


def exp(run: Any, x: Any) -> ExactTensor:
    """e^x, one level up: exp(a + b) = exp(a) exp(b) holds exactly."""
    x = run.lift(x)
    if x.cell.constant:
        return constant(run, x.f.exp(), x.dtype)
    if x.logarithm:
        return _exp_of_log(run, x)
    residues = x.c
    run.tower.count("exp", residues[0])
    if len(residues) < 2:
        run.note(UNINTERPRETED_EXP)
        residues = run.tower.oracle("reseed", residues[0])
    c = [run.tower.power(i, residues[i + 1]) for i in range(len(residues) - 1)]
    dead = x.f < DEAD
    if bool(dead.any()):
        c = [torch.where(dead, torch.zeros_like(p), p) for p in c]
    return make(run, x.f.exp(), c, x.dtype)


def _exp_of_log(run: Any, x: ExactTensor) -> ExactTensor:
    """exp(a + log b) = exp(a) b."""
    assert x.logarithm is not None
    a, b = x.logarithm
    if any(bool(p.any()) for p in a):
        rise = exp(run, make(run, torch.zeros_like(x.f), a, x.dtype)).c
        levels = zip(run.tower.fields, rise, b, strict=False)
        b = [field.mul(p, q) for field, p, q in levels]
    dead = x.f < DEAD
    b = [torch.where(dead, torch.zeros_like(p), p) for p in b]
    return make(run, x.f.exp(), b, x.dtype)


def sigmoid(run: Any, x: Any) -> ExactTensor:
    """The logistic function, uninterpreted or through exp."""
    if run.tower.theory:
        below = add(run, exp(run, mul(run, x, -1.0)), 1.0)
        return _with_shadow(run, reciprocal(run, below), run.lift(x).f.sigmoid())
    return opaque(run, "sigmoid", x, torch.sigmoid)


def tanh(run: Any, x: Any) -> ExactTensor:
    """The hyperbolic tangent, uninterpreted or through exp."""
    if run.tower.theory:
        e = exp(run, mul(run, x, 2.0))
        out = divide(run, add(run, e, -1.0), add(run, e, 1.0))
        return _with_shadow(run, out, run.lift(x).f.tanh())
    return opaque(run, "tanh", x, torch.tanh)


def sqrt(run: Any, x: Any) -> ExactTensor:
    """The square root, uninterpreted or a power."""
    x = run.lift(x)
    if run.tower.theory and not x.cell.constant:
        powers = (run.tower.root_power(i) for i in range(x.depth))
        levels = zip(run.tower.fields, x.c, powers, strict=False)
        return make(run, x.f.sqrt(), [fl.pow(p, e) for fl, p, e in levels], x.dtype)
    return opaque(run, "sqrt", x, torch.sqrt)


def _with_shadow(run: Any, x: ExactTensor, f: Tensor) -> ExactTensor:
    """The same residues beside a shadow that does not overflow."""
    return make(run, f, x.c, x.dtype)


def rsqrt(run: Any, x: Any) -> ExactTensor:
    """1 / sqrt(x)."""
    return reciprocal(run, sqrt(run, x))


def silu(run: Any, x: Any) -> ExactTensor:
    """x sigmoid(x)."""
    return mul(run, x, sigmoid(run, x))


def shift(run: Any, x: ExactTensor, dim: int) -> ExactTensor:
    """x less its first unmasked entry: softmax stays the same without a level."""
    live = (x.f > DEAD).long().argmax(dim, keepdim=True)
    f, c = x.f.gather(dim, live), [p.gather(dim, live) for p in x.c]
    return sub(run, x, make(run, f, c, x.dtype))


def softmax(
    run: Any, x: Any, dim: int, dtype: torch.dtype | None = None
) -> ExactTensor:
    """exp(x) / sum exp(x) over an axis."""
    x = run.lift(x)
    e = exp(run, x if x.depth > 1 else shift(run, x, dim))
    out = divide(run, e, total(run, e, [dim], True))
    f = x.f.softmax(dim).nan_to_num(0.0)
    return make(run, f, out.c, dtype or x.dtype)


def _softmax(
    run: Any,
    func: Any,
    x: ExactTensor,
    dim: int,
    *,
    half_to_float: bool = False,
    dtype: torch.dtype | None = None,
) -> ExactTensor:
    return softmax(run, x, dim, torch.float32 if half_to_float else dtype)


def _exp2(run: Any, func: Any, x: ExactTensor) -> ExactTensor:
    out = exp(run, mul(run, x, math.log(2)))
    return make(run, x.f.exp2(), out.c, x.dtype)


def _pow(run: Any, func: Any, x: Any, e: Any) -> ExactTensor:
    if isinstance(e, Tensor) or not isinstance(x, ExactTensor):
        raise Unsupported(f"{func} with a tensor as exponent has no exact meaning")
    if float(e) == int(e):
        return integer_power(run, x, int(e))
    if float(2 * e) == int(2 * e):
        return integer_power(run, sqrt(run, x), int(2 * e))
    return opaque(run, f"pow{e}", x, lambda f: f**e)


def _norm(
    run: Any,
    func: Any,
    x: ExactTensor,
    ord: Any = 2,
    *,
    dim: Any = None,
    keepdim: bool = False,
    **_: Any,
) -> ExactTensor:
    if ord != 2:
        raise Unsupported(f"{func} has a rule for the 2-norm only: got {ord}")
    return sqrt(run, total(run, mul(run, x, x), dim, keepdim))


def _rms_norm(
    run: Any, func: Any, x: Any, shape: Any, *, weight: Any = None, eps: Any = None
) -> tuple[ExactTensor, ExactTensor]:
    x = run.lift(x)
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    dims = list(range(x.dim() - len(shape), x.dim()))
    n = math.prod(shape)
    mean = divide(run, total(run, mul(run, x, x), dims, True), n)
    scale = rsqrt(run, add(run, mean, eps))
    out = mul(run, x, scale)
    return (out if weight is None else mul(run, out, weight)), scale


def _gelu(run: Any, func: Any, x: Any, *, approximate: str = "none") -> ExactTensor:
    half = mul(run, x, 0.5)
    return mul(run, half, add(run, 1.0, gelu_inner(run, x, approximate)))


def gelu_inner(run: Any, x: Any, approximate: str) -> ExactTensor:
    """The tanh or erf of GELU."""
    if approximate == "tanh":
        cube = integer_power(run, x, 3)
        inner = add(run, x, mul(run, cube, 0.044715))
        return tanh(run, mul(run, inner, math.sqrt(2 / math.pi)))
    return opaque(run, "erf", mul(run, x, 2**-0.5), torch.erf)


def _named(tag: str) -> Callable[..., ExactTensor]:
    return lambda run, func, x: opaque(run, tag, x, getattr(torch, tag))


RULES: dict[str, Callable[..., Any]] = {
    "exp": lambda run, func, x: exp(run, x),
    "exp2": _exp2,
    "expm1": lambda run, func, x: sub(run, exp(run, x), 1.0),
    "sigmoid": lambda run, func, x: sigmoid(run, x),
    "tanh": lambda run, func, x: tanh(run, x),
    "silu": lambda run, func, x: silu(run, x),
    "sqrt": lambda run, func, x: sqrt(run, x),
    "rsqrt": lambda run, func, x: rsqrt(run, x),
    "pow": _pow,
    "linalg_vector_norm": _norm,
    "_fused_rms_norm": _rms_norm,
    "rms_norm": lambda run, func, *a, **k: _rms_norm(run, func, *a, **k)[0],
    "gelu": _gelu,
    "_softmax": _softmax,
    "softmax": _softmax,
    "_safe_softmax": _softmax,
    **{tag: _named(tag) for tag in ("erf", "sin", "cos")},
}
