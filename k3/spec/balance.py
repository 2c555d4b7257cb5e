"""Quantile Balancing of expert loads, Eq. 14 and 20-27 (§2.3.3, App. C).

m tokens, n experts, k experts a token: scores s [m n], token prices alpha [m], expert
prices beta [n] = -b. The production estimate by histogram is balance_histogram.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from k3.spec import moe, ops
from k3.spec.ops import Array, Number

Reading = Literal["release", "article"]


def largest(values: Array, rank: int) -> Array:
    """The rank-th largest entry of a vector, counted from 1; the last one beyond."""
    return values[ops.order(values)[min(rank, len(values)) - 1]]


def target_load(tokens: int, experts: int, k: int) -> Fraction:
    """Eq. 20: the tokens each expert should get, q = mk/n, not always an integer."""
    return Fraction(tokens * k, experts)


def cutoffs(s: Array, b: Array, k: int, reading: Reading = "release") -> Array:
    """Eq. 14 (§2.3.3): alpha_i, the (k+1)-th largest of s_i + b, [m]. k < n.

    The article takes the k-th: a chosen expert's own score, so no margin of it is
    strictly positive.
    """
    rank = k + 1 if reading == "release" else k
    return ops.stack([largest(s[i] + b, rank) for i in range(len(s))])


def threshold(margins: Array, target: Number) -> Array:
    """Eq. 26 (App. C): a minimizer of the coordinate objective, for any real target.

    The (floor(target) + 1)-th largest margin, or the smallest if there is none; the
    strict count is at most target and the weak count at least target. 0 <= target <= m.
    """
    return largest(margins, int(target // 1) + 1)


def exceedance(margins: Array, theta: Array) -> int:
    """The strict count #(margin > theta)."""
    return sum(1 for x in _keys(margins) if x > ops.key(theta))


def at_least(margins: Array, theta: Array) -> int:
    """The weak count #(margin >= theta)."""
    return sum(1 for x in _keys(margins) if x >= ops.key(theta))


def is_minimizer(margins: Array, target: Number, theta: Array) -> bool:
    """When theta minimizes coordinate_objective: strict <= target <= weak count.

    App. C says that exactly target margins lie above, which fails at a tie: margins 1
    and 0 with target 1 are minimized at theta = 1, with strict count 0.
    """
    return exceedance(margins, theta) <= target <= at_least(margins, theta)


def coordinate_objective(margins: Array, target: Number, theta: Array) -> Array:
    """Eq. 24 (App. C): target theta + sum max(0, margin - theta). Scalar."""
    hinge = ops.maximum(margins - theta, margins * 0)
    return ops.lift(margins, target) * theta + ops.total(hinge)


def bias(s: Array, alpha: Array, target: Number) -> Array:
    """Eq. 14: b_j = -quantile_{1-k/n} of s_:j - alpha, before centering. [n]."""
    columns = range(s.shape[1])
    return -ops.stack([threshold(s[:, j] - alpha, target) for j in columns])


def center(b: Array) -> Array:
    """Eq. 14: b - mean(b); every comparison of biased scores stays. [n]."""
    return b - ops.mean(b)


def step(s: Array, b: Array, k: int, reading: Reading = "release") -> Array:
    """Eq. 14: the bias that the next step uses, from this step's scores. [n]."""
    target = target_load(len(s), s.shape[1], k)
    return center(bias(s, cutoffs(s, b, k, reading), target))


def loads(s: Array, b: Array, k: int) -> list[int]:
    """Tokens that each expert gets when every token takes its top k of s + b."""
    counts = [0] * s.shape[1]
    for i in range(len(s)):
        for e in moe.top_k(s[i] + b, k):
            counts[e] += 1
    return counts


def above(s: Array, alpha: Array, b: Array) -> list[int]:
    """Tokens of each expert whose biased score lies strictly above the cutoff."""
    columns = range(s.shape[1])
    return [exceedance(s[:, j] + b[j] - alpha, alpha[0] * 0) for j in columns]


def is_assignment(x: Array, k: int) -> bool:
    """Eq. 20: x [m n] in [0, 1], rows sum to k and columns to mk/n."""
    m, n = x.shape
    rows = all(ops.key(ops.total(x[i])) == k for i in range(m))
    q = target_load(m, n, k)
    columns = all(ops.key(ops.total(x[:, j])) == q for j in range(n))
    return rows and columns and all(0 <= v <= 1 for i in range(m) for v in _keys(x[i]))


def primal(s: Array, x: Array) -> Array:
    """Eq. 20: the value sum x s of an assignment. Scalar."""
    return ops.total(ops.total(s * x))


def lagrangian(s: Array, x: Array, alpha: Array, beta: Array, k: int) -> Array:
    """Eq. 21: sum x s + sum alpha (k - rows) + sum beta (mk/n - columns). Scalar."""
    q = ops.lift(s, target_load(len(x), x.shape[1], k))
    rows = ops.total(alpha * (k - ops.total(x, 1)))
    return primal(s, x) + rows + ops.total(beta * (q - ops.total(x, 0)))


def dual(s: Array, alpha: Array, beta: Array, k: int) -> Array:
    """Eq. 22-23: the maximum of Eq. 21 over 0 <= x <= 1, an upper bound of Eq. 20.

    sum max(0, s - alpha - beta) + k sum alpha + (mk/n) sum beta. Scalar.
    """
    margins = s - alpha[:, None] - beta[None, :]
    hinge = ops.total(ops.total(ops.maximum(margins, margins * 0)))
    q = ops.lift(s, target_load(len(s), s.shape[1], k))
    return hinge + k * ops.total(alpha) + q * ops.total(beta)


def dual_gradient(s: Array, alpha: Array, beta: Array, k: int) -> list[Fraction]:
    """Eq. 27: dL/dbeta_j = mk/n - #(s_ij - alpha_i - beta_j > 0), off kinks. [n]."""
    q = target_load(len(s), s.shape[1], k)
    return [q - count for count in above(s, alpha, -beta)]


def alternate(s: Array, k: int, rounds: int) -> tuple[Array, Array]:
    """Alg. 1 (App. C): from beta = 0, minimize Eq. 23 in alpha, then in beta.

    Eq. 25-26: alpha is the (k+1)-th largest of a row of s - beta, beta the
    (mk/n+1)-th largest of a column of s - alpha. Returns alpha [m] and beta [n].
    """
    beta = s[0] * 0
    alpha = cutoffs(s, beta, k)
    for _ in range(rounds):
        alpha = cutoffs(s, -beta, k)
        beta = -bias(s, alpha, target_load(len(s), s.shape[1], k))
    return alpha, beta


def _keys(values: Array) -> Sequence[Number]:
    return [ops.key(values[i]) for i in range(len(values))]
