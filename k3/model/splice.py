"""Where pictures enter the token sequence."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from k3 import errors
from k3.config import VisionConfig

Grid = tuple[int, int, int]


def splice(
    x: Float[Tensor, "B T D"],
    ids: Int[Tensor, "B T"],
    features: Float[Tensor, "N width"],
    placeholder: int | None,
) -> Float[Tensor, "B T D"]:
    """Put feature rows, in order, where ids are the media placeholder.

    Raises: ShapeError when rows and placeholders differ in number, or in width.
    """
    if not isinstance(features, Tensor) or features.dim() != 2:
        got = tuple(getattr(features, "shape", ())) or type(features).__name__
        raise errors.ShapeError(
            f"features are [rows {x.shape[-1]}]: got {got}; pass what encode_images "
            "returned"
        )
    if not features.is_floating_point() or features.device != x.device:
        raise errors.ShapeError(
            f"features are floating point on {x.device}: got {features.dtype} on "
            f"{features.device}; pass what encode_images returned"
        )
    if features.shape[1] != x.shape[-1]:
        raise errors.ShapeError(
            f"features have the width of the text, {x.shape[-1]}: got "
            f"{features.shape[1]}; pass what encode_images returned"
        )
    here = ids == (-1 if placeholder is None else placeholder)
    count = int(here.sum())
    if count != features.shape[0]:
        raise errors.ShapeError(
            "every feature row needs one placeholder token: got "
            f"{features.shape[0]} rows for {count} placeholders; expand each "
            "placeholder to (h/2)(w/2) of them first"
        )
    return x.masked_scatter(here[..., None], features.to(x.dtype))


def check_grids(
    pixels: Tensor, grids: Int[Tensor, "n 3"], config: VisionConfig
) -> list[Grid]:
    """Return grids as tuples; raise ShapeError where they do not fit the patches."""
    _check_kinds(pixels, grids)
    items: list[Grid] = [(int(t), int(h), int(w)) for t, h, w in grids.tolist()]
    mh, mw = config.merge_kernel_size
    frames = config.init_pos_emb_time
    for t, h, w in items:
        odd = h % mh or w % mw or h < 1 or w < 1
        if odd or not 1 <= t <= frames:
            raise errors.ShapeError(
                f"a grid is (frames 1..{frames}, rows a multiple of {mh}, columns a "
                f"multiple of {mw}): got {(t, h, w)}; pad the picture first"
            )
    total = sum(t * h * w for t, h, w in items)
    size = (3, config.patch_size, config.patch_size)
    if tuple(pixels.shape) != (total, *size):
        raise errors.ShapeError(
            f"grids {items} need pixel_values {(total, *size)}: got "
            f"{tuple(pixels.shape)}"
        )
    return items


def _check_kinds(pixels: Tensor, grids: Tensor) -> None:
    """Refuse grids that are no integers [n 3], and pixels that are no floats."""
    whole = isinstance(grids, Tensor) and grids.dtype in (torch.int64, torch.int32)
    if not whole or grids.dim() != 2 or grids.shape[1] != 3:
        shape = tuple(getattr(grids, "shape", ()))
        got = f"{shape} of {grids.dtype}" if shape else repr(grids)
        raise errors.ShapeError(
            "grids are an int64 tensor [n 3] of (frames, rows, columns), one row for "
            f"each picture: got {got}"
        )
    if not isinstance(pixels, Tensor) or not pixels.is_floating_point():
        kind = pixels.dtype if isinstance(pixels, Tensor) else type(pixels).__name__
        raise errors.ShapeError(
            f"pixel_values are a floating-point tensor: got {kind}; pass what "
            "preprocess returned"
        )
