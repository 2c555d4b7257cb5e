"""Routing replay: a trainer's pass takes the experts that the sampler took."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from k3.errors import ShapeError
from k3.kernels import moe
from k3.model import Model
from k3.train import balance

NOT_KNOWN = -1


class Routed(Protocol):
    """A sample with the experts that its tokens took, if they are known."""

    @property
    def routes(self) -> Int[Tensor, "T layers k"] | None:
        """The experts of each token and layer."""

    def __len__(self) -> int:
        """How many tokens it has."""


class Replay:
    """The routers of a model, which take recorded experts while they are attached.

    Weights of the mixture are computed anew, from the scores of the present weights.
    Each thread has records of its own.
    """

    def __init__(self, model: Model) -> None:
        found = balance.routers(model)
        self.moes = [m for name, m in found.items() if not name.startswith("mtp.")]
        self._here = threading.local()

    @contextmanager
    def attached(self, *, on: bool = True) -> Iterator[None]:
        """Let the routers look for records; afterwards they choose as ever."""
        before = [module.choose for module in self.moes]
        try:
            for layer, module in enumerate(self.moes if on else ()):
                module.choose = partial(self._choose, layer)
            yield
        finally:
            for module, choose in zip(self.moes, before, strict=True):
                module.choose = choose

    @contextmanager
    def taking(self, recorded: Int[Tensor, "T layers k"] | None) -> Iterator[None]:
        """Let this thread's passes take these experts; NOT_KNOWN chooses its own.

        Raises: ShapeError for experts of another model.
        """
        if recorded is not None and recorded.shape[1] != len(self.moes):
            raise ShapeError(
                f"routes have {len(self.moes)} layers of experts: got "
                f"{recorded.shape[1]}; replay what this model sampled"
            )
        self._here.recorded = recorded
        try:
            yield
        finally:
            self._here.recorded = None

    def _choose(
        self,
        layer: int,
        s: Float[Tensor, "T E"],
        bias: Float[Tensor, " E"],
        k: int,
        scaling: float,
    ) -> tuple[Int[Tensor, "T k"], Float[Tensor, "T k"]]:
        """Eq. 13 with the choice already made."""
        recorded: Tensor | None = getattr(self._here, "recorded", None)
        if recorded is None:
            return moe.choose(s, bias, k, scaling)
        index = recorded[:, layer].long()
        own = moe.top_k(s.detach() + bias, k)
        index = torch.where(index == NOT_KNOWN, own, index)
        chosen = s.gather(-1, index)
        return index, chosen / (chosen.sum(-1, keepdim=True) + 1e-20) * scaling


def joined(lessons: Sequence[Routed]) -> Int[Tensor, "T layers k"] | None:
    """The routes of samples behind one another; None where none are known."""
    known = [x.routes for x in lessons if x.routes is not None]
    if not known:
        return None
    shape = known[0].shape[1:]
    return torch.cat(
        [
            known[0].new_full((len(x), *shape), NOT_KNOWN)
            if x.routes is None
            else x.routes
            for x in lessons
        ]
    )
