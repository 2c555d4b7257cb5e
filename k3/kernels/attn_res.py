"""Attention residuals: each sublayer retrieves from the depth before it."""

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels import choose, precision
from k3.kernels.native import attn_res as native

MAX_TRITON_WIDTH = 16384
"""Up to this width a row stays in the registers of one program."""


def inverse_rms(x: Float[Tensor, "*B D"], eps: float) -> Float[Tensor, "*B"]:
    """1 / sqrt(mean(x^2) + eps) over the last dim: what normalizes a depth key."""
    return torch.rsqrt(x.square().mean(-1) + eps)


def mix(
    blocks: Float[Tensor, "*B S D"],
    scale: Float[Tensor, "*B S"],
    prefix: Float[Tensor, "*B D"] | None,
    query: Float[Tensor, " D"],
    eps: float,
) -> Float[Tensor, "*B D"]:
    """Eq. 9: softmax over sources of query . RMSNorm(source), applied to raw sources.

    Sources are the completed `blocks` and, where it exists, the running `prefix`;
    `scale` = inverse_rms(blocks), `query` = norm weight * projection. There is no
    1/sqrt(D). fp32 or wider throughout.
    Matches: spec.attn_res.retrieve.
    """
    if _native(blocks, scale, prefix, query):
        record = choose.recorded(blocks, scale, query, *_some(prefix))
        return native.mix(blocks, scale, prefix, query, eps, record=record)
    if _triton(blocks, scale, prefix, query):
        from k3.kernels.triton import attn_res as triton

        return triton.mix(blocks, scale, prefix, query, eps)
    scores = (blocks @ query) * scale
    if prefix is None:
        p = torch.softmax(scores, -1)
        return (p.unsqueeze(-2) @ blocks).squeeze(-2)
    last = (prefix @ query) * inverse_rms(prefix, eps)
    p = torch.softmax(torch.cat([scores, last.unsqueeze(-1)], -1), -1)
    past = (p[..., :-1].unsqueeze(-2) @ blocks).squeeze(-2)
    return torch.addcmul(past, p[..., -1:], prefix)


def _native(
    blocks: Tensor, scale: Tensor, prefix: Tensor | None, query: Tensor
) -> bool:
    tensors = blocks, scale, query, *_some(prefix)
    return (
        choose.operation(*tensors)
        and all(x.dtype == torch.float32 for x in tensors)
        and 0 < blocks.shape[-2] <= native.MAX_BLOCKS
    )


def _triton(
    blocks: Tensor, scale: Tensor, prefix: Tensor | None, query: Tensor
) -> bool:
    tensors = blocks, scale, query, *_some(prefix)
    fits = blocks.shape[-2] > 0 and blocks.shape[-1] <= MAX_TRITON_WIDTH
    return fits and choose.triton(*tensors, dtypes=choose.SINGLE)


def _some(prefix: Tensor | None) -> tuple[Tensor, ...]:
    return () if prefix is None else (prefix,)


def fold_query(
    norm_weight: Float[Tensor, " D"], proj_weight: Float[Tensor, "1 D"]
) -> Float[Tensor, " D"]:
    """The depth query: the key norm's weight folds into the projection."""
    return precision.wide(norm_weight) * precision.wide(proj_weight)[0]
