"""Backward formulas that autograd calls by name."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from k3.verify.exact.rules.choice import where
from k3.verify.exact.rules.function import exp, gelu_inner, sigmoid
from k3.verify.exact.rules.ring import RULES as RING
from k3.verify.exact.rules.ring import add, divide, mul, sub, total
from k3.verify.exact.tensor import ExactTensor, make, words


def _sigmoid(run: Any, func: Any, g: Any, y: Any) -> ExactTensor:
    return mul(run, g, mul(run, y, sub(run, 1.0, y)))


def _tanh(run: Any, func: Any, g: Any, y: Any) -> ExactTensor:
    return mul(run, g, sub(run, 1.0, mul(run, y, y)))


def _silu(run: Any, func: Any, g: Any, x: Any) -> ExactTensor:
    s = sigmoid(run, x)
    slope = add(run, 1.0, mul(run, x, sub(run, 1.0, s)))
    return mul(run, g, mul(run, s, slope))


def _softplus(run: Any, func: Any, g: Any, x: Any, **_: Any) -> ExactTensor:
    return mul(run, g, sigmoid(run, x))


def _gelu(
    run: Any, func: Any, g: Any, x: Any, *, approximate: str = "none"
) -> ExactTensor:
    t = gelu_inner(run, x, approximate)
    if approximate == "tanh":
        slope = add(run, 1.0, mul(run, mul(run, x, x), 3 * 0.044715))
        inner = mul(run, slope, math.sqrt(2 / math.pi))
        rise = mul(run, sub(run, 1.0, mul(run, t, t)), inner)
    else:
        bell = exp(run, mul(run, mul(run, x, x), -0.5))
        rise = mul(run, bell, math.sqrt(2 / math.pi))
    flat = mul(run, add(run, 1.0, t), 0.5)
    return mul(run, g, add(run, flat, mul(run, mul(run, x, rise), 0.5)))


def _softmax(
    run: Any, func: Any, g: Any, y: Any, *, dim: int, input_dtype: Any = None
) -> ExactTensor:
    gy = mul(run, g, y)
    return sub(run, gy, mul(run, y, total(run, gy, [dim], True)))


def _embedding(run: Any, func: Any, g: Any, index: Tensor, **given: Any) -> ExactTensor:
    width, padding = g.shape[-1], given["padding_idx"]
    rows = make(
        run, g.f.reshape(-1, width), [p.reshape(-1, width) for p in g.c], g.dtype
    )
    flat = index.reshape(-1)
    if padding >= 0:
        rows = where(run, (flat != padding)[:, None], rows, 0.0)
    zero = run.lift(torch.zeros(given["num_weights"], width))
    out: ExactTensor = RING["index_add"](run, func, zero, 0, index=flat, source=rows)
    return out


def _rms_norm(
    run: Any,
    func: Any,
    g: Any,
    x: Any,
    *,
    normalized_shape: Any,
    rstd: Any,
    weight: Any,
    output_mask: Any,
) -> tuple[ExactTensor | None, ExactTensor | None]:
    inside = len(normalized_shape)
    dims = list(range(x.dim() - inside, x.dim()))
    opened = g if weight is None else mul(run, g, weight)
    unit = mul(run, x, rstd)
    summed = total(run, mul(run, opened, unit), dims, True)
    mean = divide(run, summed, math.prod(normalized_shape))
    gx = mul(run, rstd, sub(run, opened, mul(run, unit, mean)))
    if weight is None or not output_mask[1]:
        return gx, None
    outside = list(range(x.dim() - inside))
    product = mul(run, g, unit)
    return gx, total(run, product, outside) if outside else product


def _fills(name: str) -> Callable[..., Any]:
    """Factories that take a tensor as their example."""

    def rule(run: Any, func: Any, x: ExactTensor, *args: Any, **kwargs: Any) -> Any:
        dtype = kwargs.get("dtype") or x.dtype
        kept = {k: v for k, v in kwargs.items() if k in _KEPT}
        plain = func(x.f, *args, **kept)
        if not dtype.is_floating_point:
            return plain.to(dtype)
        out = run.lift(torch.zeros_like(plain) if "empty" in name else plain, dtype)
        assert out.c is not None
        return out

    return rule


_KEPT = ("memory_format", "fill_value", "stride")

LIKE = words(
    """
    zeros_like ones_like empty_like full_like new_zeros new_ones new_empty
    new_full new_empty_strided
    """
)
RULES: dict[str, Callable[..., Any]] = {
    "sigmoid_backward": _sigmoid,
    "tanh_backward": _tanh,
    "silu_backward": _silu,
    "softplus_backward": _softplus,
    "gelu_backward": _gelu,
    "_softmax_backward_data": _softmax,
    "embedding_dense_backward": _embedding,
    "_fused_rms_norm_backward": _rms_norm,
    "_assert_tensor_metadata": lambda *a, **k: None,
    **{name: _fills(name) for name in LIKE},
}
