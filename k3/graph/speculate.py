"""Speculative decoding as a graph: acceptance, correction and a block of drafts.

p target and q draft [W], weights that are scaled to sum to one.
"""

from k3.graph import primitives as p
from k3.graph.compare import at_least, below, larger, peak, smaller
from k3.graph.term import Term, let, spread


def scaled(weights: Term) -> Term:
    """Weights over their sum. [W]."""
    return weights / spread(p.total(weights, 0), weights.shape)


def overlap(target: Term, draft: Term) -> dict[str, Term]:
    """sum min(p, q), the correction max(0, p - q) / its sum, and the emitted law."""
    kept = let("kept", smaller(target, draft))
    rest = let("residual", larger(target - draft, target - target))
    lost = p.total(rest, 0)
    return {
        "acceptance": p.total(kept, 0),
        "correction": rest / spread(lost, rest.shape),
        "emitted": let("emitted", kept + rest),
    }


def rollback(uniforms: Term, target: Term, draft: Term) -> dict[str, Term]:
    """Which of N drafts stay: up to the first u >= p/q. target, draft, uniforms [N].

    emitted is the accepted drafts and one more token, dropped the rows to take back.
    """
    ratio = let("ratio", target / draft)
    rejected = let("rejected", at_least(uniforms, ratio))
    count, reach = p.size("N"), p.positions("N")
    # The first rejection is at the least place that is rejected, else at N.
    place = p.where(
        p.less(spread(p.total(rejected, 0) * 0, rejected.shape), rejected),
        reach,
        spread(count, reach.shape),
    )
    accepted = let("accepted", -peak(-place))
    return {
        "keep": smaller(ratio, ratio * 0 + 1),
        "kept": below(reach, spread(accepted, reach.shape)),
        "accepted": accepted,
        "emitted": accepted + 1,
        "dropped": count - accepted,
    }
