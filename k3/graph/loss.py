"""The masked next-token loss as a graph, with its gradient."""

from k3.graph import primitives as p
from k3.graph.term import Term, let, spread


def token_losses(logits: Term, targets: Term) -> Term:
    """-log softmax(logits)[target] of each position. [T, W], [T] to [T]."""
    chosen = p.contract("tw,tw->t", p.softmax(logits), p.one_hot(targets))
    return let("losses", -p.log(let("chosen", chosen)))


def next_token_loss(losses: Term, mask: Term) -> Term:
    """The mean over the supervised positions, at least one. mask [T] of 0 and 1."""
    return p.contract("t,t->", losses, mask) / p.total(mask, 0)


def logit_gradient(logits: Term, targets: Term, mask: Term) -> Term:
    """(softmax - onehot) / |S| on the supervised positions, else 0. [T, W]."""
    rows = p.softmax(logits) - p.one_hot(targets)
    share = mask / spread(p.total(mask, 0), mask.shape)
    return p.contract("tw,t->tw", rows, share)
