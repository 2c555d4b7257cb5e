"""One text three ways: whole, in pieces, token by token. The answers must agree."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from k3.model import DecodeState, Model


@dataclass(frozen=True, slots=True)
class Difference:
    """Largest differences from the whole sequence, relative to its largest value."""

    logits: float
    state: float


def streaming(model: Model, ids: list[int], piece: int) -> Difference:
    """Run `ids` in pieces of so many tokens, carrying the state, against one pass.

    A piece of 1 is decoding as generation does it; the last piece may be shorter.
    """
    row = torch.tensor([ids], device=model.device)
    with torch.no_grad():
        whole, whole_state = model(row, state=model.init_state(1))
        state, parts = model.init_state(1), []
        for start in range(0, len(ids), piece):
            logits, state = model(row[:, start : start + piece], state=state)
            parts.append(logits)
    return Difference(
        logits=relative(torch.cat(parts, 1), whole),
        state=max(relative(*pair) for pair in _paired(state, whole_state)),
    )


def relative(got: Tensor, expected: Tensor) -> float:
    """Largest difference over the largest expected; infinite for NaN, other shapes."""
    if got.shape != expected.shape:
        return float("inf")
    gap = float((got.double() - expected.double()).abs().max())
    scale = float(expected.double().abs().max())
    error = gap / scale if scale > 0 else gap
    return error if error == error else float("inf")


def _paired(got: DecodeState, expected: DecodeState) -> Iterator[tuple[Tensor, Tensor]]:
    """The tensors of two states under the same names, empty ones left out."""
    mine, theirs = got.pack(), expected.pack()
    for name, value in theirs.items():
        if value.numel():
            yield mine[name], value
