"""The lossless rule: which drafted tokens stay, and which token follows them.

Matches: spec.speculate.verify; the proof is k3/proof/block.py.
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
        chance = 1.0 if q is None else float(q[i, token])
        if not chance > 0:
            raise RequestError(
                f"a draft draws its tokens from its own law: got token {token} with "
                f"chance {chance}; give the law that it was drawn from"
            )
        if not uniforms[i] < min(1.0, float(p[i, token]) / chance):
            rest = correction(p[i], token, None if q is None else q[i])
            return [*ids[:i], _pick(rest, uniforms[-1])], i
    if len(p) == len(ids):
        return [*ids], len(ids)
    return [*ids, _pick(p[len(ids)], uniforms[-1])], len(ids)


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
