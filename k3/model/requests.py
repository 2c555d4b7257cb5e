"""What a call may ask of the model: token ids, boundaries, which logits."""

import torch
from torch import Tensor

from k3 import errors
from k3.kernels import segments

FEW = 64


def token_ids(ids: Tensor, rows: int, device: torch.device) -> Tensor:
    """Return ids [B T], int32 or int64, all below `rows`.

    Raises: ShapeError for what is no such tensor, RequestError for other ids.
    """
    if not isinstance(ids, Tensor):
        raise errors.ShapeError(
            f"ids must be an int64 or int32 tensor [B T]: got a {type(ids).__name__}; "
            "make one with torch.tensor"
        )
    if ids.dtype not in (torch.int64, torch.int32):
        raise errors.ShapeError(
            f"ids must be int64 or int32: got {ids.dtype}; pass what the tokenizer gave"
        )
    if ids.dim() != 2:
        raise errors.ShapeError(
            f"ids are [B T]: got {tuple(ids.shape)}; add the batch axis"
        )
    if ids.device != device:
        raise errors.ShapeError(
            f"ids must be where the model is, on {device}: got {ids.device}; move them"
        )
    if torch.compiler.is_compiling():
        return _in_range(ids, rows)
    if ids.numel() and not ids.is_meta:
        _check_range(ids, rows)
    return ids


@torch.library.custom_op("k3::token_ids", mutates_args=())
def _in_range(ids: Tensor, rows: int) -> Tensor:
    """A copy of ids, whose values are looked at when the compiled graph runs."""
    if ids.numel():
        _check_range(ids, rows)
    return ids.clone()


@_in_range.register_fake
def _(ids: Tensor, rows: int) -> Tensor:
    return torch.empty_like(ids)


def _check_range(ids: Tensor, rows: int) -> None:
    low, high = _range(ids)
    if low < 0 or high >= rows:
        raise errors.RequestError(
            f"token ids must be in 0 .. {rows - 1}: got {low} .. {high}; use this "
            "checkpoint's own tokenizer"
        )


def _range(ids: Tensor) -> tuple[int, int]:
    """The least and the greatest id; of a decode step's few by Python itself."""
    if ids.numel() <= FEW:
        few = ids.flatten().tolist()
        return min(few), max(few)
    return int(ids.min()), int(ids.max())


def lengths(
    ids: Tensor, cu_seqlens: Tensor | None, logits: str
) -> tuple[int, ...] | None:
    """Return the lengths of packed sequences, None if they are not packed.

    Raises: ShapeError, RequestError.
    """
    if logits not in ("all", "last"):
        raise errors.RequestError(f"logits must be 'all' or 'last': got {logits!r}")
    if cu_seqlens is None:
        return None
    if ids.shape[0] != 1:
        raise errors.ShapeError(
            f"packed sequences come in one row, ids [1 T]: got {ids.shape[0]} rows"
        )
    lens = segments.lengths(cu_seqlens, ids.shape[1])
    if logits == "last" and 0 in lens:
        raise errors.ShapeError(
            "logits='last' needs a token in every sequence: got an empty one; "
            "use logits='all'"
        )
    return lens
