"""The masked next-token loss and its gradient with respect to the logits."""

from collections.abc import Sequence

from k3.spec import ops
from k3.spec.ops import Array


def token_loss(logits: Array, target: int) -> Array:
    """Pretraining: -log softmax(logits)[target], at least 0. [W] to a scalar."""
    return -ops.log_softmax(logits)[target]


def next_token_loss(
    logits: Array, targets: Sequence[int], mask: Sequence[bool]
) -> Array:
    """Pretraining: the mean of token_loss over the supervised positions, at least one.

    logits [T W]; mask is True where a position is supervised. Scalar.
    """
    chosen = [p for p in range(len(targets)) if mask[p]]
    losses = ops.stack([token_loss(logits[p], targets[p]) for p in chosen])
    return ops.total(losses) / len(chosen)


def shift(ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """Pretraining: inputs ids[:-1] and targets ids[1:] of next-token prediction."""
    return list(ids[:-1]), list(ids[1:])


def logit_gradient(
    logits: Array, targets: Sequence[int], mask: Sequence[bool]
) -> Array:
    """Pretraining: d loss / d logits = (softmax - onehot) / |S| on S, else 0. [T W]."""
    count = sum(1 for p in range(len(targets)) if mask[p])
    rows = []
    for p, target in enumerate(targets):
        row = ops.softmax(logits[p]) - one_hot(logits[p], target)
        rows.append(row / count if mask[p] else row * 0)
    return ops.stack(rows)


def one_hot(like: Array, target: int) -> Array:
    """One at the target, zero elsewhere, on the carrier and width of `like` [W]."""
    one, zero = ops.lift(like, 1), ops.lift(like, 0)
    row = [one if i == target else zero for i in range(len(like))]
    return ops.matrix(like, [row])[0]
