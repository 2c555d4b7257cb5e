"""The widget of Per-Head Muon: one stored matrix, its heads, each made orthogonal."""

import numpy as np

from k3.graph import muon as graph
from k3.graph import primitives as p
from k3.graph.term import Block
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import muon


def heads_graph() -> Block:
    """A stored matrix [2*R, C]: its heads, and Newton-Schulz by head and at once."""
    M = p.real("M", "2*R, C")
    flat = p.reshape(p.permute(M, 1, 0), 1, "C", *M.shape[:1])
    whole = p.permute(p.pick(graph.newton_schulz(flat), 0), 1, 0)
    outputs = {
        "blocks": graph.split(M, 2, "R"),
        "per_head": graph.per_head(M, 2, "R"),
        "whole": whole,
    }
    return Block("muon_heads", "Per-Head Muon", outputs)


def orthogonalized(M):  # type: ignore[no-untyped-def]
    """Per-Head Muon: the momentum by heads, and what one orthogonalizer would give."""
    M = np.array(M)
    return {
        "blocks": muon.split(M, 2),
        "per_head": muon.per_head(muon.newton_schulz, M, 2),
        "whole": muon.newton_schulz(M),
    }


MUON = Widget(
    name="muon-heads",
    title="One matrix, two heads",
    says="Head by head, a weak head gets as large a step as a strong one.",
    controls=(
        Control(
            name="M",
            value=[[2.0, 0.5], [-0.5, 1.5], [0.2, -0.1], [0.1, 0.3]],
            label="momentum, heads one below the other",
            kind="array",
            low=-3.0,
            high=3.0,
            step=0.05,
            rows=("head 1, row 1", "head 1, row 2", "head 2, row 1", "head 2, row 2"),
        ),
    ),
    graphs={"": heads_graph},
    python=orthogonalized,
    names={
        "blocks": "the heads",
        "per_head": "orthogonal by head",
        "whole": "orthogonal at once",
    },
)

WIDGETS = (MUON,)
