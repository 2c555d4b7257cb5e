"""One-dimensional convolutions tap by tap, and their backward pass."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from k3.verify.exact.move import result_dtype
from k3.verify.exact.rules.matrix import reshaped
from k3.verify.exact.rules.ring import add, total
from k3.verify.exact.tensor import ExactTensor, Unsupported, make

NAMES = ("stride", "padding", "dilation", "groups")


class _Taps:
    """Which inputs each tap of a kernel [out in/groups taps] sees."""

    def __init__(self, func: Any, x: Any, w: Any, given: Any) -> None:
        if given["transposed"] or len(given["stride"]) != 1:
            raise Unsupported(f"{func}: only a one-dimensional convolution has a rule")
        stride, padding, dilation, self.groups = (given[n] for n in NAMES)
        self.stride, self.pad, self.dilation = stride[0], padding[0], dilation[0]
        self.inside, self.count = w.shape[1], w.shape[2]
        length = x.shape[-1] + 2 * self.pad
        self.size = (length - self.dilation * (self.count - 1) - 1) // self.stride + 1

    def padded(self, x: Tensor) -> Tensor:
        return torch.nn.functional.pad(x, (self.pad, self.pad))

    def at(self, k: int) -> slice:
        """The padded positions that tap k reads."""
        start = k * self.dilation
        return slice(start, start + (self.size - 1) * self.stride + 1, self.stride)

    def seen(self, rows: Tensor, k: int) -> Tensor:
        """[B groups in size]"""
        return rows[..., self.at(k)].unflatten(1, (self.groups, self.inside))

    def part(self, w: Tensor, k: int) -> Tensor:
        """[groups out in]"""
        return w[:, :, k].unflatten(0, (self.groups, -1))


def _convolution(run: Any, func: Any, x: Any, w: Any, **given: Any) -> ExactTensor:
    claimed = result_dtype(x, w)
    x, w = run.lift(x), run.lift(w)
    taps, c = _Taps(func, x, w, given), []
    for field, p, q in zip(run.tower.fields, x.c, w.c, strict=False):
        rows, out = taps.padded(p), None
        for k in range(taps.count):
            y = field.matmul(taps.part(q, k)[None], taps.seen(rows, k))
            out = y if out is None else field.add(out, y)
        assert out is not None
        c.append(out.flatten(1, 2))
    f = torch.conv1d(x.f, w.f, None, *(given[n] for n in NAMES))
    out, bias = make(run, f, c, claimed), given["bias"]
    if bias is None:
        return out
    return add(run, out, reshaped(run, bias, lambda p: p[:, None]))


def _backward(run: Any, func: Any, g: Any, x: Any, **given: Any) -> list[Any]:
    w, mask = run.lift(given["weight"]), given["output_mask"]
    g, x = run.lift(g), run.lift(x)
    taps = _Taps(func, x, w, given)
    back = (given[n] for n in ("stride", "padding", "dilation", "transposed"))
    rest = (given["output_padding"], given["groups"], (mask[0], mask[1], False))
    f = func(g.f, x.f, w.f, None, *back, *rest)
    levels = list(zip(run.tower.fields, g.c, x.c, w.c, strict=False))
    out: list[Any] = [None, None, None]
    if mask[0]:
        c = [_to_input(taps, fl, q, p, r) for fl, q, p, r in levels]
        out[0] = make(run, f[0], c, x.dtype)
    if mask[1]:
        c = [_to_weight(taps, fl, q, p) for fl, q, p, _ in levels]
        out[1] = make(run, f[1], c, w.dtype)
    if mask[2]:
        out[2] = total(run, g, [0, 2], False)
    return out


def _to_input(taps: _Taps, field: Any, g: Tensor, x: Tensor, w: Tensor) -> Tensor:
    """What each tap gives back to the inputs that it saw."""
    rows, split = torch.zeros_like(taps.padded(x)), g.unflatten(1, (taps.groups, -1))
    for k in range(taps.count):
        y = field.matmul(taps.part(w, k).mT[None], split).flatten(1, 2)
        rows[..., taps.at(k)] = field.add(rows[..., taps.at(k)], y)
    return rows[..., taps.pad : taps.pad + x.shape[-1]]


def _to_weight(taps: _Taps, field: Any, g: Tensor, x: Tensor) -> Tensor:
    """[out in taps], over all sequences and positions."""
    rows, split = taps.padded(x), g.unflatten(1, (taps.groups, -1))
    each = [
        field.sum(field.matmul(split, taps.seen(rows, k).mT), 0).flatten(0, 1)
        for k in range(taps.count)
    ]
    return torch.stack(each, -1)


RULES: dict[str, Callable[..., Any]] = {
    "convolution": _convolution,
    "convolution_backward": _backward,
}
