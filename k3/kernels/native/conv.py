"""The short convolution natively, with its gradient: one pass over memory."""

from struct import Struct
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from k3 import errors
from k3.kernels.native import library
from k3.kernels.native.kda import lengths

CALL = Struct("15q")
"""The fields of `ConvCall` in conv.cpp, in their order."""


def short_conv(
    x: Float[Tensor, "B T C"],
    weight: Float[Tensor, "C 1 width"],
    window: Float[Tensor, "S past C"],
    *,
    lens: tuple[int, ...],
    record: bool,
) -> tuple[Float[Tensor, "B T C"], Float[Tensor, "S past C"]]:
    """Return kernels.conv.short_conv of fp32 or bf16 rows and fp32 weights.

    `lens` are those of the S sequences; with `record`, autograd can follow.
    """
    check(x, weight, window, lens)
    taps = weight[:, 0].T
    if record:
        return _Conv.apply(x, taps, window, lens)
    return run(x.contiguous(), taps.contiguous(), window.contiguous(), lens)


def run(
    x: Tensor, taps: Tensor, window: Tensor, lens: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """(result, window after) of contiguous tensors; taps [width C]."""
    out = torch.empty_like(x), torch.empty_like(window)
    _call((x, taps, window), out, lens)
    return out


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> tuple[Tensor, Tensor]:
        x, taps, window = (part.contiguous() for part in given[:3])
        ctx.save_for_backward(x, taps, window)
        ctx.lens = given[3]
        return run(x, taps, window, ctx.lens)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, dafter: Tensor) -> tuple[Tensor | None, ...]:
        x, taps, window = ctx.saved_tensors
        dy, dafter = dy.contiguous(), dafter.contiguous()
        dx, dwindow = torch.empty_like(x), torch.empty_like(window)
        dtaps = taps.new_empty(len(ctx.lens), *taps.shape)
        parts = tuple(part.data_ptr() for part in (dy, dafter, dx, dwindow, dtaps))
        _call((x, taps, window), None, ctx.lens, parts)
        return dx, dtaps.sum(0), dwindow, None


def _call(
    given: tuple[Tensor, Tensor, Tensor],
    out: tuple[Tensor, Tensor] | None,
    lens: tuple[int, ...],
    backward: tuple[int, ...] = (0, 0, 0, 0, 0),
) -> None:
    """Run the kernel: forward into `out`, or backward where that is None."""
    x, _, window = given
    sizes = len(lens), x.shape[-1], window.shape[1], torch.get_num_threads()
    call = CALL.pack(
        *(part.data_ptr() for part in (x, window, given[1])),
        *((0, 0) if out is None else (part.data_ptr() for part in out)),
        lengths(lens).buffer_info()[0],
        *sizes,
        *backward,
    )
    back = out is None
    library.function("k3_conv", "pii")(call, x.dtype == torch.bfloat16, back)


def check(x: Tensor, weight: Tensor, window: Tensor, lens: tuple[int, ...]) -> None:
    """Refuse what would be read past its end. Raises: ShapeError."""
    B, T, C = x.shape
    S, past, channels = window.shape
    fits = C == channels and weight.shape == (C, 1, past + 1) and S == len(lens)
    if not fits or sum(lens) != B * T or min(lens, default=0) < 0:
        raise errors.ShapeError(
            "the short convolution takes x [B T C], weight [C 1 width], window "
            "[S width-1 C] and S lengths that add up to B T: got "
            f"{[tuple(part.shape) for part in (x, weight, window)]} and lengths "
            f"{lens}; pass one length a sequence"
        )
