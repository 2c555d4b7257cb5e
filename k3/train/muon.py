"""Per-Head Muon: momentum, orthogonalized matrix by matrix, many of a shape at once.

The paper gives no constants; those here are the public ones of K2's line.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from k3.train.matrices import Cut

STEPS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
MOMENTUM = 0.95
SCALE = 0.2
BATCH_VALUES = 2**21
"""Values orthogonalized in one batch: a few MB, that a cache still holds."""

_SAFE = (1e-12, 1e12)
"""Norms whose square fp32 holds, and the squares of the parts that matter."""


def products() -> torch.dtype:
    """Return the dtype of the products: bf16 where this CPU multiplies it in hardware.

    By the processor and not by a timing, so that a run can be repeated.
    """
    fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if fast or torch.cuda.is_available() else torch.float32


def newton_schulz(
    X: Float[Tensor, "*N R C"],
    steps: int = STEPS,
    coefficients: tuple[float, float, float] = COEFFICIENTS,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "*N R C"]:
    """X <- aX + (bA + cA^2) X with A = X X^T, from X / |X|_F; zero stays zero.

    Every matrix of a batch alone, on its shorter side, with products in `dtype`
    (None: that of X, which the result also has). Matches: spec.muon.newton_schulz.
    """
    if X.shape[-2] > X.shape[-1]:
        return newton_schulz(X.mT, steps, coefficients, dtype).mT
    a, b, c = coefficients
    Y = unit(X).to(dtype or X.dtype).reshape(-1, *X.shape[-2:])
    for _ in range(steps):
        A = torch.bmm(Y, Y.mT)
        Y = torch.baddbmm(Y, torch.baddbmm(A, A, A, beta=b, alpha=c), Y, beta=a)
    return Y.view(X.shape).to(X.dtype)


def unit(X: Float[Tensor, "*N R C"]) -> Float[Tensor, "*N R C"]:
    """X / |X|_F for each matrix, of any size that its dtype holds; zero stays zero."""
    norm = torch.linalg.vector_norm(X, dim=(-2, -1), keepdim=True)
    if not bool(((norm > _SAFE[0]) & (norm < _SAFE[1])).all()):
        top = X.abs().amax((-2, -1), keepdim=True)
        X = X / torch.where(top > 0, top, 1)
        norm = torch.linalg.vector_norm(X, dim=(-2, -1), keepdim=True)
    return X / torch.where(norm > 0, norm, 1)


def update_scale(rows: int, columns: int, scale: float = SCALE) -> float:
    """0.2 sqrt(max(rows, columns)): an update as large as AdamW's would be."""
    return scale * max(rows, columns) ** 0.5


@dataclass(slots=True)
class Part:
    """Matrices of one parameter: weights, momentum and gradient, all [n R C]."""

    W: Tensor
    M: Tensor
    G: Tensor


class Muon:
    """Momentum of all matrices, and the step that they take.

    `orthogonalized` counts the matrices of the last step. A matrix whose gradient is
    zero, such as an idle expert, stays as it is: its old momentum, orthogonalized,
    would move it as far as a live one.
    """

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        cuts: Mapping[str, Cut],
        *,
        decay: float,
        momentum: float = MOMENTUM,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.weights, self.cuts = dict(weights), dict(cuts)
        self.moments = {n: torch.zeros_like(w.data) for n, w in weights.items()}
        self.decay, self.momentum = decay, momentum
        self.dtype = dtype or products()
        self.orthogonalized = 0

    @torch.no_grad()
    def step(
        self,
        gradients: Mapping[str, Tensor | None],
        rate: float,
        pool: Executor | None = None,
    ) -> None:
        """W' = W - rate (0.2 sqrt(max(R, C)) update + decay W), for every matrix.

        With `pool` its threads share the batches; a batch gives the same bits in any.
        """
        by_shape: dict[tuple[int, int], list[Part]] = {}
        for name, gradient in gradients.items():
            if gradient is not None:
                for part in self._parts(name, gradient):
                    shape = (part.W.shape[-2], part.W.shape[-1])
                    by_shape.setdefault(shape, []).append(part)
        joint = [b for s, parts in by_shape.items() for b in batches(parts, s)]
        move = partial(self._move, rate=rate)
        self.orthogonalized = sum((pool.map if pool else map)(move, joint))

    def _parts(self, name: str, gradient: Tensor) -> Iterator[Part]:
        held = self.weights[name].data, self.moments[name], gradient.contiguous()
        views = [self.cuts[name].views(x) for x in held]
        for W, M, G in zip(*views, strict=True):
            yield Part(W, M, G)

    @torch.no_grad()
    def _move(self, batch: list[Part], rate: float) -> int:
        """Step all matrices of a batch but the idle ones; return how many moved."""
        chosen = [part.G.flatten(1).any(1).nonzero()[:, 0] for part in batch]
        found = [self._update(p, i) for p, i in zip(batch, chosen, strict=True)]
        joined = newton_schulz(torch.cat(found), dtype=self.dtype)
        updates = joined.split([len(i) for i in chosen])
        kept = 1 - rate * self.decay
        size = rate * update_scale(*joined.shape[-2:])
        for part, index, update in zip(batch, chosen, updates, strict=True):
            if len(index) == len(part.W):
                part.W.mul_(kept).sub_(update, alpha=size)
            else:
                part.W[index] = (part.W[index] * kept).sub_(update, alpha=size)
        return len(joined)

    def _update(self, part: Part, index: Tensor) -> Float[Tensor, "n R C"]:
        """Nesterov: M' = mu M + G in place, and G + mu M' of the live matrices."""
        mu = self.momentum
        if len(index) == len(part.W):
            after = part.M.mul_(mu).add_(part.G)
            return torch.add(part.G, after, alpha=mu)
        G = part.G[index]
        after = part.M[index].mul_(mu).add_(G)
        part.M[index] = after
        return torch.add(G, after, alpha=mu)


def batches(parts: list[Part], shape: tuple[int, int]) -> Iterator[list[Part]]:
    """Cut long stacks and join short ones, to batches of about BATCH_VALUES."""
    room = max(1, BATCH_VALUES // (shape[0] * shape[1]))
    batch: list[Part] = []
    held = 0
    for part in parts:
        pieces = (x.split(room) for x in (part.W, part.M, part.G))
        for W, M, G in zip(*pieces, strict=True):
            if batch and held + len(W) > room:
                yield batch
                batch, held = [], 0
            batch.append(Part(W, M, G))
            held += len(W)
    if batch:
        yield batch
