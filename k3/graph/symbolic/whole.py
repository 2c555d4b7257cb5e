"""Layers, the decoder and the draft in coordinates, from those of their parts.

Each named tensor is compared once and is an input from there on, so the size of a
comparison does not grow with the number of layers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from k3.graph import model, steps
from k3.graph.inputs import Inputs
from k3.graph.model import STATES, Case, Schedule
from k3.graph.symbolic import coordinates as parts
from k3.graph.symbolic import coordinates_kda, coordinates_mla, coordinates_vision
from k3.graph.symbolic.coordinates import Outputs, Reading, linear, mlp, retrieved, rms
from k3.graph.symbolic.reading import Entries, Within
from k3.graph.term import Block

# Sources of a depth mix: their axis and their entries.
Rows = tuple[str, Entries]


def mixed(r: Reading, name: str, sources: Rows) -> Entries:
    """Eq. 8-10 for one sublayer of the checkpoint."""
    dim, values = sources
    weight = r.input(f"{name}_norm.weight", "D")
    proj = r.input(f"{name}_proj.weight", "1, D")
    return retrieved(r, lambda d: weight(d) * proj(r.row(0), d), values, dim)


def normed(r: Reading, x: Entries, name: str) -> Entries:
    """RMSNorm with the checkpoint's weight."""
    unit, weight = rms(r, x, "D"), r.input(f"{name}.weight", "D")
    return lambda d: unit(d) * weight(d)


def with_row(r: Reading, rows: Rows, row: Entries | None) -> Rows:
    """Rows on an axis, and one more at the end if there is one."""
    dim, values = rows
    if row is None:
        return rows
    if dim.isdigit():
        last = int(dim)

        def entry(j: Any, d: Any) -> Any:
            return row(d) if r.literal(j) == last else values(j, d)

        return str(last + 1), entry
    return f"{dim}+1", lambda j, d: r.case(j, lambda n: values(n, d), lambda _: row(d))


def listed(r: Reading, rows: list[Entries]) -> Rows:
    """Single rows as a matrix."""
    return str(len(rows)), lambda j, d: rows[r.literal(j)](d)


def sublayers(
    r: Reading, case: Case, rows: Rows, running: Entries | None
) -> tuple[Outputs, Entries]:
    """Both sublayers of a layer: its new state, and the running sum after them."""
    mixer, channel = case
    h = mixed(r, "self_attention_res", with_row(r, rows, running))
    x = r.let("token_in", "D", normed(r, h, "input_layernorm"))
    state = {n: r.input(n, shape) for n, shape in STATES[mixer].items()}
    own = Within(r, "self_attn.", {"x": x, **state})
    outputs = {"kda": coordinates_kda.kda_layer, "mla": coordinates_mla.mla_step}[
        mixer
    ](own)
    y = r.let("token_out", *outputs.pop("y"))

    def after(d: Any) -> Any:
        return y(d) if running is None else running(d) + y(d)

    h = mixed(r, "mlp_res", with_row(r, rows, after))
    x = r.let("channel_in", "D", normed(r, h, "post_attention_layernorm"))
    z = r.let("channel_out", "D", channels(r, channel, x))
    return outputs, lambda d: after(d) + z(d)


def channels(r: Reading, channel: str, x: Entries) -> Entries:
    """The dense or the sparse channel mixer."""
    if channel == "dense":
        return mlp(r, x, "Fd", "mlp.")
    inner = parts.moe_layer(Within(r, "block_sparse_moe.", {"x": x}))
    return inner["y"][1]


def layer(r: Reading, case: Case, partial_sum: bool = True) -> Outputs:
    """One layer on N rows of depth."""
    running = r.input("partial", "D") if partial_sum else None
    outputs, after = sublayers(r, case, ("N", r.input("rows", "N, D")), running)
    return {**outputs, "partial": ("D", after)}


def finish(r: Reading, sources: Rows) -> Outputs:
    """The last depth mix, its norm and the head."""
    hidden = r.let("hidden", "D", mixed(r, "model.output_attn_res", sources))
    last = normed(r, hidden, "model.norm")
    head = linear(r, r.input("lm_head.weight", "W, D"), last, "D")
    return {"hidden": ("D", hidden), "logits": ("W", head)}


def decoder(r: Reading, plan: Schedule) -> Outputs:
    """One token, from its embedding to its logits."""
    rows: list[Entries] = [r.input("embedding", "D")]
    running: Entries | None = None
    outputs: Outputs = {}
    for i, case in enumerate(plan.cases):
        names = STATES[case[0]]
        state = {n: r.input(f"layers.{i}.{n}", s) for n, s in names.items()}
        own = Within(r, f"model.layers.{i}.", state)
        after, running = sublayers(own, case, listed(r, rows), running)
        outputs.update({f"layers.{i}.{n}": value for n, value in after.items()})
        if (i + 1) % plan.block == 0:
            rows, running = [*rows, running], None
    return {**outputs, **finish(r, with_row(r, listed(r, rows), running))}


def draft(r: Reading, case: Case = ("mla", "dense")) -> Outputs:
    """EAGLE-3: fused feature, one layer, head."""
    triple = [r.input(n, "D") for n in ("low", "mid", "high")]
    W = r.input("fusion", "D, D+D+D")

    def fused(o: Any) -> Any:
        return r.total("D+D+D", lambda i: W(o, i) * r.case(i, *triple))

    feature = r.let("feature", "D", fused)
    e = linear(r, r.input("token_weight", "D, D"), r.input("embedding", "D"), "D")
    f = linear(r, r.input("feature_weight", "D, D"), feature, "D")
    x = r.let("draft_in", "D", lambda d: e(d) + f(d))
    state = {n: r.input(n, s) for n, s in STATES[case[0]].items()}
    outputs, running = sublayers(Within(r, "layer.", state), case, listed(r, [x]), None)
    ends = finish(r, listed(r, [x, running]))
    return {"feature": ("D", feature), **outputs, **ends}


def decoder_block() -> Block:
    """The decoder of the small schedule on an embedding instead of an id."""
    inputs = Inputs()
    outputs = model.token(inputs, steps.SMALL, inputs.real("embedding", "D"))
    return Block("decoder", "One token from its embedding to its logits.", outputs)


coordinates: dict[str, Callable[[Reading], Outputs]] = {
    "expert": parts.expert,
    "kda_update": coordinates_kda.kda_update,
    "kda_layer": coordinates_kda.kda_layer,
    "mla_step": coordinates_mla.mla_step,
    "mla_step_absorbed": coordinates_mla.mla_step,
    "attn_res": parts.attn_res,
    "attn_res_depth": parts.attn_res_depth,
    "moe": parts.moe_layer,
    **{f"layer_{m}_{c}": partial(layer, case=(m, c)) for m, c in steps.SMALL.cases},
    "layer_first_of_block": partial(layer, case=("kda", "dense"), partial_sum=False),
    "decoder": partial(decoder, plan=steps.SMALL),
    "draft": draft,
    "vision_embed": coordinates_vision.embed,
    "vision_block": coordinates_vision.block,
    "vision_project": coordinates_vision.project,
    "vision_encoder": coordinates_vision.encoder,
}
