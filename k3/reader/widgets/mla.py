"""The widget of the cache: what a context costs in MLA rows and in KDA memories."""

from k3.config import K3Config, sizes
from k3.config.published import published
from k3.graph import cache as graph
from k3.graph.inputs import Inputs
from k3.graph.term import Block, let
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget

_TEXT = K3Config.from_dict(published()).text
RELEASED = {
    "latent": _TEXT.kv_lora_rank,
    "shared": _TEXT.qk_rope_head_dim,
    "heads": _TEXT.num_attention_heads,
    "content": _TEXT.qk_nope_head_dim,
    "value": _TEXT.v_head_dim,
    "mla_layers": len(_TEXT.mla_layers),
    "kda_layers": len(_TEXT.kda_layers),
    "memory": _TEXT.kda_state_scalars,
    "window": _TEXT.conv_window_scalars,
}


def cache_graph() -> Block:
    """Bytes of one sequence's state: rows that grow, memories that do not."""
    inputs = Inputs()
    see = {name: inputs.real(name, "") for name in (*RELEASED, "tokens", "itemsize")}
    row = let("row", graph.row_scalars(see["latent"], see["shared"]))
    full = graph.full_scalars(see["heads"], see["content"], see["shared"], see["value"])
    per_scalar = let("per_scalar", see["tokens"] * see["mla_layers"] * see["itemsize"])
    layer = 4 * see["memory"] + see["itemsize"] * see["window"]
    fixed = let("fixed", see["kda_layers"] * layer)
    outputs = {
        "row_scalars": row,
        "full_scalars": let("full", full),
        "rows_bytes": per_scalar * row,
        "fixed_bytes": fixed,
        "total_bytes": per_scalar * row + fixed,
        "full_bytes": per_scalar * full,
    }
    return Block("cache_bytes", "What a context costs in the release", outputs)


def context_cost(tokens, itemsize):  # type: ignore[no-untyped-def]
    """Bytes of one sequence; the last is MLA with the keys and values of all heads."""
    config = K3Config.from_dict(published())
    text, cost = config.text, sizes.memory(config, tokens, itemsize)
    layers = len(text.mla_layers) * itemsize * tokens
    return {
        "row_scalars": text.mla_row_scalars,
        "full_scalars": text.mla_expanded_scalars,
        "rows_bytes": cost.sequence_bytes - cost.fixed_bytes,
        "fixed_bytes": cost.fixed_bytes,
        "total_bytes": cost.sequence_bytes,
        "full_bytes": layers * text.mla_expanded_scalars,
    }


CACHE = Widget(
    name="mla-cache",
    title="What a context costs",
    says="24 layers keep 576 numbers a token; 69 keep a memory that never grows.",
    controls=(
        Control(
            name="tokens",
            value=131072,
            label="context, tokens",
            low=0,
            high=2**20,
            step=1024,
        ),
        Control(
            name="itemsize",
            value=2,
            label="bytes of a number (2 is BF16)",
            low=1,
            high=4,
            step=1,
        ),
    ),
    graphs={"": cache_graph},
    python=context_cost,
    fixed=RELEASED,
    names={
        "row_scalars": "numbers a token and MLA layer",
        "full_scalars": "the same with all heads' keys and values",
        "rows_bytes": "bytes of MLA rows",
        "fixed_bytes": "bytes of KDA memories and windows",
        "total_bytes": "bytes of the sequence",
        "full_bytes": "bytes of rows without the latent",
    },
)

WIDGETS = (CACHE,)
