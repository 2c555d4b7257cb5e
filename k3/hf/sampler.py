"""k3's own sampler inside transformers' generate: a seed gives the same tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import LogitsProcessor

from k3.errors import RequestError
from k3.kernels import sample


class SeededSampler(LogitsProcessor):
    """Leaves one token possible in each row: the one that k3 draws from its scores.

    Every row has a generator of its own, as in `k3.model.generate`.
    """

    def __init__(
        self, options: sample.SampleOptions, seeds: int | Sequence[int]
    ) -> None:
        self._options, self._seeds = options, seeds
        self._generators: list[torch.Generator] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return scores that are 0 at the drawn tokens and -inf elsewhere."""
        if not self._generators:
            self._generators = [_seeded(seed) for seed in self._each(len(scores))]
        drawn = sample.sample(scores, self._options, self._generators).tokens
        return torch.full_like(scores, -torch.inf).scatter(1, drawn[:, None], 0.0)

    def _each(self, rows: int) -> Sequence[int]:
        if isinstance(self._seeds, int):
            return [self._seeds] * rows
        if len(self._seeds) != rows:
            raise RequestError(
                f"seed is one number, or one for each row: got {len(self._seeds)} for "
                f"{rows} rows; give as many"
            )
        return self._seeds


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
