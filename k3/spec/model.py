"""The decoder: four layer cases, one token, a sequence, and image rows in the text.

`weights` has the checkpoint's names without `language_model.`. `tap(name, value)` sees
named intermediate values and may replace them; its names are those of the model's taps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from k3.config import TextConfig
from k3.spec import attn_res, kda_layer, mla, moe, norm, ops, situ
from k3.spec.attn_res import BlockState
from k3.spec.ops import Array
from k3.spec.weights import Weights, under

Tap = Callable[[str, Array], Array]


@dataclass(frozen=True, slots=True)
class Memory:
    """What a KDA layer keeps: S [H K V] and a window of inputs [W D], newest first."""

    S: Array
    window: Array


LayerState = Memory | list[mla.Row]


def keep(name: str, value: Array) -> Array:
    """The tap that looks at nothing."""
    return value


def is_mla(layer: int, layers: int) -> bool:
    """Table 1: counted from 1, every fourth layer is MLA, and the last one too.

    The release lists the layers in config.json; this is what its list says.
    """
    return layer % 4 == 0 or layer == layers


def layer_counts(layers: int) -> tuple[int, int]:
    """Table 1: how many layers are KDA and how many MLA: 69 and 24 of 93."""
    mla = sum(is_mla(layer, layers) for layer in range(1, layers + 1))
    return layers - mla, mla


def empty_states(weights: Weights, config: TextConfig) -> list[LayerState]:
    """The state before the first token: zero memories and windows, empty caches."""
    like = weights["model.norm.weight"]
    heads = config.linear_attn_config.num_heads
    out: list[LayerState] = []
    for i in range(config.num_hidden_layers):
        if config.is_mla(i):
            out.append([])
        else:
            own = under(weights, f"model.layers.{i}.self_attn.")
            out.append(Memory(*kda_layer.empty_state(own, like, heads=heads)))
    return out


def mix_tokens(
    weights: Weights, config: TextConfig, state: LayerState, x: Array
) -> tuple[LayerState, Array]:
    """The token mixer of a layer, KDA (Eq. 1-6) or MLA (Eq. 7) by its state. x [D]."""
    if isinstance(state, Memory):
        linear = config.linear_attn_config
        S, window, y = kda_layer.step(
            weights,
            state.S,
            state.window,
            x,
            heads=linear.num_heads,
            floor=linear.gate_lower_bound,
            eps=config.rms_norm_eps,
        )
        return Memory(S, window), y
    return mla.step(weights, state, x, heads=config.num_attention_heads)


def mix_channels(weights: Weights, config: TextConfig, x: Array) -> Array:
    """The channel mixer of a layer, dense (Eq. 12) or sparse (Eq. 11, 13). [D]."""
    beta, linear = config.activation_situ_beta, config.activation_situ_linear_beta
    dense = under(weights, "mlp.")
    if dense:
        return situ.mlp(dense, x, beta, linear)
    return moe.layer(
        under(weights, "block_sparse_moe."),
        x,
        config.num_experts_per_token,
        scaling=config.routed_scaling_factor,
        beta=beta,
        linear=linear,
        eps=config.rms_norm_eps,
    )


def retrieve(
    weights: Weights, config: TextConfig, depth: BlockState, names: tuple[str, str]
) -> Array:
    """Eq. 8-10: a sublayer's input, its depth mix then its RMSNorm. [D]."""
    mixer, normed = names
    q = attn_res.query(weights, mixer)
    h = attn_res.retrieve(q, attn_res.sources(depth), config.rms_norm_eps)
    return norm.rms_norm(h, weights[f"{normed}.weight"], config.rms_norm_eps)


