"""The widget of attention over depth: a walk through blocks, source by source."""

from functools import partial

import numpy as np

from k3.graph import attn_res as graph
from k3.graph import primitives as p
from k3.graph.term import Block, spread
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import attn_res

LAYERS, BLOCK = 6, 2
OUTPUTS = [
    [1.0, 0.2],
    [0.4, 0.8],
    [-0.5, 0.9],
    [0.3, -0.7],
    [0.8, 0.5],
    [-0.2, 1.0],
]


def walk_graph(done: int) -> Block:
    """Eq. 8-10 after `done` layers: sources, depth weights, what the next one reads."""
    outputs, q = p.real("outputs", f"{LAYERS}, D"), p.real("q", "D")
    depth = graph.start(p.real("embedding", "D"))
    for layer in range(done):
        depth = graph.finish_layer(graph.add(depth, p.pick(outputs, layer)), BLOCK)
    sources = graph.sources(depth)
    h = graph.retrieve(q, sources)
    weights, _ = h.args
    scores = weights.args[0]
    # Every input must be read, also before the first layer.
    kept = sources + spread(p.total(outputs, 0, 1) * 0, sources.shape)
    found = {"sources": kept, "scores": scores, "weights": weights, "h": h}
    return Block("depth_walk", f"Eq. 8-10 after {done} layers", found)


def walked(embedding, outputs, q, layers):  # type: ignore[no-untyped-def]
    """Eq. 8-10: the sources after some layers of blocks of two, mixed by a query."""
    state = attn_res.start(np.array(embedding))
    for y in np.array(outputs)[: int(layers)]:
        state = attn_res.finish_layer(attn_res.add(state, y), 2)
    sources, q = attn_res.sources(state), np.array(q)
    scores = attn_res.scores(q, sources)
    weights = np.exp(scores - scores.max())
    return {
        "sources": sources,
        "scores": scores,
        "weights": weights / weights.sum(),
        "h": attn_res.retrieve(q, sources),
    }


WALK = Widget(
    name="attn-res-walk",
    title="A walk over depth",
    says="Two layers make a block, whose sum is a source; so is the running sum.",
    controls=(
        Control(
            name="layers",
            value="3",
            label="layers done",
            kind="choice",
            options=tuple(str(n) for n in range(LAYERS + 1)),
        ),
        Control(
            name="q",
            value=[1.0, 1.0],
            label="query of the next layer",
            kind="array",
            low=-3.0,
            high=3.0,
            step=0.1,
        ),
        Control(
            name="embedding",
            value=[0.6, -0.4],
            label="embedding",
            kind="array",
            low=-2.0,
            high=2.0,
            step=0.1,
        ),
        Control(
            name="outputs",
            value=OUTPUTS,
            label="what each layer adds",
            kind="array",
            low=-2.0,
            high=2.0,
            step=0.1,
            rows=tuple(f"layer {n}" for n in range(1, LAYERS + 1)),
        ),
    ),
    graphs={str(n): partial(walk_graph, n) for n in range(LAYERS + 1)},
    python=walked,
    variant="layers",
    names={
        "sources": "sources: embedding, block sums, running sum",
        "scores": "scores",
        "weights": "depth weights",
        "h": "what the layer reads",
    },
)

WIDGETS = (WALK,)
