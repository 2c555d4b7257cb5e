"""The short convolution natively, with its gradient: one pass over memory."""

from struct import Struct

import torch
from jaxtyping import Float
from torch import Tensor

from k3 import errors
from k3.kernels.native import library
from k3.kernels.native.kda import lengths
from k3.kernels.native.operation import Floats, Ints, Operation, blank

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
    given = [x.contiguous(), weight[:, 0].T.contiguous(), window.contiguous()]
    y, after = OPERATION(given, lens, (), record=record)
    return y, after


def _forward(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    x, taps, window = (part.contiguous() for part in given)
    check(x, taps, window, tuple(ints))
    out = torch.empty_like(x), torch.empty_like(window)
    _call((x, taps, window), out, tuple(ints))
    return list(out)


def _backward(
    saved: list[Tensor], grads: list[Tensor], ints: Ints, floats: Floats
) -> list[Tensor]:
    x, taps, window = (part.contiguous() for part in saved)
    dy, dafter = (part.contiguous() for part in grads)
    dx, dwindow = torch.empty_like(x), torch.empty_like(window)
    dtaps = taps.new_empty(len(ints), *taps.shape)
    parts = tuple(part.data_ptr() for part in (dy, dafter, dx, dwindow, dtaps))
    _call((x, taps, window), None, tuple(ints), parts)
    return [dx, dtaps.sum(0), dwindow]


def _like(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    return [blank(given[0]), blank(given[2])]


OPERATION = Operation("short_conv", _forward, _like, back=_backward)


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


def check(x: Tensor, taps: Tensor, window: Tensor, lens: tuple[int, ...]) -> None:
    """Refuse what would be read past its end. Raises: ShapeError."""
    B, T, C = x.shape
    S, past, channels = window.shape
    fits = C == channels and taps.shape == (past + 1, C) and S == len(lens)
    if not fits or sum(lens) != B * T or min(lens, default=0) < 0:
        raise errors.ShapeError(
            "the short convolution takes x [B T C], taps [width C], window "
            "[S width-1 C] and S lengths that add up to B T: got "
            f"{[tuple(part.shape) for part in (x, taps, window)]} and lengths "
            f"{lens}; pass one length a sequence"
        )
