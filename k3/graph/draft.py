"""One EAGLE-3 draft step as a graph: fusion, one decoder layer, head.

low, mid, high [D] are the outputs of the first, fourth and final block; W_E3 [D, 3D]
fuses them. Each step starts a fresh depth and keeps only the mixer's state.
"""

from k3.graph import attn_res, model
from k3.graph import primitives as p
from k3.graph.inputs import RELEASED, Inputs, Numbers
from k3.graph.model import Case
from k3.graph.term import Term, let


def fuse(weights: Inputs, low: Term, mid: Term, high: Term) -> Term:
    """W_E3 [low | mid | high], without bias. [D]."""
    triple = let("triple", p.concat(low, mid, high))
    return let("feature", p.linear(weights.real("fusion", "D, D+D+D"), triple))


def token_input(weights: Inputs, embedding: Term, feature: Term) -> Term:
    """W embedding + F feature. [D]."""
    own = p.linear(weights.real("token_weight", "D, D"), embedding)
    return let(
        "draft_in", own + p.linear(weights.real("feature_weight", "D, D"), feature)
    )


def step(
    weights: Inputs,
    case: Case,
    embedding: Term,
    feature: Term,
    numbers: Numbers = RELEASED,
) -> dict[str, Term]:
    """The layer and the head on one input: state, next feature and logits by name."""
    depth = attn_res.start(token_input(weights, embedding, feature))
    before = model.state(weights, case[0])
    own = weights.under("layer.")
    depth, after = model.layer_step(own, case, depth, before, numbers)
    outputs = dict(zip(model.STATES[case[0]], after, strict=True))
    depth = attn_res.finish_layer(depth, 1)
    hidden = let("hidden", model.final_hidden(weights, depth, numbers))
    outputs["hidden"] = hidden
    outputs["logits"] = model.finish(weights, hidden, numbers)
    return outputs
