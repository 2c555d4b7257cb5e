"""scaled_dot_product_attention, whatever kernel torch would take."""

from collections.abc import Callable
from typing import Any

import torch

from k3.verify.enclose.ball import Ball, Unsupported
from k3.verify.enclose.rules.choice import RULES as CHOICE
from k3.verify.enclose.rules.function import softmax
from k3.verify.enclose.rules.matrix import matmul, transpose
from k3.verify.enclose.rules.ring import add, cast, mul

BLOCK = 32
"""A kernel takes at least so many keys at once, and rescales between blocks."""


def _attend(
    run: Any, q: Any, k: Any, *, is_causal: bool, attn_mask: Any, scale: Any
) -> Ball:
    """softmax(q k^T scale + mask): products and softmax in fp32 or wider."""
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    wide = torch.float32 if q.dtype in (torch.bfloat16, torch.float16) else q.dtype
    q, k = (cast(run, x, wide) for x in (q, k))
    scores = mul(run, matmul(run, q, transpose(run, k)), factor)
    if is_causal:
        shape = (q.shape[-2], k.shape[-2])
        attn_mask = torch.ones(shape, dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        hidden = ~attn_mask
        scores = CHOICE["masked_fill"](run, None, scores, hidden, value=-torch.inf)
    elif attn_mask is not None:
        scores = add(run, scores, attn_mask)
    p = softmax(run, scores, -1)
    extra = (2 + k.shape[-2] // BLOCK) * run.rounding.library(wide)
    return run.out(p.m, p.r + extra * (p.m + p.r), wide)


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
) -> tuple[Ball, Ball]:
    if dropout_p:
        raise Unsupported(f"{func} with dropout has no ball: got {dropout_p}")
    p = _attend(run, q, k, is_causal=is_causal, attn_mask=attn_mask, scale=scale)
    # A kernel may round the weights to the dtype of the values.
    weights = cast(run, p, value.dtype)
    return matmul(run, weights, value), run.lift(torch.zeros(q.shape[:-1]))


RULES: dict[str, Callable[..., Any]] = {
    "_scaled_dot_product_flash_attention_for_cpu": _math,
    "_scaled_dot_product_attention_math": _math,
    "scaled_dot_product_attention": lambda *a, **k: _math(*a, **k)[0],
}
