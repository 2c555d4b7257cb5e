"""A native kernel as one operation: of autograd, and in torch.compile's graphs."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Ints = Sequence[int]
Floats = Sequence[float]
Run = Callable[[list[Tensor], Ints, Floats], list[Tensor]]
Back = Callable[[list[Tensor], list[Tensor], Ints, Floats], list[Tensor]]

FORWARD = "(Tensor[] given, SymInt[] ints, float[] floats) -> Tensor[]"
BACKWARD = "(Tensor[] saved, Tensor[] grads, SymInt[] ints, float[] floats) -> Tensor[]"


class Operation:
    """`k3::name`, and `k3::name_backward` where it has gradients.

    `run(given, ints, floats)` returns the results and behind them `kept` tensors that
    the backward pass wants; `like` returns the same without values. `back(saved, grads,
    ints, floats)` takes `given` with what was kept and the gradients of the results; it
    returns those of the floating-point tensors in `given`. All that is returned is
    contiguous. Without `back` nothing that is recorded may come here.
    """

    def __init__(
        self, name: str, run: Run, like: Run, *, back: Back | None = None, kept: int = 0
    ) -> None:
        self.run, self.back, self.kept = run, back, kept
        define = torch.library.custom_op
        self.traced = define(f"k3::{name}", run, mutates_args=(), schema=FORWARD)
        self.traced.register_fake(like)
        if back is not None:
            name = f"k3::{name}_backward"
            self.pulled = define(name, back, mutates_args=(), schema=BACKWARD)
            self.pulled.register_fake(self._likewise)
            self.traced.register_autograd(self._pull, setup_context=self._save)

    def __call__(
        self, given: list[Tensor], ints: Ints, floats: Floats, *, record: bool
    ) -> list[Tensor]:
        """Return the results; with `record`, autograd can follow."""
        if torch.compiler.is_compiling():
            return self._results(self.traced(given, list(ints), list(floats)))
        if record:
            return list(_Recorded.apply(self, ints, floats, *given))
        return self._results(self.run(given, ints, floats))

    def _results(self, made: list[Tensor]) -> list[Tensor]:
        return made[: len(made) - self.kept]

    def _given(self, saved: list[Tensor]) -> list[Tensor]:
        return saved[: len(saved) - self.kept]

    def _likewise(self, saved: list[Tensor], *_: Any) -> list[Tensor]:
        return [blank(x) for x in self._given(saved) if x.is_floating_point()]

    def _save(self, ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
        given, *ctx.numbers = inputs
        ctx.save_for_backward(*given, *output[len(output) - self.kept :])

    def _pull(self, ctx: Any, grads: list[Tensor]) -> tuple[Any, ...]:
        saved = list(ctx.saved_tensors)
        found = self.pulled(saved, self._results(grads), *ctx.numbers)
        # An empty list is a structure of its own, which the gradients must repeat.
        rest: Any = (None if x else [] for x in ctx.numbers)
        return self.spread(found, saved), *rest

    def spread(self, found: list[Tensor], saved: list[Tensor]) -> list[Tensor | None]:
        """Return the gradient of each given tensor, None where it can have none."""
        grads = iter(found)
        given = self._given(saved)
        return [next(grads) if x.is_floating_point() else None for x in given]


class _Recorded(torch.autograd.Function):
    """The same without torch's dispatcher; the backward pass has no gradient itself."""

    @staticmethod
    def forward(ctx: Any, kernel: Operation, *rest: Any) -> tuple[Tensor, ...]:
        *numbers, given = rest[0], rest[1], list(rest[2:])
        made = kernel.run(given, *numbers)
        end = len(made) - kernel.kept
        ctx.save_for_backward(*given, *made[end:])
        ctx.rest = kernel, numbers
        return tuple(made[:end])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        kernel, numbers = ctx.rest
        saved = list(ctx.saved_tensors)
        found = kernel.back(saved, list(grads), *numbers)
        return None, None, None, *kernel.spread(found, saved)


def blank(x: Tensor) -> Tensor:
    """Return room for what is like x, its rows one behind the other."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)
