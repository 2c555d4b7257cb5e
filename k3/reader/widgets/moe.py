"""The widget of the router: scores, a bias that only chooses, weights of the chosen."""

import numpy as np

from k3.graph import moe as graph
from k3.graph import primitives as p
from k3.graph.term import Block
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import moe

EXPERTS = tuple(f"expert {e}" for e in range(1, 5))


def router_graph() -> Block:
    """Eq. 13 on given scores: who is chosen, and with what weight."""
    scores, bias = p.real("scores", "E"), p.real("bias", "E")
    chosen, weights = graph.choose(scores, bias)
    spread = p.contract("ae,a->e", p.one_hot(chosen), weights)
    outputs = {"adjusted": scores + bias, "chosen": chosen, "weights": weights}
    return Block(
        "router", "Eq. 13: the bias only chooses", {**outputs, "share": spread}
    )


def routed(scores, bias, A):  # type: ignore[no-untyped-def]
    """Eq. 13: the A experts with the largest score + bias, weighted by score alone."""
    scores, bias = np.array(scores), np.array(bias)
    chosen, weights = moe.route(scores, bias, A)
    share = np.zeros(len(scores))
    share[chosen] = weights
    return {
        "adjusted": scores + bias,
        "chosen": chosen,
        "weights": weights,
        "share": share,
    }


ROUTER = Widget(
    name="router",
    title="A bias chooses, the scores weigh",
    says="A higher bias is chosen sooner; the weight stays that of the score.",
    controls=(
        Control(
            name="scores",
            value=[0.8, 0.7, 0.6, 0.2],
            label="scores s",
            kind="array",
            low=0.01,
            high=0.99,
            columns=EXPERTS,
        ),
        Control(
            name="bias",
            value=[0.0, 0.0, 0.3, 0.0],
            label="bias b",
            kind="array",
            low=-1.0,
            high=1.0,
            columns=EXPERTS,
        ),
        Control(name="A", value=2, label="experts a token", kind="size", low=1, high=4),
    ),
    graphs={"": router_graph},
    python=routed,
    names={
        "adjusted": "score + bias, by expert",
        "chosen": "chosen, counted from 0",
        "weights": "their weights",
        "share": "weight by expert",
    },
)

WIDGETS = (ROUTER,)