def layer_step(
    weights: Weights,
    config: TextConfig,
    depth: BlockState,
    state: LayerState,
    *,
    tap: Tap = keep,
) -> tuple[BlockState, LayerState]:
    """One token through one layer: both sublayers, each fed by a depth mix alone."""
    x = retrieve(weights, config, depth, ("self_attention_res", "input_layernorm"))
    state, y = mix_tokens(under(weights, "self_attn."), config, state, x)
    depth = attn_res.add(depth, tap("self_attn", y))
    x = retrieve(weights, config, depth, ("mlp_res", "post_attention_layernorm"))
    depth = attn_res.add(depth, mix_channels(weights, config, x))
    depth = replace(depth, partial=tap("out_prefix", depth.partial))
    return attn_res.finish_layer(depth, config.attn_res_block_size), state


def final_hidden(weights: Weights, config: TextConfig, depth: BlockState) -> Array:
    """The last depth mix, before the final norm: what drafts and MTP read. [D]."""
    q = attn_res.query(weights, "model.output_attn_res")
    return attn_res.retrieve(q, attn_res.sources(depth), config.rms_norm_eps)


def finish(
    weights: Weights, config: TextConfig, depth: BlockState, tap: Tap = keep
) -> Array:
    """Eq. 8-9, then the head: logits of one token, W_head RMSNorm(h). [W]."""
    h = tap("output_attn_res", final_hidden(weights, config, depth))
    normed = norm.rms_norm(h, weights["model.norm.weight"], config.rms_norm_eps)
    return weights["lm_head.weight"] @ normed


def step(
    weights: Weights,
    config: TextConfig,
    states: Sequence[LayerState],
    embedding: Array,
    *,
    tap: Tap = keep,
) -> tuple[list[LayerState], Array]:
    """One decoder token: embedding [D] to its logits [W], and the states after it."""
    depth, after = attn_res.start(embedding), []
    for i, state in enumerate(states):
        own = under(weights, f"model.layers.{i}.")
        depth, state = layer_step(own, config, depth, state, tap=_within(tap, i))
        after.append(state)
    return after, finish(weights, config, depth, tap)


def run(
    weights: Weights,
    config: TextConfig,
    states: Sequence[LayerState],
    embeddings: Sequence[Array],
    *,
    tap: Tap = keep,
) -> tuple[list[LayerState], Array]:
    """Tokens one by one: T >= 1 embeddings [D] to logits [T W], and the last states."""
    out, after = [], list(states)
    for embedding in embeddings:
        after, logits = step(weights, config, after, embedding, tap=tap)
        out.append(logits)
    return after, ops.stack(out)


def run_by_layer(
    weights: Weights, config: TextConfig, embeddings: Sequence[Array]
) -> Array:
    """The same logits [T W] with each layer run over all tokens before the next."""
    depths = [attn_res.start(e) for e in embeddings]
    for i, state in enumerate(empty_states(weights, config)):
        own = under(weights, f"model.layers.{i}.")
        for t, depth in enumerate(depths):
            depths[t], state = layer_step(own, config, depth, state)
    return ops.stack([finish(weights, config, depth) for depth in depths])


def embed(
    table: Array,
    ids: Sequence[int],
    features: Array | None = None,
    placeholder: int | None = None,
) -> list[Array]:
    """Text rows of the table [W D], and image rows in order at each placeholder.

    features [n D], n the number of placeholders among ids; no scaling of either.
    """
    out, seen = [], 0
    for token in ids:
        if features is not None and token == placeholder:
            out.append(features[seen])
            seen += 1
        else:
            out.append(table[token])
    assert features is None or seen == len(features), (seen, len(ids))
    return out


def logits(
    weights: Weights,
    config: TextConfig,
    ids: Sequence[int],
    *,
    features: Array | None = None,
    placeholder: int | None = None,
) -> Array:
    """Token ids, with image rows where they belong, to logits [T W]."""
    table = weights["model.embed_tokens.weight"]
    embeddings = embed(table, ids, features, placeholder)
    return run(weights, config, empty_states(weights, config), embeddings)[1]


def _within(tap: Tap, layer: int) -> Tap:
    return lambda name, value: tap(f"layers.{layer}.{name}", value)
