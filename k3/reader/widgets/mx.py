"""The widget of MXFP4: a group of 32 values, its scale byte and its codes."""

from functools import partial

import numpy as np

from k3.graph import mx as graph
from k3.graph import primitives as p
from k3.graph.term import Block
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import mx

# The article's 2.70, then ties, both signs, saturation and small values.
START = (
    *(2.7, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0, -2.7, -0.25, -0.75, -1.25),
    *(-1.75, -2.5, -3.5, -5.0, -6.0, 0.0, 0.1, 0.4, 0.6, 0.9, 1.1, 1.6, 2.2, 3.1),
    *(4.4, 4.9, 5.1, -4.4, -0.1),
)


def block_graph(rule: graph.Rule) -> Block:
    """A group through MXFP4 and back."""
    tables = p.real("scales", "B+1"), p.real("levels", "L+1"), p.real("odd", "L")
    x = p.real("x", "G")
    found = graph.block(x, *tables, rule)
    return Block(
        "mxfp4", "MXFP4: a group of 32", {**found, "error": x - found["value"]}
    )


def quantized(x, rule):  # type: ignore[no-untyped-def]
    """MXFP4: the scale byte, the nibbles, and what they decode to."""
    x = np.array(x)
    block = mx.encode_block(x, rule)
    value = np.array([float(v) for v in mx.decode_block(block)])
    return {
        "byte": block.scale,
        "scale": float(mx.e8m0(block.scale)),
        "nibble": block.codes,
        "value": value,
        "error": x - value,
    }


MX = Widget(
    name="mx-quantizer",
    title="A group of 32 in MXFP4",
    says="One byte of scale, 32 nibbles; a tie goes to the even code.",
    controls=(
        Control(
            name="x",
            value=list(START),
            label="values",
            kind="array",
            low=-8.0,
            high=8.0,
            step=0.05,
        ),
        Control(
            name="rule",
            value="ceil",
            label="scale rule",
            kind="choice",
            options=("ceil", "floor"),
        ),
    ),
    graphs={rule: partial(block_graph, rule) for rule in ("ceil", "floor")},
    python=quantized,
    variant="rule",
    fixed={
        "scales": [float(mx.e8m0(code)) for code in range(255)],
        "levels": [float(level) for level in mx.E2M1],
        "odd": [float(code % 2) for code in range(7)],
    },
    names={
        "byte": "scale byte",
        "scale": "scale",
        "nibble": "codes",
        "value": "decoded",
        "error": "value − decoded",
    },
)

WIDGETS = (MX,)
