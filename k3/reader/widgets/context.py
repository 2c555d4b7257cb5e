"""The widget of context parallelism: summaries compose, grouping free, order not."""

from functools import reduce

import numpy as np

from k3.graph import context as graph
from k3.graph import primitives as p
from k3.graph.term import Block
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import context

SEGMENTS = ("segment 1", "segment 2", "segment 3")


def scan_graph() -> Block:
    """Eq. 17: three segments of one token, composed in two groupings and two orders."""
    S = p.real("S", "K, V")
    rows = (p.real("k", "3, K"), p.real("v", "3, V"), p.real("alpha", "3, K"))
    beta = p.real("beta", "3")
    a, b, c = (graph.token(*(p.pick(x, i) for x in (*rows, beta))) for i in range(3))
    left = graph.compose(graph.compose(a, b), c)
    right = graph.compose(a, graph.compose(b, c))
    swapped = graph.compose(graph.compose(b, a), c)
    outputs = {
        "M": left.M,
        "B": left.B,
        "grouped": graph.act(left, S),
        "regrouped": graph.act(right, S),
        "reordered": graph.act(swapped, S),
    }
    return Block("affine_scan", "Eq. 17: segments as affine maps", outputs)


def scanned(S, k, v, alpha, beta):  # type: ignore[no-untyped-def]
    """Eq. 17: (1 2) 3 and 1 (2 3) are one map; 2 before 1 is another."""
    S, k, v, alpha = map(np.array, (S, k, v, alpha))
    a, b, c = (context.token(k[i], v[i], alpha[i], beta[i]) for i in range(3))
    left = reduce(context.compose, (a, b, c))
    right = context.compose(a, context.compose(b, c))
    swapped = reduce(context.compose, (b, a, c))
    return {
        "M": left.M,
        "B": left.B,
        "grouped": context.act(left, S),
        "regrouped": context.act(right, S),
        "reordered": context.act(swapped, S),
    }


SCAN = Widget(
    name="affine-scan",
    title="Segments as affine maps",
    says="Each rank sums up its tokens as S → M S + B; maps compose in any grouping.",
    controls=(
        Control(
            name="S",
            value=[[1.0, 0.0], [0.0, 1.0]],
            label="memory at the start",
            kind="array",
            low=-2,
            high=2,
            step=0.1,
        ),
        Control(
            name="k",
            value=[[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]],
            label="keys",
            kind="array",
            low=-1,
            high=1,
            step=0.1,
            rows=SEGMENTS,
        ),
        Control(
            name="v",
            value=[[2.0, 1.0], [-1.0, 1.0], [0.5, 2.0]],
            label="values",
            kind="array",
            low=-2,
            high=2,
            step=0.1,
            rows=SEGMENTS,
        ),
        Control(
            name="alpha",
            value=[[0.9, 0.8], [0.5, 1.0], [0.7, 0.6]],
            label="retentions",
            kind="array",
            rows=SEGMENTS,
        ),
        Control(
            name="beta",
            value=[0.5, 1.0, 0.8],
            label="write strengths",
            kind="array",
            columns=SEGMENTS,
        ),
    ),
    graphs={"": scan_graph},
    python=scanned,
    names={
        "M": "map of all three: M",
        "B": "map of all three: B",
        "grouped": "memory by (1 2) 3",
        "regrouped": "memory by 1 (2 3): the same",
        "reordered": "memory by 2 1 3: another",
    },
)

WIDGETS = (SCAN,)
