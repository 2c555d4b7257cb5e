"""Ball: a tensor of intervals, centre m and radius r in float64.

m is the program in float64; |x - m| <= r both for what the program means over the real
numbers and for whatever a machine of the rounding model may have in its place.
"""

import dataclasses
import math
from typing import Any

import torch
from torch import Tensor

from k3 import errors


class Unsupported(errors.RequestError, NotImplementedError):
    """An operation without a rule for balls."""


class Ball(torch.Tensor):
    """`m` and `r` are float64, `dtype` is what the program claims.

    `least` is a number that no value of this tensor lies below, by its construction
    (a sum of squares is never negative, however large its radius is). A write through
    any view ends it.
    """

    m: Tensor
    r: Tensor
    run: Any
    known: tuple[float, int]

    @staticmethod
    def __new__(
        cls: type,
        run: Any,
        m: Tensor,
        r: Tensor,
        dtype: torch.dtype,
        least: float = -math.inf,
    ) -> "Ball":
        """Wrap a centre and a radius of the same shape."""
        wrap: Any = torch.Tensor._make_wrapper_subclass
        t: Ball = wrap(
            cls,
            m.shape,
            strides=m.stride(),
            storage_offset=m.storage_offset(),
            dtype=dtype,
            device="cpu",
        )
        if r.stride() != m.stride():
            r = torch.empty_strided(m.shape, m.stride(), dtype=r.dtype).copy_(r)
        t.m, t.r, t.run, t.known = m, r, run, (least, m._version)
        return t

    @property
    def least(self) -> float:
        """The lower end that is known, -inf if none is any more."""
        value, version = self.known
        return value if version == self.m._version else -math.inf

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        wide = float(self.r.max()) if self.r.numel() else 0.0
        some = self.m.flatten()[:4].tolist()
        return f"Ball(shape={tuple(self.shape)}, about {some}, radius {wide:.1e})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Outside its mode a ball still means its own run."""
        leaves = torch.utils._pytree.tree_leaves((args, kwargs or {}))
        run = next(x.run for x in leaves if isinstance(x, Ball))
        return run.dispatch(func, args, kwargs or {})


def is_ball(x: Any) -> bool:
    """Whether x carries a radius."""
    return isinstance(x, Ball)


def mapped(x: Any, f: Any) -> Any:
    """x with f applied to every tensor in lists, dicts and dataclasses (copied)."""
    if isinstance(x, Tensor):
        return f(x)
    if isinstance(x, dict):
        return {k: mapped(v, f) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return type(x)(mapped(v, f) for v in x)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        made = object.__new__(type(x))
        for field in dataclasses.fields(x):
            value = mapped(getattr(x, field.name), f)
            object.__setattr__(made, field.name, value)
        return made
    return x
