"""Bytes that one rank sends to others in one training step, by formula.

A forward and a backward pass of every micro-batch; under "recompute" what a forward
pass sends is sent once more. Rings: an all-gather or a reduce-scatter of n bytes over
R ranks sends n (R - 1) / R of them.
"""

from collections.abc import Sequence

from k3.config import TextConfig, sizes
from k3.parallel.layout import Chunk

FP32 = 4


def weights(
    trunk: tuple[int, int], experts: tuple[int, int], micros: int, zero: int, b: int
) -> int:
    """FSDP's gathers and reductions of (parameters, ranks) of trunk and experts.

    ZeRO-3 gathers before a forward and before a backward pass, ZeRO-2 once a step;
    both reduce gradients in fp32 after every backward pass.
    """
    ring = sum(n * (ranks - 1) // ranks for n, ranks in (trunk, experts))
    gathers = 2 * micros if zero == 3 else 1
    return ring * (gathers * b + micros * FP32)


def expert_rows(text: TextConfig, tokens: int, ranks: int, b: int) -> int:
    """One pass of one layer: rows to their experts and back, under even choices."""
    slots = tokens * text.num_experts_per_token
    return 2 * slots * text.routed_expert_hidden_size * b * (ranks - 1) // ranks


def expert_counts(text: TextConfig, ranks: int) -> int:
    """One pass of one layer: every rank tells the others its counts."""
    return (ranks - 1) * text.num_experts * 4


def expert_copies(text: TextConfig, copies: int, b: int) -> int:
    """One layer, there and back: weights of fetched experts, and their gradients."""
    return copies * sizes.expert(text) * 2 * b


def summaries(text: TextConfig, ranks: int, wide: int = FP32) -> tuple[int, int]:
    """KDA, one layer, (forward, backward): no matter how many tokens there are."""
    linear = text.linear_attn_config
    H, K, V = linear.num_heads, linear.head_dim, linear.v_dim
    return (ranks - 1) * H * (K + V) * K * wide, (ranks - 1) * H * V * K * wide


def window(text: TextConfig, b: int) -> int:
    """KDA, one layer, one way: the last inputs of the convolution, to one neighbour."""
    return text.conv_window_scalars * b


def latent_rows(text: TextConfig, tokens: int, ranks: int, b: int) -> int:
    """MLA, one layer, one way, the first rank: its rows, to all that come after it."""
    return (ranks - 1) * tokens * text.mla_row_scalars * b


def context(
    text: TextConfig, layers: Sequence[int], tokens: int, ranks: int, b: int
) -> tuple[int, int]:
    """(forward, backward) of these layers over one row of `tokens` local tokens."""
    if ranks == 1:
        return 0, 0
    there, back = summaries(text, ranks)
    near, rows = window(text, b), latent_rows(text, tokens, ranks, b)
    mla = sum(text.is_mla(i) for i in layers)
    kda = len(layers) - mla
    return kda * (there + near) + mla * rows, kda * (back + near) + mla * rows


def stages(text: TextConfig, chunks: Sequence[Chunk], tokens: int, b: int) -> int:
    """One micro-batch: new depth blocks in fp32 and the running sum, there and back."""
    D = text.hidden_size
    there = sum(c.sent * D * FP32 + D * b for c in chunks if not c.last)
    back = sum(c.received * D * FP32 + D * b for c in chunks if not c.first)
    return tokens * (there + back)
