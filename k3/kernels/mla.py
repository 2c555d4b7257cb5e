"""Gated MLA's attention: expanded over keys and values, absorbed over latent rows."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from k3.kernels import choose, precision, segments
from k3.kernels.native import mla as native

WORKSPACE_TOKENS = 8192
"""Context rows that one pass of attention looks at; passes are merged after it."""

LOGIT_ROWS = 512
"""Queries whose logits are written out at once, where the largest is asked for."""


def attend(
    q: Float[Tensor, "B H T dim"],
    k: Float[Tensor, "B H S dim"],
    v: Float[Tensor, "B H S V"],
    scale: float,
    workspace: int | None = None,
) -> Float[Tensor, "B H T V"]:
    """Causal attention of the last T of S tokens, softmax in fp32 or wider.

    Query t sees keys 0 .. S - T + t. A context longer than `workspace` goes in
    passes that are merged by their log-sum-exp, so memory is bounded.
    Matches: spec.mla.attend.
    """
    T, S = q.shape[2], k.shape[2]
    workspace = workspace or WORKSPACE_TOKENS
    if S > max(workspace, T):

        def read(start: int, stop: int) -> tuple[Tensor, Tensor]:
            return k[:, :, start:stop], v[:, :, start:stop]

        return attend_in_passes(q, read, S, scale, workspace)
    if v.shape[-1] < q.shape[-1]:
        # Equal widths take the flash path, several times faster than unequal ones.
        padded = F.pad(v, (0, q.shape[-1] - v.shape[-1]))
        return attend(q, k, padded, scale, workspace)[..., : v.shape[-1]]
    if T == S:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    seen = torch.ones(T, S, dtype=torch.bool, device=q.device).tril(S - T)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=scale)


def attend_heads(
    q: Float[Tensor, "B H T dim"],
    kv: Float[Tensor, "B S H both"],
    shared: Float[Tensor, "B S rope"],
    scale: float,
) -> Float[Tensor, "B H T V"]:
    """`attend` over what kv_b_proj made of the latents, and the shared keys."""
    alike = q.dtype == kv.dtype == shared.dtype
    if alike and choose.native(q, kv, shared) and not choose.recorded(q, kv, shared):
        return native.attend(q.transpose(1, 2), kv, shared, scale).transpose(1, 2)
    return attend(q, *heads(kv, shared, q.shape[-1]), scale)


def heads(
    kv: Float[Tensor, "B S H both"], shared: Float[Tensor, "B S rope"], dim: int
) -> tuple[Float[Tensor, "B H S dim"], Float[Tensor, "B H S V"]]:
    """Every head's keys, ending with the shared ones, and its values."""
    kv, nope = kv.transpose(1, 2), dim - shared.shape[-1]
    shared = shared[:, None].expand(-1, kv.shape[1], -1, -1)
    return torch.cat([kv[..., :nope], shared], -1), kv[..., nope:]


def partial(
    q: Float[Tensor, "*B T dim"],
    k: Float[Tensor, "*#B S dim"],
    v: Float[Tensor, "*#B S V"],
    scale: float,
    seen: Tensor | None = None,
) -> tuple[Float[Tensor, "*B T V"], Float[Tensor, "*B T"]]:
    """Attention over one part of the context: (output, log-sum-exp of its scores).

    `seen` is True where attention is allowed. A query that sees nothing gives
    output 0 and log-sum-exp -inf, even where v holds NaN. Heads may share k and v.
    """
    scores = precision.wide(q @ k.mT) * scale
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    lse = torch.logsumexp(scores, -1)
    p = torch.exp(scores - lse.masked_fill(lse == -torch.inf, 0)[..., None])
    out = precision.wide(p.to(v.dtype) @ v)
    return out.masked_fill((lse == -torch.inf)[..., None], 0), lse


