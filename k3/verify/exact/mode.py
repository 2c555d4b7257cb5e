"""ExactMode: every ATen call on exact tensors goes to a rule, or is named and refused.

A rule takes the run, the operation and its first two arguments by position, the others
by their names in ATen's schema.

with ExactMode(Tower(50, 3, seed=0)) as run:
    y = module(run.draw("x", torch.randn(2, 3)))
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from k3 import errors
from k3.verify.exact import move, nested
from k3.verify.exact.rules import RULES
from k3.verify.exact.tensor import ExactTensor, Unsupported, constant, is_exact, words
from k3.verify.exact.tower import Tower

# Made from nothing: in the mode these are constants that values may be written into.
FACTORY = words(
    """
    zeros ones full eye arange empty scalar_tensor linspace new_zeros new_ones
    new_full new_empty zeros_like ones_like full_like empty_like empty_strided
    lift_fresh lift_fresh_copy empty_permuted new_empty_strided
    """
)
ORDERS = ("shadow", "hash")


class ExactMode(TorchDispatchMode):
    """One run of a program: its tower, what it noted, and how choices are made.

    `order` "shadow" ranks by the float64 shadow, "hash" by a keyed hash of the value:
    a random order, the same in two programs exactly if they rank the same values.
    """

    def __init__(self, tower: Tower | None = None, order: str = "shadow") -> None:
        super().__init__()
        if order not in ORDERS:
            raise errors.RequestError(f"order must be one of {ORDERS}: got {order!r}")
        self.tower, self.order = tower or Tower(), order
        self.ops: dict[str, int] = {}
        self.notes: dict[str, int] = {}
        self.margin = math.inf
        """The smallest gap of any choice made by the shadow."""
        self.record: Callable[..., None] | None = None
        """Told of every operation: (func, args, result)."""

    def draw(self, name: str, f: Tensor, requires_grad: bool = False) -> ExactTensor:
        """A fresh independent value per entry; f is only the shadow."""
        with _disable_current_modes():
            at = torch.arange(f.numel()).reshape(f.shape)
            c = self.tower.oracle(f"input:{name}", at)
            shadow = f.detach().double().clone(memory_format=torch.contiguous_format)
            return ExactTensor(self, shadow, c, f.dtype, requires_grad=requires_grad)

    def lift(self, x: Any, dtype: torch.dtype | None = None) -> ExactTensor:
        """A number or a plain tensor as a constant; an exact tensor is itself."""
        if isinstance(x, ExactTensor):
            return x
        if isinstance(x, Tensor):
            claimed = dtype or (x.dtype if x.is_floating_point() else torch.float32)
            f = x.detach().double()
            return constant(self, f.clone() if f is x else f, claimed)
        f = torch.tensor(float(x), dtype=torch.float64)
        return constant(self, f, dtype or torch.float64)

    def note(self, what: str) -> None:
        """Count something that a reader of the report must know."""
        self.notes[what] = self.notes.get(what, 0) + 1

    def decide(self, gaps: Tensor) -> None:
        """Remember how close choices by the shadow came to a tie."""
        finite = gaps[torch.isfinite(gaps)]
        if finite.numel():
            self.margin = min(self.margin, finite.abs().min().item())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Called by torch for every operation in the mode."""
        return self.dispatch(func, args, kwargs or {})

    def dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run one operation by its rule."""
        with _disable_current_modes():
            out = self._dispatch(func, args, kwargs)
            if self.record is not None:
                self.record(func, (args, kwargs), out)
            return out

    def _dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = func._schema.name.split("::")[1]
        exact = [x for x in nested.leaves((args, kwargs)) if is_exact(x)]
        if not exact:
            return self._plain(func, name, args, kwargs)
        self.ops[name] = self.ops.get(name, 0) + 1
        inplace = name.endswith("_") and not name.startswith("_")
        base = name[:-1] if inplace and name not in RULES else name
        adds = move.accumulates(name, args, kwargs)
        if adds:
            inplace, base = name.endswith("_"), "index_put"
        elif name in move.MOVES or (base in move.MOVES and base not in RULES):
            return move.move(self, func, args, kwargs)
        if all(x.cell.constant for x in exact) and not inplace:
            return self._constant(func, args, kwargs)
        if base not in RULES:
            raise Unsupported(
                f"{func} has no exact meaning: add a rule to k3.verify.exact.rules, or "
                "pass what it computes as an input"
            )
        named = [a.name for a in func._schema.arguments[2 : len(args)]]
        kwargs = dict(zip(named, args[2:], strict=True)) | kwargs
        out = RULES[base](self, func, *args[:2], **kwargs)
        if inplace:
            move.assign(args[0], self.lift(out))
            return args[0]
        return out

    def _plain(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        out = func(*args, **kwargs)
        if name in FACTORY and isinstance(out, Tensor) and out.is_floating_point():
            # Uninitialized memory is nothing that a program may read.
            empty = "empty" in name
            f = torch.zeros_like(out) if empty else out
            made = self.lift(f.clone() if name.startswith("lift") else f)
            assert made.c is not None
            return made
        return out

    def _constant(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A function of constants alone is computed on their shadows."""

        def widen(x: Any) -> Any:
            if isinstance(x, ExactTensor):
                return x.f
            return torch.float64 if x in _NARROW else x

        out = func(*nested.mapped(widen, args), **nested.mapped(widen, kwargs))
        claimed = move.result_dtype(args, kwargs)

        def wrap(x: Any) -> Any:
            if isinstance(x, Tensor) and x.is_floating_point():
                return constant(self, x, claimed)
            return x

        return nested.mapped(wrap, out)


_NARROW = (torch.float32, torch.bfloat16, torch.float16)
