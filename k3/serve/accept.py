"""The lossless rule: which drafted tokens stay, and which token follows them.

Matches: spec.speculate.verify and verify_tree; the proof is k3/proof/block.py.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from k3.errors import RequestError
from k3.kernels import sample


def verify(
    ids: Sequence[int],
    p: Float[Tensor, "n W"],
    q: Float[Tensor, "m W"] | None,
    uniforms: Sequence[float],
) -> tuple[list[int], int]:
    """The tokens emitted for a drafted block of m, and how many were drafted.

    p is the target's law after each prefix, q the draft's that the tokens were drawn
    from, None for a draft that was certain of them. Of m + 1 numbers uniform in
    [0, 1), one decides on each drafted token, min(1, p/q), and the last picks the
    correction after a rejection or the bonus token after the block. With p one law
    short there is no bonus token.

    Raises: RequestError for a token that its own draft gives no chance.
    """
    for i, token in enumerate(ids):
        chance = _chance(token, None if q is None else q[i])
        if not uniforms[i] < min(1.0, float(p[i, token]) / chance):
            rest = correction(p[i], token, None if q is None else q[i])
            return [*ids[:i], _pick(rest, uniforms[-1])], i
    if len(p) == len(ids):
        return [*ids], len(ids)
    return [*ids, _pick(p[len(ids)], uniforms[-1])], len(ids)


def verify_tree(
    ids: Sequence[int],
    above: Sequence[int],
    p: Sequence[Float[Tensor, " W"] | None],
    q: Float[Tensor, "m W"] | None,
    uniforms: Sequence[float],
) -> tuple[list[int], int | None]:
    """The drafted tokens of a tree that stay, in order, and the token that follows.

    Token i follows token above[i], -1 for the context; p[i + 1] is the target's law
    behind it, p[0] behind the context, q[i] the law that it was drawn from, given
    those before it that follow the same one. Each in turn is kept with chance
    min(1, r / q), r being p at first and, after a rejection, max(0, r - q) over its
    sum: whatever the draft, what is emitted has the law p. Uniform number i decides
    on token i, the last one picks what follows. Of a chain it is `verify`. Behind a
    token without a law nothing follows.

    Source: recursive rejection sampling, arXiv 2305.09781 and 2402.14160.
    Raises: RequestError for a token that its own draft gives no chance.
    """
    path, at, rest = list[int](), -1, p[0]
    for i, token in enumerate(ids):
        if above[i] != at or rest is None:
            continue
        chance = _chance(token, None if q is None else q[i])
        if uniforms[i] < min(1.0, float(rest[token]) / chance):
            path, at, rest = [*path, i], i, p[i + 1]
        else:
            rest = correction(rest, token, None if q is None else q[i])
            rest = rest / rest.sum()
    return path, None if rest is None else _pick(rest, uniforms[-1])


def _chance(token: int, q: Float[Tensor, " W"] | None) -> float:
    chance = 1.0 if q is None else float(q[token])
    if not chance > 0:
        raise RequestError(
            f"a draft draws its tokens from its own law: got token {token} with "
            f"chance {chance}; give the law that it was drawn from"
        )
    return chance


def correction(
    p: Float[Tensor, " W"], token: int, q: Float[Tensor, " W"] | None
) -> Float[Tensor, " W"]:
    """max(0, p - q), what the draft proposes too rarely; `token` is q if q is None."""
    if q is None:
        rest = p.clone()
        rest[token] = 0
    else:
        rest = (p - q).clamp(min=0)
    # Only rounding can leave nothing: p and q are then the same law.
    return rest if bool(rest.sum() > 0) else p


def _pick(law: Float[Tensor, " W"], uniform: float) -> int:
    return int(sample.draw(law[None], law.new_tensor([uniform])))


def uniforms(count: int, generator: torch.Generator) -> list[float]:
    """So many numbers uniform in [0, 1)."""
    drawn: list[float] = torch.rand(
        count, generator=generator, dtype=torch.float64
    ).tolist()
    return drawn
