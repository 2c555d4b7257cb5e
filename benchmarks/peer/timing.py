"""Clocks, prompts and the loss that every implementation is timed with."""

import statistics
import time
from collections.abc import Callable

import torch

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
WARM = 3


class Timer:
    def __init__(self, clock: str) -> None:
        self.now = CLOCKS[clock]

    def seconds(self, run: Callable[[], object]) -> float:
        start = self.now()
        run()
        return self.now() - start

    def steps(self, run: Callable[[], object], count: int) -> float:
        for _ in range(WARM):
            run()
        return statistics.median(self.seconds(run) for _ in range(count))


def ids(words: int, batch: int, tokens: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(tokens)
    return torch.randint(words - 16, (batch, tokens), generator=generator)


def loss(logits: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    flat = logits[:, :-1].flatten(0, 1).float()
    return torch.nn.functional.cross_entropy(flat, rows[:, 1:].flatten())
