"""transformers' Kimi-Linear layers, as they are installed, against the equations.

    from transformers.models.kimi_linear import modeling_kimi_linear as theirs
    layer = theirs.KimiLinearDeltaAttention(config, 0)
    print(transformers.delta_attention(layer).check())

Their names are converted here: one convolution for q, k and v, the decay's parameters
in a module of their own, A_log [1 1 H 1]. Source: transformers 5.24, kimi_linear.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from k3.spec import kda_layer, mla, ops
from k3.spec.weights import under
from k3.verify.exact.pairs.pair import Pair, Shadows


class Called(nn.Module):
    """A layer called on one sequence, with a causal mask where it takes one."""

    def __init__(self, layer: Any, masked: bool) -> None:
        super().__init__()
        self.layer, self.masked = layer, masked

    def forward(self, x: Tensor) -> Any:
        """The layer's output [1 T D]."""
        if not self.masked:
            return self.layer(x)
        T = x.shape[1]
        unseen = torch.ones(T, T, dtype=torch.bool).triu(1)
        mask = torch.zeros(T, T).masked_fill(unseen, -torch.inf)
        return self.layer(x, mask[None, None])[0]


def delta_attention(layer: Any, tokens: int = 5, *, floor: float | None = None) -> Pair:
    """KimiLinearDeltaAttention against kda_layer.sequence.

    Its gate is Kimi-Linear's, without a floor; with K3's `floor` it differs.
    """
    heads, eps = layer.num_heads, layer.layer_norm_epsilon

    def reference(weights: Mapping[str, Any], x: Any) -> Any:
        named = _kda_names(under(weights, "layer."), layer.qkv_dim)
        xs = [x[0, t] for t in range(tokens)]
        out = kda_layer.sequence(named, xs, heads=heads, floor=floor, eps=eps)[1]
        return out[None]

    given = {"x": Shadows(14).normal(1, tokens, layer.hidden_size)}
    return Pair("transformers KDA", Called(layer, False), reference, given)


def _kda_names(weights: Mapping[str, Any], width: int) -> dict[str, Any]:
    """Their parameters under the checkpoint's names."""
    out = {n: w for n, w in weights.items() if "forget_gate" not in n}
    taps = out.pop("conv1d.weight")
    for i, stream in enumerate("qkv"):
        out[f"{stream}_conv1d.weight"] = taps[i * width : (i + 1) * width]
    gate = under(weights, "forget_gate.")
    out["A_log"], out["dt_bias"] = gate["A_log"][0, 0, :, 0], gate["dt_bias"]
    for part in "ab":
        out[f"f_{part}_proj.weight"] = gate[f"f_{part}_proj.weight"]
    return out


def attention(layer: Any, tokens: int = 4, *, gated: bool = False) -> Pair:
    """KimiLinearAttention against Eq. 7 without the gate, or as K3 has it, with it.

    It has no output gate: `gated` shows that difference, with a gate of zeros, which
    halves every output.
    """
    heads = layer.num_heads

    def reference(weights: Mapping[str, Any], x: Any) -> Any:
        own = under(weights, "layer.")
        xs = [x[0, t] for t in range(tokens)]
        rows, up, out = [mla.row(own, x_t) for x_t in xs], mla.up(own, heads), []
        for t, x_t in enumerate(xs):
            q = _queries(own, x_t, heads)
            seen = mla.pack(rows[: t + 1])
            o = ops.concat([mla.expanded(q[h], up[h], *seen) for h in range(heads)])
            o = ops.sigmoid(o * 0) * o if gated else o
            out.append(own["o_proj.weight"] @ o)
        return ops.stack(out)[None]

    given = {"x": Shadows(15).normal(1, tokens, layer.hidden_size)}
    return Pair("transformers MLA", Called(layer, True), reference, given)


def _queries(weights: Mapping[str, Any], x: Any, heads: int) -> Any:
    """Direct queries, or Eq. 7's latent ones where the config has a rank."""
    if "q_proj.weight" in weights:
        return ops.reshape(weights["q_proj.weight"] @ x, heads, -1)
    return mla.queries(weights, x, heads)
