"""Bytes that the forward pass of each unit leaves, by formula.

What autograd saves under the native kernels: `trunk` scalars in the trunk's dtype,
`wide` ones in fp32. `k3.parallel.saved.survey` counts the same on a real model, and a
test holds the two against each other.
"""

from dataclasses import dataclass

from k3.config import TextConfig


@dataclass(frozen=True, slots=True)
class Left:
    """Scalars a token, and bytes of them in a trunk of `itemsize` bytes."""

    trunk: int
    wide: int

    def bytes(self, itemsize: int = 2) -> int:
        """Bytes a token."""
        return self.trunk * itemsize + self.wide * 4

    def __add__(self, other: "Left") -> "Left":
        return Left(self.trunk + other.trunk, self.wide + other.wide)


def kda(text: TextConfig) -> Left:
    """Input, raw channels, decay's middle, gated output; 13 wide heads, 4 norms."""
    linear = text.linear_attn_config
    H, K, V = linear.num_heads, linear.head_dim, linear.v_dim
    # Of the 13 six are as wide as a key and seven as a value.
    return Left(
        trunk=text.hidden_size + H * (2 * K + V) + K + H * V,
        wide=H * (6 * K + 7 * V) + 4 * H,
    )


def mla(text: TextConfig) -> Left:
    """Input, both latents around their norms, rows, q, k, v, output and its gate."""
    H, Q, latent = text.num_attention_heads, text.q_lora_rank, text.kv_lora_rank
    head = text.qk_nope_head_dim + text.qk_rope_head_dim
    values = H * text.v_head_dim
    return Left(
        trunk=text.hidden_size
        + Q
        + 2 * latent
        + text.mla_row_scalars
        + 4 * H * head
        + 2 * values,
        wide=Q + latent + H + values,
    )


def dense(text: TextConfig) -> Left:
    """Input, gate, up and their product."""
    return Left(text.hidden_size + 3 * text.intermediate_size, 0)


def moe(text: TextConfig) -> Left:
    """Router, latents, rows in and out of experts, hidden ones, shared experts."""
    k, L = text.num_experts_per_token, text.routed_expert_hidden_size
    F = text.moe_intermediate_size
    shared = text.num_shared_experts * F
    return Left(
        trunk=text.hidden_size + 2 * k * L + 3 * k * F + 3 * shared + 3 * L,
        # Chosen numbers, counts and places are integers, about eight words a choice.
        wide=text.hidden_size + L + text.num_experts + 8 * k,
    )


def unit(text: TextConfig, layer: int) -> tuple[Left, Left]:
    """Return what a layer's mixer and its feed-forward leave."""
    mixer = mla(text) if text.is_mla(layer) else kda(text)
    return mixer, moe(text) if text.is_moe(layer) else dense(text)


def depth(text: TextConfig, start: int, stop: int) -> Left:
    """What norms and depth retrieval of layers start .. stop leave, outside of units.

    A sublayer leaves its retrieved input and running sum, a completed block itself
    and the list of all blocks so far.
    """
    size = text.attn_res_block_size
    blocks = [i // size + 1 for i in range(start, stop) if i % size == 0]
    sublayers = 2 * (stop - start)
    lists = sum(blocks) + len(blocks)
    D = text.hidden_size
    return Left(D * sublayers, D * (2 * sublayers + lists))


def head(text: TextConfig) -> Left:
    """The last retrieval and the log-probabilities."""
    return Left(0, 2 * text.hidden_size + text.vocab_size)
