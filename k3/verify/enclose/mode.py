"""BallMode: every ATen call on floating-point tensors goes to a rule, or is refused.

A rule takes the run, the operation and its first two arguments by position, the others
by their names in ATen's schema. Plain tensors that it meets are exact: radius zero.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from k3.verify.enclose.ball import Ball, Unsupported, is_ball
from k3.verify.enclose.choices import Choices
from k3.verify.enclose.rounding import BITS, SLACK, Rounding
from k3.verify.enclose.rules import RULES
from k3.verify.enclose.rules.ring import result_dtype
from k3.verify.exact.mode import FACTORY
from k3.verify.exact.move import DROP, MOVES, accumulates

SHRUNK = 1 + 2.0**-40
"""Radii are sums of positive float64 numbers: a factor covers their own rounding."""


class BallMode(TorchDispatchMode):
    """One run of a program on balls under a rounding model."""

    def __init__(
        self, rounding: Rounding | None = None, choices: Choices | None = None
    ) -> None:
        super().__init__()
        self.rounding = rounding or Rounding()
        self.choices = choices or Choices()

    def lift(self, x: Any, dtype: torch.dtype | None = None) -> Ball:
        """A ball as it is; a plain tensor or number with radius zero."""
        if isinstance(x, Ball):
            return x
        t = x.detach() if isinstance(x, Tensor) else torch.tensor(x)
        claimed = t.dtype if t.dtype in BITS else dtype or torch.float32
        m = t.double().clone()
        return Ball(self, m, torch.zeros_like(m), claimed)

    def scalar(self, x: Any, dtype: torch.dtype) -> Ball:
        """A Python number that meets a tensor: rounded as an operand, if at all."""
        meant, rounding = written(float(x)), self.rounding
        m = torch.tensor(meant, dtype=torch.float64)
        r = torch.zeros_like(m)
        if rounding.declared and math.isfinite(meant):
            # Kernels round it to the dtype of the result, or to fp32, or not at all.
            held = [m.to(d).double() for d in (dtype, torch.float32, torch.float64)]
            held = held[:1] if dtype == torch.float64 else held
            r = (m - torch.stack(held)).abs().max()
        return Ball(self, m, r, dtype)

    def out(
        self,
        m: Tensor,
        r: Tensor,
        dtype: torch.dtype,
        rel: float = 0.0,
        least: float = -math.inf,
    ) -> Ball:
        """A result: r carried in, `rel` made by the operation, one rounding to dtype.

        Where nothing is known the radius is inf. An exact zero stays one.
        """
        rounding = self.rounding
        lost = torch.isnan(m) | torch.isnan(r)
        m, r = torch.where(lost, 0.0, m), torch.where(lost, math.inf, r * SHRUNK)
        masked = (m == -math.inf) & torch.isfinite(r)
        size = torch.where(masked, 0.0, m.abs()) + r
        one = rounding.unit(dtype)
        wide = size * ((1 + rel) * (1 + one) - 1 + SLACK) + rounding.tiny(dtype)
        r = torch.where((size == 0) & (r == 0), 0.0, r + wide)
        r = torch.where(size + r > rounding.largest(dtype), math.inf, r)
        return Ball(self, m, r, dtype, least * (1 - 8 * one))

    def same(self, x: Ball, m: Tensor, r: Tensor) -> Ball:
        """A result that nobody rounds."""
        return Ball(self, m, r, x.dtype, x.least)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Called by torch for every operation in the mode."""
        return self.dispatch(func, args, kwargs or {})

    def dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run one operation by its rule."""
        with _disable_current_modes():
            return self._dispatch(func, args, kwargs)

    def _dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = func._schema.name.split("::")[1]
        leaves = tree_leaves((args, kwargs))
        if not any(isinstance(x, Tensor) and x.is_floating_point() for x in leaves):
            out = func(*args, **kwargs)
            made = isinstance(out, Tensor) and out.is_floating_point()
            known = made and (name in FACTORY or name in ("_to_copy", "to"))
            return self.lift(out) if known else out
        if name in FACTORY and name != "lift_fresh":
            return self._factory(func, args, kwargs)
        inplace = name.endswith("_") and not name.startswith("_")
        base = name[:-1] if inplace and name not in RULES else name
        adds = accumulates(name, args, kwargs)
        if not adds and base not in RULES and (name in MOVES or base in MOVES):
            return self._move(func, args, kwargs)
        if base not in RULES:
            raise Unsupported(
                f"{func} has no rule for balls: add one to k3.verify.enclose.rules, "
                "or pass what it computes as an input"
            )
        named = [a.name for a in func._schema.arguments[2 : len(args)]]
        given = dict(zip(named, args[2:], strict=True)) | kwargs
        out = RULES[base](self, func, *args[:2], **given)
        return self._assign(args[0], out) if inplace else out

    def _factory(self, func: Any, args: Any, kwargs: Any) -> Any:
        """zeros_like and its kin: the same numbers, radius zero."""
        claimed = kwargs.get("dtype") or args[0].dtype
        wide = {k: v for k, v in kwargs.items() if k not in DROP}
        if claimed not in BITS:
            return func(*self._on(args, "m"), **wide, dtype=claimed)
        if "empty" in func._schema.name:
            # Uninitialized memory is nothing that a program may read.
            shape = func(*self._on(args, "m"), **wide).shape
            return self.lift(torch.zeros(shape, dtype=claimed))
        return self.lift(func(*self._on(args, "m"), **wide).to(claimed), claimed)

    def _on(self, tree: Any, part: str) -> Any:
        return tree_map(lambda x: getattr(x, part) if is_ball(x) else x, tree)

    def _move(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Data movement: the same call on centres and radii."""
        kwargs = {k: v for k, v in kwargs.items() if k not in DROP}
        if func._schema.name.endswith("_") and not is_ball(args[0]):
            raise Unsupported(
                f"{func} writes a ball into a plain tensor: make the tensor inside the "
                "program, or pass it as an input"
            )

        def lift(x: Any) -> Any:
            plain = isinstance(x, Tensor) and x.is_floating_point()
            return self.lift(x) if plain else x

        args, kwargs = tree_map(lift, (args, kwargs))
        balls = [x for x in tree_leaves((args, kwargs)) if is_ball(x)]
        m = func(*self._on(args, "m"), **self._on(kwargs, "m"))
        r = func(*self._on(args, "r"), **self._on(kwargs, "r"))
        if func._schema.name.endswith("_"):
            return self._written(args[0], balls[-1])
        joins = func._schema.name.endswith(("::cat", "::stack"))
        claimed = result_dtype(*balls) if joins else balls[0].dtype
        least = min(x.least for x in balls)
        if isinstance(m, list | tuple):
            pairs = zip(m, r, strict=True)
            return [Ball(self, a, b, claimed, least) for a, b in pairs]
        return Ball(self, m, r, claimed, least)

    def _written(self, x: Ball, source: Ball) -> Ball:
        """After a write in place: rounded where the value is wider than its place."""
        one = self.rounding.unit(x.dtype)
        if one > self.rounding.unit(source.dtype):
            x.r.add_((x.m.abs() + x.r) * one + self.rounding.tiny(x.dtype))
        return x

    def _assign(self, x: Any, source: Ball) -> Any:
        if not is_ball(x):
            raise Unsupported("a ball was written into a plain tensor in place")
        x.m.copy_(source.m)
        x.r.copy_(source.r)
        x.known = source.least, x.m._version
        return self._written(x, source)


def written(x: float) -> float:
    """A number as its author wrote it: torch hands 1e-5 on as an fp32 number."""
    if not math.isfinite(x) or float(np.float32(x)) != x:
        return x
    short = str(np.float32(x))
    digits = short.partition("e")[0].replace(".", "").strip("-0")
    return float(short) if len(digits) <= 6 else x
