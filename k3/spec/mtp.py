"""The multi-token-prediction layer (Table 1), which the release leaves out.

Names and wiring are the optional contract of release notes §3: plain residual sums, no
depth mix, and a zero embedding at position 0.
"""

from collections.abc import Mapping, Sequence

from k3.config import TextConfig
from k3.spec import mla, model, norm, ops
from k3.spec.ops import Array
from k3.spec.weights import under


def step(
    weights: Mapping[str, Array],
    config: TextConfig,
    cache: Sequence[mla.Row],
    embedding: Array,
    hidden: Array,
) -> tuple[list[mla.Row], Array]:
    """x = eh_proj [enorm(e) | hnorm(h)], then MLA and MoE. Returns cache, logits [W].

    hidden [D] is the trunk's model.final_hidden at the token before this embedding.
    """
    eps = config.rms_norm_eps
    e = norm.rms_norm(embedding, weights["enorm.weight"], eps)
    h = norm.rms_norm(hidden, weights["hnorm.weight"], eps)
    x = weights["eh_proj.weight"] @ ops.concat([e, h])
    normed = norm.rms_norm(x, weights["input_layernorm.weight"], eps)
    own = under(weights, "self_attn.")
    grown, y = mla.step(own, cache, normed, heads=config.num_attention_heads)
    x = x + y
    normed = norm.rms_norm(x, weights["post_attention_layernorm.weight"], eps)
    x = x + model.mix_channels(weights, config, normed)
    last = norm.rms_norm(x, weights["shared_head.norm.weight"], eps)
    return grown, weights["shared_head.head.weight"] @ last


def sequence(
    weights: Mapping[str, Array],
    config: TextConfig,
    ids: Sequence[int],
    hidden: Array,
) -> Array:
    """The layer over a sequence, hidden [T D] beside each id. Logits [T W]."""
    cache: list[mla.Row] = []
    out = []
    for t, token in enumerate(ids):
        e = weights["embed_tokens.weight"][token]
        cache, logits = step(weights, config, cache, e if t else e * 0, hidden[t])
        out.append(logits)
    return ops.stack(out)
