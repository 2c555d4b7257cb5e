"""scaled_dot_product_attention as its definition, whatever kernel torch would take."""

from collections.abc import Callable
from typing import Any

import torch

from k3.verify.exact.rules.choice import where
from k3.verify.exact.rules.function import softmax
from k3.verify.exact.rules.matrix import matmul, transpose
from k3.verify.exact.rules.ring import add, mul, sub, total
from k3.verify.exact.tensor import ExactTensor, Unsupported


def weights(
    run: Any, q: Any, k: Any, *, is_causal: bool, attn_mask: Any, scale: Any
) -> ExactTensor:
    """softmax(q k^T scale + mask), rows of queries."""
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    scores = mul(run, matmul(run, q, transpose(run, k)), factor)
    if is_causal:
        shape = (q.shape[-2], k.shape[-2])
        attn_mask = torch.ones(shape, dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = where(run, attn_mask, scores, -torch.inf)
    elif attn_mask is not None:
        scores = add(run, scores, attn_mask)
    return softmax(run, scores, -1)


def _forward(
    run: Any,
    func: Any,
    q: Any,
    k: Any,
    *,
    value: Any,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: Any = None,
    scale: Any = None,
) -> tuple[ExactTensor, ExactTensor]:
    _refuse_dropout(func, dropout_p)
    p = weights(run, q, k, is_causal=is_causal, attn_mask=attn_mask, scale=scale)
    # Only the kernel's own backward pass reads the log-sum-exp.
    unused = run.lift(torch.zeros(q.shape[:-1]))
    return matmul(run, p, value), unused


def _backward(
    run: Any,
    func: Any,
    g: Any,
    q: Any,
    *,
    key: Any,
    value: Any,
    is_causal: bool,
    attn_mask: Any = None,
    scale: Any = None,
    **_: Any,
) -> tuple[ExactTensor, ExactTensor, ExactTensor]:
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    p = weights(run, q, key, is_causal=is_causal, attn_mask=attn_mask, scale=scale)
    gp = matmul(run, g, transpose(run, value))
    inner = total(run, mul(run, gp, p), [-1], True)
    gs = mul(run, mul(run, p, sub(run, gp, inner)), factor)
    gq, gk = matmul(run, gs, key), matmul(run, transpose(run, gs), q)
    return gq, gk, matmul(run, transpose(run, p), g)


def _math(
    run: Any,
    func: Any,
    q: Any,
    k: Any,
    *,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    **_: Any,
) -> tuple[ExactTensor, ExactTensor]:
    _refuse_dropout(func, dropout_p)
    p = weights(run, q, k, is_causal=is_causal, attn_mask=attn_mask, scale=scale)
    return matmul(run, p, value), p


def _refuse_dropout(func: Any, dropout_p: float) -> None:
    if dropout_p:
        raise Unsupported(f"{func} with dropout has no exact meaning: got {dropout_p}")


RULES: dict[str, Callable[..., Any]] = {
    "_scaled_dot_product_flash_attention_for_cpu": _forward,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _backward,
    "_scaled_dot_product_attention_math": _math,
    "scaled_dot_product_attention": lambda *a, **k: _math(*a, **k)[0],
}
