"""The short causal depthwise convolution and the window it carries."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from k3.kernels import choose, precision
from k3.kernels.native import conv as native


def short_conv(
    x: Float[Tensor, "B T C"],
    weight: Float[Tensor, "C 1 width"],
    window: Float[Tensor, "S past C"],
    lens: tuple[int, ...] | None = None,
) -> tuple[Float[Tensor, "B T C"], Float[Tensor, "S past C"]]:
    """Eq. 2: y_t = silu(sum_j w_j x_{t-width+1+j}), and the window after it.

    `window` holds the last width - 1 inputs before x, one row a sequence: S = B,
    or, with `lens`, one a packed sequence (then B = 1). Computed in fp32 or wider;
    y has the dtype of x, the new window that of `window`.
    Matches: spec.kda.short_conv.
    """
    done = _natively(x, weight, window, lens)
    if done is not None:
        return done
    taps = weight[:, 0].T  # [width C]
    past = window.shape[1]
    if lens is None:
        rows = torch.cat([window.to(x.dtype), x], 1)
        carried = rows[:, rows.shape[1] - past :]
        return _filter(rows, taps, x.shape[1]), carried.to(window.dtype)
    pieces, kept = [], []
    for carried, piece in zip(window.to(x.dtype), x[0].split(list(lens)), strict=True):
        rows = torch.cat([carried, piece])
        pieces.append(_filter(rows[None], taps, piece.shape[0]))
        kept.append(rows[rows.shape[0] - past :])
    return torch.cat(pieces, 1), torch.stack(kept).to(window.dtype)


def _natively(
    x: Tensor, weight: Tensor, window: Tensor, lens: tuple[int, ...] | None
) -> tuple[Tensor, Tensor] | None:
    """The same by the kernel of conv.cpp, where it takes these."""
    given = x, weight, window
    if not choose.operation(*given) or weight.dtype != torch.float32:
        return None
    each = (x.shape[1],) * x.shape[0] if lens is None else tuple(lens)
    carried, record = window.to(x.dtype), choose.recorded(*given)
    y, after = native.short_conv(x, weight, carried, lens=each, record=record)
    return y, after.to(window.dtype)


def _filter(rows: Tensor, taps: Tensor, num_tokens: int) -> Tensor:
    wide = precision.wide(rows)
    y = wide[:, :num_tokens] * taps[0]
    for j in range(1, taps.shape[0]):
        y = torch.addcmul(y, wide[:, j : j + num_tokens], taps[j])
    return F.silu(y).to(rows.dtype)
