"""The widget of SiTU: its value, its factors, and SwiGLU beside it."""

import numpy as np

from k3.graph import primitives as p
from k3.graph import situ as graph
from k3.graph.term import Block, let
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import ops, situ


def situ_graph() -> Block:
    """Eq. 12 and 18 on scalars, SwiGLU beside it."""
    gate, up = p.real("gate", ""), p.real("up", "")
    capped = let("capped", graph.soft_cap(gate, p.real("beta", "")))
    lifted = let("lifted", graph.soft_cap(up, p.real("linear", "")))
    opened = let("opened", p.sigmoid(gate))
    return Block(
        "situ",
        "Eq. 12 and 18: both factors of the gated unit capped",
        {
            "situ": capped * opened * lifted,
            "swiglu": p.silu(gate) * up,
            "capped": capped,
            "opened": opened,
            "lifted": lifted,
        },
    )


def gated(gate, up, beta, linear):  # type: ignore[no-untyped-def]
    """Eq. 12: SiTU and its three factors; SwiGLU has no caps."""
    gate, up = np.float64(gate), np.float64(up)
    return {
        "situ": situ.situ(gate, up, beta, linear),
        "swiglu": ops.silu(gate) * up,
        "capped": situ.soft_cap(gate, beta),
        "opened": ops.sigmoid(gate),
        "lifted": situ.soft_cap(up, linear),
    }


SITU = Widget(
    name="situ",
    title="SiTU against SwiGLU",
    says="The same near 0; SiTU stays below β × linear β = 100, SwiGLU has no bound.",
    controls=(
        Control(name="gate", value=2.0, label="gate", low=-12.0, high=12.0, step=0.05),
        Control(name="up", value=6.0, label="up", low=-80.0, high=80.0, step=0.5),
        Control(name="beta", value=4.0, label="cap of the gate β", low=0.5, high=8.0),
        Control(
            name="linear",
            value=25.0,
            label="cap of the linear part",
            low=1.0,
            high=50.0,
            step=0.5,
        ),
    ),
    graphs={"": situ_graph},
    python=gated,
    names={
        "situ": "SiTU",
        "swiglu": "SwiGLU",
        "capped": "capped gate",
        "opened": "sigmoid of the raw gate",
        "lifted": "capped linear part",
    },
)

WIDGETS = (SITU,)
