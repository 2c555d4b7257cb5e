"""Widgets of speculative decoding: overlap and correction, and a block rolled back."""

import numpy as np

from k3.graph import primitives as p
from k3.graph import speculate as graph
from k3.graph.term import Block
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import speculate

TOKENS = ("token 1", "token 2", "token 3", "token 4")
DRAFTS = ("draft 1", "draft 2", "draft 3", "draft 4", "draft 5")


def overlap_graph() -> Block:
    """Acceptance, correction and emitted law of one drafted token."""
    target, draft = (graph.scaled(p.real(name, "W")) for name in ("p", "q"))
    outputs = {"target": target, "draft": draft, **graph.overlap(target, draft)}
    return Block("overlap", "sum min(p, q), and what replaces a rejection", outputs)


def overlapped(p, q):  # type: ignore[no-untyped-def]
    """Chance of acceptance, correction, and the law of what is emitted: p."""
    p, q = (np.array(x) / sum(x) for x in (p, q))
    return {
        "target": p,
        "draft": q,
        "acceptance": speculate.acceptance(p, q),
        "correction": speculate.correction(p, q),
        "emitted": speculate.emitted(p, q),
    }


OVERLAP = Widget(
    name="overlap",
    title="What a draft keeps",
    says="The overlap is kept; the correction fills up to the target, exactly.",
    controls=(
        Control(
            name="p",
            value=[0.5, 0.3, 0.15, 0.05],
            label="target p, scaled to sum 1",
            kind="array",
            low=0.01,
            columns=TOKENS,
        ),
        Control(
            name="q",
            value=[0.2, 0.4, 0.3, 0.1],
            label="draft q, scaled to sum 1",
            kind="array",
            low=0.01,
            columns=TOKENS,
        ),
    ),
    graphs={"": overlap_graph},
    python=overlapped,
    names={
        "target": "target p",
        "draft": "draft q",
        "acceptance": "chance that the draft is kept",
        "correction": "law of the replacement",
        "emitted": "law of what is emitted",
    },
)


def rollback_graph() -> Block:
    """A block of five drafts: kept up to the first u >= p/q."""
    found = graph.rollback(*(p.real(name, "N") for name in ("uniforms", "p", "q")))
    return Block("rollback", "Which drafts stay, and what is taken back", found)


def rolled_back(p, q, uniforms):  # type: ignore[no-untyped-def]
    """A block of drafts verified: token 0 is what was drafted, 1 is all others."""
    laws = [[np.array([x, 1 - x]) for x in side] for side in (p, q)]
    bonus, rows = np.array([0.5, 0.5]), len(p)
    out = speculate.verify([0] * rows, [*laws[0], bonus], laws[1], [*uniforms, 0.5])
    accepted = len(out) - 1
    pairs = zip(*laws, strict=True)
    keep = [speculate.keep_probability(a, b, 0) for a, b in pairs]
    return {
        "keep": keep,
        "kept": [int(i < accepted) for i in range(rows)],
        "accepted": accepted,
        "emitted": len(out),
        "dropped": rows - accepted,
    }


ROLLBACK = Widget(
    name="rollback",
    title="A block of drafts, and what is taken back",
    says="The first rejection ends the block: later rows are taken back.",
    controls=(
        Control(
            name="p",
            value=[0.6, 0.5, 0.2, 0.7, 0.4],
            label="target's chance of the draft, p",
            kind="array",
            low=0.01,
            high=0.99,
            columns=DRAFTS,
        ),
        Control(
            name="q",
            value=[0.5, 0.6, 0.8, 0.7, 0.5],
            label="draft's own chance of it, q",
            kind="array",
            low=0.01,
            high=0.99,
            columns=DRAFTS,
        ),
        Control(
            name="uniforms",
            value=[0.3, 0.4, 0.5, 0.2, 0.9],
            label="random numbers u",
            kind="array",
            low=0.0,
            high=0.99,
            columns=DRAFTS,
        ),
    ),
    graphs={"": rollback_graph},
    python=rolled_back,
    names={
        "keep": "chance to keep, min(1, p/q)",
        "kept": "kept (1 = yes)",
        "accepted": "drafts accepted",
        "emitted": "tokens emitted",
        "dropped": "cache rows taken back",
    },
)

WIDGETS = (OVERLAP, ROLLBACK)
