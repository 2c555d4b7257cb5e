"""Cut points: named values that are compared and then replaced by fresh ones.

The fresh value depends on the value alone, so a right program stays right; degrees and
levels of exp start again, and one bug does not hide the next.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from k3.verify.exact.number import Num
from k3.verify.exact.tensor import ExactTensor, make

Tap = Callable[[str, Any], Any]
Rows = tuple[Any, Any]
"""Residues of level 0 and shadows, [rows width]."""


class Cuts:
    """The values that passed each cut point of one run, in order."""

    def __init__(self) -> None:
        self.seen: dict[str, list[Any]] = {}

    def __call__(self, name: str, x: Any) -> Any:
        """Record x and return its replacement."""
        if isinstance(x, Num):
            self.seen.setdefault(name, []).append(x)
            each = [x.run.tower.oracle_int(f"cut:{name}", v) for v in x.c[0].flat]
            return x.run.wrap(each, x.f)
        if not isinstance(x, ExactTensor):
            return x
        self.seen.setdefault(name, []).append(x)
        with _disable_current_modes():
            fresh = x.run.tower.oracle(f"cut:{name}", x.c[0])
            return make(x.run, x.f.clone(), fresh, x.dtype)

    def rows(self, name: str) -> Rows:
        """All values of a cut point, tokens behind one another, [rows width]."""
        values = self.seen[name]
        if isinstance(values[0], Num):
            width = values[0].shape[-1]
            c = [np.asarray(x.c[0]).reshape(-1, width) for x in values]
            f = [x.f.reshape(-1, width) for x in values]
            return np.concatenate(c).astype(np.int64), np.concatenate(f)
        # Passes over parts of a sequence follow one another along its token axis.
        axis = max(values[0].dim() - 2, 0)
        c_ = torch.cat([x.c[0] for x in values], axis).flatten(0, -2)
        f_ = torch.cat([x.f for x in values], axis).flatten(0, -2)
        return c_.numpy(), f_.numpy()


class Parted(Exception):
    """A cut point differs, and the rest of the run is of no interest."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Watch(Cuts):
    """Cut points that stop the run at the first one that differs from a reference."""

    def __init__(self, wanted: Cuts) -> None:
        super().__init__()
        self.wanted = {name: wanted.rows(name)[0] for name in wanted.seen}

    def __call__(self, name: str, x: Any) -> Any:
        """Record x, and raise Parted unless the rows so far are the reference's."""
        fresh = super().__call__(name, x)
        if name in self.wanted and isinstance(x, ExactTensor):
            rows = self.rows(name)[0]
            if not np.array_equal(rows, self.wanted[name][: len(rows)]):
                raise Parted(name)
        return fresh


def keep(name: str, value: Any) -> Any:
    """The tap that cuts nothing."""
    return value


def by_name(names: Sequence[str]) -> Callable[[nn.Module, Tap], list[Any]]:
    """Cut at the outputs of submodules; a tuple is cut at its first entry."""

    def attach(module: nn.Module, tap: Tap) -> list[Any]:
        found = dict(module.named_modules())
        return [found[n].register_forward_hook(_hook(n, tap)) for n in names]

    return attach


def _hook(name: str, tap: Tap) -> Callable[..., Any]:
    def hook(module: nn.Module, args: Any, out: Any) -> Any:
        if isinstance(out, Tensor):
            return tap(name, out)
        return (tap(name, out[0]), *out[1:])

    return hook
