"""The expert as a graph: Eq. 12 and 18."""

from k3.graph import primitives as p
from k3.graph.inputs import RELEASED, Inputs, Numbers
from k3.graph.term import Number, Term, let


def soft_cap(z: Term, cap: Number | Term) -> Term:
    """Eq. 18: cap tanh(z / cap)."""
    return cap * p.tanh(z / cap)


def situ(gate: Term, up: Term, numbers: Numbers = RELEASED) -> Term:
    """Eq. 12: soft_cap(gate) sigmoid(gate) soft_cap(up)."""
    capped = let("capped", soft_cap(gate, numbers.beta))
    opened = let("opened", p.sigmoid(gate))
    return capped * opened * let("lifted", soft_cap(up, numbers.linear))


def mlp(
    weights: Inputs, x: Term, hidden: str = "F", numbers: Numbers = RELEASED
) -> Term:
    """Eq. 12: W_down SiTU(W_gate x, W_up x) of width `hidden`. x [D] to [D]."""
    gate = let("gate", p.linear(weights.real("gate_proj.weight", f"{hidden}, D"), x))
    up = let("up", p.linear(weights.real("up_proj.weight", f"{hidden}, D"), x))
    down = weights.real("down_proj.weight", f"D, {hidden}")
    return let("expert", p.linear(down, let("hidden", situ(gate, up, numbers))))
