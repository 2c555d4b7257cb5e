"""Speculative decoding: acceptance, correction, and whole blocks.

p is the target's distribution, q the draft's, both [W] with entries >= 0 and sum 1.
"""

from collections.abc import Callable, Sequence

from k3.spec import kda, ops
from k3.spec.ops import Array

# The next-token distribution that a model gives after a prefix of token ids.
Conditional = Callable[[tuple[int, ...]], Array]
Law = dict[tuple[int, ...], Array]


def acceptance(p: Array, q: Array) -> Array:
    """The chance that a drafted token is kept: sum min(p, q) = 1 - TV. Scalar."""
    return ops.total(ops.minimum(p, q))


def total_variation(p: Array, q: Array) -> Array:
    """Half the sum of |p - q|, in [0, 1]. Scalar."""
    return ops.total(abs(p - q)) / 2


def residual(p: Array, q: Array) -> Array:
    """max(0, p - q) = p - min(p, q): what the draft proposes too rarely. [W]."""
    return ops.maximum(p - q, p * 0)


def correction(p: Array, q: Array) -> Array:
    """The distribution of the token that replaces a rejected one. acceptance < 1."""
    rest = residual(p, q)
    return rest / ops.total(rest)


def keep_probability(p: Array, q: Array, token: int) -> Array:
    """The chance min(1, p/q) with which this drafted token is kept; q[token] > 0."""
    one = ops.lift(p, 1)
    return ops.minimum(one, p[token] / q[token])


def emitted(p: Array, q: Array) -> Array:
    """The law of the emitted token: min(p, q) + (1 - acceptance) correction = p. [W].

    Written with the residual itself, which is that product, so that p = q is allowed.
    """
    return ops.minimum(p, q) + residual(p, q)


def pick(p: Array, uniform: Array) -> int:
    """The token that a uniform number in [0, 1) picks from p by its running sum."""
    reached = ops.key(p[0])
    for token in range(len(p) - 1):
        if ops.key(uniform) < reached:
            return token
        reached = reached + ops.key(p[token + 1])
    return len(p) - 1


def verify(
    draft: Sequence[int],
    p: Sequence[Array],
    q: Sequence[Array],
    uniforms: Sequence[Array],
) -> list[int]:
    """The tokens emitted for a drafted block of n: kept ones, then one more.

    p [n+1 W] after each prefix, q [n W], uniforms [n+1]: one a draft token, the last
    picks the correction after a rejection, or the bonus token if all were kept.
    """
    out: list[int] = []
    for i, token in enumerate(draft):
        kept = ops.key(uniforms[i]) < ops.key(keep_probability(p[i], q[i], token))
        if not kept:
            return [*out, pick(correction(p[i], q[i]), uniforms[-1])]
        out.append(token)
    return [*out, pick(p[len(draft)], uniforms[-1])]


def verify_tree(
    draft: Sequence[int],
    above: Sequence[int],
    p: Sequence[Array],
    q: Sequence[Array],
    uniforms: Sequence[Array],
) -> list[int]:
    """The tokens emitted for a tree of n drafted tokens: a path of it, then one more.

    Token i follows token above[i] < i, -1 for the context. p [n+1 W] behind the context
    and each token, q [n W] the law that token i was drawn from given its elder
    siblings, uniforms [n+1]. Each sibling is judged by what its elders' rejections
    have left. Of a chain it is `verify`.
    """
    out: list[int] = []
    at, rest = -1, p[0]
    for i, token in enumerate(draft):
        if above[i] != at:
            continue
        if ops.key(uniforms[i]) < ops.key(keep_probability(rest, q[i], token)):
            out.append(token)
            at, rest = i, p[i + 1]
        else:
            rest = correction(rest, q[i])
    return [*out, pick(rest, uniforms[-1])]


def candidates_law(p: Array, q: Array, count: int) -> Array:
    """The law of a place's token with `count` candidates drawn without replacement.

    Summed over all that can be drawn from q and kept or rejected in turn. That it is p,
    whatever q and the count are, makes a tree lossless. [W].
    """
    if count == 0:
        return p
    law = p * 0
    for token in range(len(p)):
        if not ops.key(q[token]) > 0:
            continue
        own, kept = kda.identity(p)[token], keep_probability(p, q, token)
        law = law + q[token] * kept * own
        if ops.key(kept) < 1:
            rest, left = correction(p, q), q * (1 - own)
            if ops.key(ops.total(left)) > 0:
                rest = candidates_law(rest, left / ops.total(left), count - 1)
            law = law + q[token] * (1 - kept) * rest
    return law


def target_law(p: Conditional, length: int, prefix: tuple[int, ...] = ()) -> Law:
    """The law of `length` tokens sampled from the target one by one."""
    if length == 0:
        return {prefix: 1}
    here, law = p(prefix), {}
    for token in range(len(here)):
        for sequence, rest in target_law(p, length - 1, (*prefix, token)).items():
            law[sequence] = here[token] * rest
    return law


def block_law(
    p: Conditional, q: Conditional, length: int, prefix: tuple[int, ...] = ()
) -> Law:
    """The law of length + 1 tokens when a block of `length` is drafted and verified.

    After a rejection the remaining tokens come from the target; the theorem is that
    this is target_law(p, length + 1).
    """
    if length == 0:
        return target_law(p, 1, prefix)
    here, draft = p(prefix), q(prefix)
    kept, replaced = ops.minimum(here, draft), residual(here, draft)
    law: Law = {}
    for token in range(len(here)):
        after = (*prefix, token)
        accepted = block_law(p, q, length - 1, after)
        corrected = target_law(p, length, after)
        for sequence, rest in accepted.items():
            law[sequence] = kept[token] * rest + replaced[token] * corrected[sequence]
    return law


def likelihood_loss(p: Array, q: Array) -> Array:
    """Eq. 16: L_LK = -log sum min(p, q); infinite iff no token is shared."""
    return -ops.log(acceptance(p, q))


def unrolled_loss(p: Sequence[Array], q: Sequence[Array]) -> Array:
    """The sum of Eq. 16 over the steps of the unroll, seven in the paper."""
    return ops.total(
        ops.stack([likelihood_loss(*pair) for pair in zip(p, q, strict=True)])
    )
