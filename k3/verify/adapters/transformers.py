"""transformers' Kimi-Linear: its KDA functions and its attention over written-out keys.

KDA has tokens [B T H .] and state [B H K V] and scales the query itself; attention has
[B H T .] and an additive mask. Source: transformers 5.24, models/kimi_linear.
"""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor


def memory(function: Callable[..., Any]) -> Callable[..., Any]:
    """recurrent_kimi_delta_attention or chunk_kimi_delta_attention as ours."""

    def call(
        q: Tensor, k: Tensor, v: Tensor, g: Tensor, *, beta: Tensor, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        out, final = function(
            (q * math.sqrt(q.shape[-1]))[None],
            k[None],
            v[None],
            g=g[None],
            beta=beta[None],
            initial_state=state.transpose(-1, -2)[None],
            output_final_state=True,
        )
        return out[0], final[0].transpose(-1, -2)

    return call


def attention(function: Callable[..., Any]) -> Callable[..., Any]:
    """eager_attention_forward(module, query, key, value, mask, scaling) as ours."""

    def call(q: Tensor, W: Tensor, latents: Tensor, shared: Tensor) -> Tensor:
        content = q.shape[-1] - shared.shape[-1]
        H, T, S = len(W), q.shape[1], len(latents)
        flat = shared.expand(H, *shared.shape)
        keys = torch.cat([latents @ W[:, :content].mT, flat], -1)
        values = latents @ W[:, content:].mT
        unseen = torch.ones(T, S, dtype=torch.bool).triu(S - T + 1)
        mask = torch.zeros(T, S, dtype=q.dtype).masked_fill(unseen, -torch.inf)
        module = SimpleNamespace(num_key_value_groups=1, training=False)
        scale = q.shape[-1] ** -0.5
        given = (q[None], keys[None], values[None], mask[None, None])
        out, _ = function(module, *given, scaling=scale)
        return out[0].transpose(0, 1)

    return call


OPERATORS = {
    "kda.recurrent": memory,
    "kda.chunk": memory,
    "mla.expanded": attention,
}
