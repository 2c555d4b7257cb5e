"""Documents behind one another in one row, none of which sees another (§3.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from k3.data.examples import Example
from k3.errors import ShapeError

PADDING = 255
"""The domain of padding."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Row:
    """Packed documents, as `model(ids, cu_seqlens=…)` takes them.

    `learned` belongs to `targets`: False for the last token of each document and for
    padding, whose targets mean nothing. `domains` holds a number for each token.
    """

    ids: Int[Tensor, "1 T"]
    targets: Int[Tensor, "1 T"]
    learned: Bool[Tensor, "1 T"]
    domains: UInt8[Tensor, "1 T"]
    cu_seqlens: Int[Tensor, " bounds"]
    pixels: Float[Tensor, "N 3 P P"] | None = None
    grids: Int[Tensor, "n 3"] | None = None

    def __len__(self) -> int:
        return self.ids.shape[1]

    @property
    def real(self) -> Bool[Tensor, "1 T"]:
        """True for all but padding: what is counted when experts are balanced."""
        return self.domains != PADDING


def pack(
    examples: Sequence[Example],
    tokens: int,
    pad_id: int,
    domains: Sequence[str] | None = None,
) -> Row:
    """One row of `tokens` tokens; what the examples leave is a segment of padding.

    `domains` numbers the examples' domains; without it they count as they come.
    Raises: ShapeError where the examples do not fit.
    """
    names = list(
        dict.fromkeys(e.domain for e in examples) if domains is None else domains
    )
    lengths = [len(example) for example in examples]
    left = tokens - sum(lengths)
    if left < 0 or tokens < 1:
        raise ShapeError(
            f"a row holds its examples: got {sum(lengths)} tokens for {tokens}; give "
            "fewer or a longer row"
        )
    parts = [_part(example, pad_id, names) for example in examples]
    if left or not parts:
        parts.append(_padding(left, pad_id))
    ids, targets, learned, numbers = map(torch.cat, zip(*parts, strict=True))
    ends = torch.tensor([0, *(len(part[0]) for part in parts)]).cumsum(0)
    return Row(
        ids=ids[None],
        targets=targets[None],
        learned=learned[None],
        domains=numbers[None],
        cu_seqlens=ends,
        pixels=_joined([e.pixels for e in examples]),
        grids=_joined([e.grids for e in examples]),
    )


def concatenate(rows: Sequence[Row]) -> Row:
    """The rows as one, with the boundaries of all: a micro-batch of B = 1.

    Raises: ShapeError without any row.
    """
    if not rows:
        raise ShapeError("a batch has at least one row: got none; give one")
    starts = torch.tensor([0, *(len(row) for row in rows)]).cumsum(0)
    bounds = [
        row.cu_seqlens[1:] + start for row, start in zip(rows, starts, strict=False)
    ]
    return Row(
        ids=torch.cat([row.ids for row in rows], 1),
        targets=torch.cat([row.targets for row in rows], 1),
        learned=torch.cat([row.learned for row in rows], 1),
        domains=torch.cat([row.domains for row in rows], 1),
        cu_seqlens=torch.cat([rows[0].cu_seqlens[:1], *bounds]),
        pixels=_joined([row.pixels for row in rows]),
        grids=_joined([row.grids for row in rows]),
    )


Part = tuple[Tensor, Tensor, Tensor, Tensor]


def _part(example: Example, pad_id: int, names: Sequence[str]) -> Part:
    ids, learned = example.ids.long(), example.learned
    if example.domain not in names or len(names) > PADDING:
        raise ShapeError(
            f"a domain is one of at most {PADDING} that are numbered: got "
            f"{example.domain!r} beside {len(names)} names; name it"
        )
    number = torch.full_like(ids, names.index(example.domain), dtype=torch.uint8)
    last = ids.new_tensor([pad_id])
    end = learned.new_zeros(1)
    return ids, torch.cat([ids[1:], last]), torch.cat([learned[1:], end]), number


def _padding(count: int, pad_id: int) -> Part:
    ids = torch.full((count,), pad_id)
    numbers = torch.full((count,), PADDING, dtype=torch.uint8)
    return ids, ids, torch.zeros(count, dtype=torch.bool), numbers


def _joined(found: Sequence[Tensor | None]) -> Tensor | None:
    tensors = [tensor for tensor in found if tensor is not None]
    return torch.cat(tensors) if tensors else None
