"""The decoder as a graph: four layer cases, and one token from embedding to logits.

A schedule is static: which layers are MLA, which sparse, and after how many layers a
block is committed. Widths stay symbolic; T past tokens are common to all MLA layers.
"""

from dataclasses import dataclass
from typing import Literal

from k3.config import TextConfig
from k3.graph import attn_res, kda, mla, moe, situ
from k3.graph import primitives as p
from k3.graph.attn_res import Depth
from k3.graph.inputs import RELEASED, Inputs, Numbers
from k3.graph.term import Term, let

Mixer = Literal["kda", "mla"]
Channel = Literal["dense", "sparse"]
Case = tuple[Mixer, Channel]
State = tuple[Term, Term]

# The state of a mixer by name: what goes in, and with what shape.
STATES: dict[Mixer, dict[str, str]] = {
    "kda": {"S": "H, K, V", "window": "1+P, D"},
    "mla": {"latents": "T, R", "shared": "T, r"},
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """The cases of the layers in order, and the layers in an AttnRes block."""

    cases: tuple[Case, ...]
    block: int


def schedule(config: TextConfig) -> Schedule:
    """The schedule of a configuration."""
    cases: list[Case] = [
        (
            "mla" if config.is_mla(i) else "kda",
            "sparse" if config.is_moe(i) else "dense",
        )
        for i in range(config.num_hidden_layers)
    ]
    return Schedule(tuple(cases), config.attn_res_block_size)


def sizes(config: TextConfig) -> dict[str, int]:
    """The sizes of a configuration that no input shows: MLA heads, active experts."""
    return {"M": config.num_attention_heads, "A": config.num_experts_per_token}


def state(inputs: Inputs, mixer: Mixer) -> State:
    """The two state tensors of a layer as inputs."""
    first, second = (inputs.real(n, shape) for n, shape in STATES[mixer].items())
    return first, second


def mix_tokens(
    weights: Inputs, mixer: Mixer, before: State, x: Term, numbers: Numbers = RELEASED
) -> tuple[State, Term]:
    """KDA or MLA: the new state and the output [D]."""
    step = {"kda": kda.step, "mla": mla.step}[mixer]
    first, second, y = step(weights.under("self_attn."), *before, x, numbers)
    return (first, second), y


def mix_channels(
    weights: Inputs, channel: Channel, x: Term, numbers: Numbers = RELEASED
) -> Term:
    """The dense or the sparse channel mixer. [D]."""
    if channel == "dense":
        return situ.mlp(weights.under("mlp."), x, "Fd", numbers)
    return moe.layer(weights.under("block_sparse_moe."), x, numbers)


def retrieve(
    weights: Inputs, depth: Depth, mixer: str, normed: str, numbers: Numbers
) -> Term:
    """Eq. 8-10: a sublayer's input, its depth mix then its RMSNorm. [D]."""
    h = attn_res.mix(weights, mixer, depth, numbers)
    return p.rms_norm(h, weights.real(f"{normed}.weight", "D"), numbers.eps)


def layer_step(
    weights: Inputs, case: Case, depth: Depth, before: State, numbers: Numbers
) -> tuple[Depth, State]:
    """One token through both sublayers of a layer, before any block is committed."""
    mixer, channel = case
    x = retrieve(weights, depth, "self_attention_res", "input_layernorm", numbers)
    after, y = mix_tokens(weights, mixer, before, let("token_in", x), numbers)
    depth = attn_res.add(depth, let("token_out", y))
    x = retrieve(weights, depth, "mlp_res", "post_attention_layernorm", numbers)
    y = mix_channels(weights, channel, let("channel_in", x), numbers)
    return attn_res.add(depth, let("channel_out", y)), after


def final_hidden(weights: Inputs, depth: Depth, numbers: Numbers = RELEASED) -> Term:
    """The last depth mix, before the final norm. [D]."""
    return attn_res.mix(weights, "model.output_attn_res", depth, numbers)


def finish(weights: Inputs, hidden: Term, numbers: Numbers = RELEASED) -> Term:
    """W_head RMSNorm(h): the logits of one token. [W]."""
    scale = weights.real("model.norm.weight", "D")
    normed = p.rms_norm(hidden, scale, numbers.eps)
    return let("logits", p.linear(weights.real("lm_head.weight", "W, D"), normed))


def token(
    weights: Inputs, plan: Schedule, embedding: Term, numbers: Numbers = RELEASED
) -> dict[str, Term]:
    """One decoder token: the states after it by name, and its logits [W].

    States are read from the inputs "layers.I.S", "layers.I.window" (KDA) or
    "layers.I.latents", "layers.I.shared" (MLA), and returned under the same names.
    """
    depth = attn_res.start(embedding)
    outputs: dict[str, Term] = {}
    for i, case in enumerate(plan.cases):
        own = weights.under(f"model.layers.{i}.")
        before = state(weights.under(f"layers.{i}."), case[0])
        depth, after = layer_step(own, case, depth, before, numbers)
        depth = attn_res.finish_layer(depth, plan.block)
        for name, term in zip(STATES[case[0]], after, strict=True):
            outputs[f"layers.{i}.{name}"] = term
    hidden = let("hidden", final_hidden(weights, depth, numbers))
    outputs["hidden"] = hidden
    outputs["logits"] = finish(weights, hidden, numbers)
    return outputs