@torch.no_grad()
def largest_logits(
    q: Float[Tensor, "B H T dim"],
    k: Float[Tensor, "B H S dim"],
    scale: float,
    limit: float,
) -> Float[Tensor, " H"]:
    """The largest causal logit of every head that passes `limit`; of others a bound.

    The T queries are the last of S tokens. |q| |k| holds for all logits of a head, and
    most often tells that none passes.
    """
    bound = q.norm(dim=-1).amax((0, 2)) * k.norm(dim=-1).amax((0, 2)) * scale
    largest, earlier = bound.clone(), k.shape[2] - q.shape[2]
    for h in (bound > limit).nonzero()[:, 0].tolist():
        tops = []
        for start in range(0, q.shape[2], LOGIT_ROWS):
            rows = q[:, h, start : start + LOGIT_ROWS]
            first = earlier + start
            stop = first + rows.shape[1]
            scores = precision.wide(rows @ k[:, h, :stop].mT)
            seen = torch.ones(scores.shape[1:], dtype=torch.bool, device=q.device)
            tops.append(scores.masked_fill(~seen.tril(first), -torch.inf).amax())
        largest[h] = torch.stack(tops).amax() * scale
    return largest


def merge(
    a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]
) -> tuple[Float[Tensor, "*B T V"], Float[Tensor, "*B T"]]:
    """Join attention over two parts of a context: weights exp(lse) of each."""
    lse = torch.logaddexp(a[1], b[1])
    base = lse.masked_fill(lse == -torch.inf, 0)
    # A part without weight adds nothing, whatever its buffer holds.
    left, right = (
        torch.where(s[..., None] > -torch.inf, o, 0) * torch.exp(s - base)[..., None]
        for o, s in (a, b)
    )
    return left + right, lse


def attend_in_passes(
    q: Float[Tensor, "B H T dim"],
    read: Callable[[int, int], tuple[Tensor, Tensor]],
    num_keys: int,
    scale: float,
    workspace: int | None = None,
) -> Float[Tensor, "B H T V"]:
    """Causal attention over a context read in passes: `read(start, stop)` -> (k, v).

    Only one pass of keys and values exists at a time; parts are merged by their
    log-sum-exp. The T queries are the last of the `num_keys` tokens.
    """
    T, workspace = q.shape[2], workspace or WORKSPACE_TOKENS
    query = torch.arange(num_keys - T, num_keys, device=q.device)
    result: tuple[Tensor, Tensor] | None = None
    for start in range(0, num_keys, workspace):
        stop = min(start + workspace, num_keys)
        seen = None
        if stop > num_keys - T + 1:
            position = torch.arange(start, stop, device=q.device)
            seen = position <= query[:, None]
        part = partial(q, *read(start, stop), scale, seen)
        result = part if result is None else merge(result, part)
    assert result is not None
    return result[0].to(q.dtype)


def absorbed(
    q: Float[Tensor, "B H T row"],
    rows: Float[Tensor, "P page row"],
    table: Int[Tensor, "B M"] | None,
    lens: tuple[int, ...],
    *,
    latent_dim: int,
    scale: float,
) -> Float[Tensor, "B H T latent"]:
    """Attention over cached rows [latent | shared key]: weighted latents.

    `rows` is a pool of pages, `table` the pages of each sequence in order (None:
    page b is all of sequence b), `lens` the tokens of each, the T queries being
    the last of them. Every head reads the same rows, so a token costs `row` scalars.
    Matches: spec.mla.absorbed (fp32 1e-5 relative).
    """
    if table is None and segments.level(lens):
        return _over_rows(q, rows[:, : lens[0]], latent_dim, scale)
    outs = []
    for b, n in enumerate(lens):
        pages = rows[b : b + 1] if table is None else rows[table[b]].flatten(0, 1)[None]
        outs.append(_over_rows(q[b : b + 1], pages[:, :n], latent_dim, scale))
    return torch.cat(outs)


def _over_rows(
    q: Float[Tensor, "B H T row"],
    row: Float[Tensor, "B S row"],
    latent_dim: int,
    scale: float,
) -> Float[Tensor, "B H T latent"]:
    T, S = q.shape[2], row.shape[1]
    if S > WORKSPACE_TOKENS:

        def read(start: int, stop: int) -> tuple[Tensor, Tensor]:
            keys = row[:, None, start:stop]
            return keys, keys[..., :latent_dim]

        return attend_in_passes(q, read, S, scale)
    # One product for all heads: they read the same rows.
    scores = precision.wide(q.flatten(1, 2) @ row.mT).mul(scale)
    if T > 1:
        seen = torch.ones(T, S, dtype=torch.bool, device=q.device).tril(S - T)
        scores = scores.unflatten(1, q.shape[1:3]).masked_fill(~seen, -torch.inf)
        scores = scores.flatten(1, 2)
    p = torch.softmax(scores, -1).to(row.dtype)
    return (p @ row[..., :latent_dim]).unflatten(1, q.shape[1:3])
