"""The widget of the loss mask: which positions teach, and what the gradient is."""

import numpy as np

from k3.graph import loss as graph
from k3.graph import primitives as p
from k3.graph.term import Block, let
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import loss

POSITIONS = ("user", "think", "reply", "end")
LOGITS = [[2.0, 0.5, -1.0], [0.0, 1.0, 0.5], [1.0, 1.0, -0.5], [-1.0, 0.0, 2.5]]


def loss_graph() -> Block:
    """The masked mean and its gradient on given logits."""
    logits, mask = p.real("logits", "T, W"), p.real("mask", "T")
    targets = p.integer("targets", "T", "W")
    losses = let("losses", graph.token_losses(logits, targets))
    outputs = {
        "losses": losses,
        "loss": graph.next_token_loss(losses, mask),
        "gradient": graph.logit_gradient(logits, targets, mask),
    }
    return Block("masked_loss", "The masked next-token loss", outputs)


def masked(logits, targets, mask):  # type: ignore[no-untyped-def]
    """The loss over supervised positions; it is not defined where there is none."""
    logits, chosen = np.array(logits), [m == 1 for m in mask]
    rows = zip(logits, targets, strict=True)
    losses = [loss.token_loss(row, target) for row, target in rows]
    if not any(chosen):
        return {"losses": losses, "loss": np.nan, "gradient": logits * np.nan}
    return {
        "losses": losses,
        "loss": loss.next_token_loss(logits, targets, chosen),
        "gradient": loss.logit_gradient(logits, targets, chosen),
    }


LOSS = Widget(
    name="loss-mask",
    title="Which positions teach",
    says="A position that is not supervised has no gradient, whatever the model says.",
    controls=(
        Control(
            name="mask",
            value=[0, 1, 1, 1],
            label="supervised",
            kind="flags",
            high=1,
            step=1,
            columns=POSITIONS,
        ),
        Control(
            name="targets",
            value=[0, 1, 0, 2],
            label="next token",
            kind="integer",
            high=2,
            step=1,
            columns=POSITIONS,
        ),
        Control(
            name="logits",
            value=LOGITS,
            label="logits",
            kind="array",
            low=-4.0,
            high=4.0,
            step=0.1,
            rows=POSITIONS,
            columns=("token 0", "token 1", "token 2"),
        ),
    ),
    graphs={"": loss_graph},
    python=masked,
    names={
        "losses": "loss of each position",
        "loss": "mean over the supervised",
        "gradient": "gradient by logit",
    },
)

WIDGETS = (LOSS,)
