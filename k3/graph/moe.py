"""Stable LatentMoE as a graph: Eq. 11 and 13, with the top-k as one of its nodes.

E experts of which A run, latent L, hidden F. Routed experts are stacked: w1 gate and
w3 up [E, F, L], w2 down [E, L, F].
"""

from k3.graph import primitives as p
from k3.graph.inputs import RELEASED, Inputs, Numbers
from k3.graph.situ import mlp, situ
from k3.graph.term import Term, let


def route(weights: Inputs, x: Term, numbers: Numbers = RELEASED) -> tuple[Term, Term]:
    """Eq. 13: the chosen experts and their weights, both [A]; the bias only chooses."""
    logits = p.linear(weights.real("gate.weight", "E, D"), x)
    scores = let("scores", p.sigmoid(logits))
    return choose(scores, weights.real("gate.e_score_correction_bias", "E"), numbers)


def choose(scores: Term, bias: Term, numbers: Numbers = RELEASED) -> tuple[Term, Term]:
    """Eq. 13 on given scores [E] and bias [E]: experts and weights, both [A]."""
    chosen = let("chosen", p.topk(let("adjusted", scores + bias), "A"))
    raw = let("raw", p.gather(scores, chosen))
    mixture = raw / (p.total(raw, 0) + numbers.tiny)
    return chosen, let("weights", mixture * numbers.scaling)


def routed(
    weights: Inputs, z: Term, chosen: Term, mixture: Term, numbers: Numbers
) -> Term:
    """Eq. 11: u = sum_a p_a E_a(z) over the chosen experts. z [L] to [L]."""
    names = {"w1": "E, F, L", "w2": "E, L, F", "w3": "E, F, L"}
    w1, w2, w3 = (
        p.gather(weights.real(f"experts.{name}.weight", shape), chosen)
        for name, shape in names.items()
    )
    gate = let("expert_gate", p.contract("afl,l->af", w1, z))
    up = let("expert_up", p.contract("afl,l->af", w3, z))
    out = let("expert_out", p.contract("alf,af->al", w2, situ(gate, up, numbers)))
    return let("u", p.contract("a,al->l", mixture, out))


def layer(weights: Inputs, x: Term, numbers: Numbers = RELEASED) -> Term:
    """Eq. 11 and 13: y = E^sh(x) + W_up RMSNorm(u). x [D] to [D]."""
    chosen, mixture = route(weights, x, numbers)
    z = p.linear(weights.real("routed_expert_down_proj.weight", "L, D"), x)
    u = routed(weights, let("latent", z), chosen, mixture, numbers)
    scale = weights.real("routed_expert_norm.weight", "L")
    normed = let("normed", p.rms_norm(u, scale, numbers.eps))
    wide = p.linear(weights.real("routed_expert_up_proj.weight", "D, L"), normed)
    shared = mlp(weights.under("shared_experts."), x, "Fs", numbers)
    return let("y", shared + wide)
