"""ExactTensor: a torch tensor of tower values with a float64 shadow beside them.

The shadow decides order, routes and branches; the residues decide equality. A constant
holds a shadow alone until it meets a value: then its entries are read as literals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from k3 import errors
from k3.verify.exact import literal, nested
from k3.verify.exact.tower import Tower


def words(text: str) -> frozenset[str]:
    """The names in a text."""
    return frozenset(text.split())


class Unsupported(errors.RequestError, NotImplementedError):
    """An operation without an exact meaning."""


@dataclass(slots=True)
class Cell:
    """What all views of one storage share: valid levels, and what is known of them."""

    depth: int
    constant: bool = False
    written: bool = False
    """Whether anybody wrote in place: then no logarithm is known any more."""


class ExactTensor(torch.Tensor):
    """`f` is the shadow, `c` one residue tensor a level, `dtype` what is claimed."""

    f: Tensor
    run: Any
    cell: Cell
    _c: list[Tensor] | None
    parts: tuple[list[Tensor], list[Tensor]] | None

    @staticmethod
    def __new__(
        cls: type,
        run: Any,
        f: Tensor,
        c: Sequence[Tensor] | None,
        dtype: torch.dtype,
        *,
        cell: Cell | None = None,
        requires_grad: bool = False,
    ) -> "ExactTensor":
        """Wrap a shadow and residues; without residues it is a constant."""
        wrap: Any = torch.Tensor._make_wrapper_subclass
        t: ExactTensor = wrap(
            cls,
            f.shape,
            strides=f.stride(),
            storage_offset=f.storage_offset(),
            dtype=dtype,
            device="cpu",
            requires_grad=requires_grad,
        )
        t.f, t.run, t.parts = f, run, None
        t._c = None if c is None else list(c)
        depth = run.tower.levels if c is None else len(c)
        t.cell = cell or Cell(depth, c is None)
        return t

    @property
    def depth(self) -> int:
        """Levels that are valid."""
        return self.cell.depth

    @property
    def c(self) -> list[Tensor]:
        """The valid residues; a constant reads its entries as literals first."""
        if self._c is None:
            self._c = _read(self.run.tower, self.f)
        return self._c[: self.cell.depth]

    @property
    def logarithm(self) -> tuple[list[Tensor], list[Tensor]] | None:
        """x and y of a value that is x + log(y), beside its residues."""
        return None if self.cell.written else self.parts

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        some = self.f.flatten()[:4].tolist()
        return f"ExactTensor(shape={tuple(self.shape)}, about {some})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Outside the mode an exact tensor still means its own run."""
        given = nested.leaves((args, kwargs or {}))
        run = next(x.run for x in given if is_exact(x))
        return run.dispatch(func, args, kwargs or {})


def is_exact(x: Any) -> bool:
    """Whether x carries residues."""
    return isinstance(x, ExactTensor)


def _read(tower: Tower, f: Tensor) -> list[Tensor]:
    found, place = torch.unique(f.nan_to_num(0.0, torch.inf), return_inverse=True)
    rows = [literal.residues(tower, v) for v in found.tolist()]
    out = []
    for i in range(tower.levels):
        values = tower.constant(i, [row[i] for row in rows])
        out.append(like(f, values[place].reshape(f.shape)))
    return out


def like(f: Tensor, c: Tensor) -> Tensor:
    """Residues with the strides of their shadow, so that views of both succeed."""
    if c.stride() == f.stride():
        return c
    return torch.empty_strided(f.shape, f.stride(), dtype=c.dtype).copy_(c)


def make(run: Any, f: Tensor, c: Sequence[Tensor], dtype: torch.dtype) -> ExactTensor:
    """A fresh tensor of values."""
    return ExactTensor(run, f, [like(f, x) for x in c], dtype)


def make_log(
    value: ExactTensor, x: Sequence[Tensor], y: Sequence[Tensor]
) -> ExactTensor:
    """A value that is known to be x + log(y)."""
    value.parts = list(x), list(y)
    return value


def log_parts(t: ExactTensor) -> tuple[list[Tensor], list[Tensor]]:
    """x and y with t = x + log(y); y is 1 where t is no logarithm."""
    return t.logarithm or (t.c, [torch.ones_like(p) for p in t.c])


def constant(run: Any, f: Tensor, dtype: torch.dtype) -> ExactTensor:
    """A fresh constant."""
    return ExactTensor(run, f, None, dtype)
