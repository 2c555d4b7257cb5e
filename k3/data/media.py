"""Images and short clips as patches for the vision tower, as released.

Shrink (never enlarge) with Pillow's bicubic to 8 bits, fill transparency with a
chessboard, pad right and bottom with 0, scale to [-1, 1], cut into patches.
An image and a clip of that one frame give bitwise the same patches and grid.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from k3.data import images, video
from k3.data.limits import Chessboard as Chessboard
from k3.data.limits import ImageLimits as ImageLimits
from k3.errors import RequestError

if TYPE_CHECKING:
    from PIL.Image import Image

Grid: TypeAlias = tuple[int, int, int]
RELEASED = ImageLimits()


def preprocess(
    source: images.Source, limits: ImageLimits = RELEASED
) -> tuple[NDArray[np.float32], Grid]:
    """Patches [N 3 14 14] and grid (1, h, w) of one image; a video file's frames.

    `source` is a path, the bytes of a file or a Pillow image.
    Raises: RequestError for what cannot be read.
    """
    if video.is_video(source):
        # is_video holds for paths alone.
        found = video.frames(source, limits.max_frames)  # type: ignore[arg-type]
        return preprocess_clip(found, limits)
    return preprocess_clip([source], limits)


def preprocess_clip(
    frames: Sequence[images.Source], limits: ImageLimits = RELEASED
) -> tuple[NDArray[np.float32], Grid]:
    """Patches [N 3 14 14] in raster order and grid (t, h, w) of 1 to 4 frames.

    Each frame keeps the limits of an image; all must have one size. The number of
    tokens is h*w/4 whatever t is.
    Raises: RequestError.
    """
    if not 1 <= len(frames) <= limits.max_frames:
        raise RequestError(
            f"a clip must have 1 to {limits.max_frames} frames: got {len(frames)}; "
            "choose some of them"
        )
    pictures = [images.read(frame, limits.max_pixels) for frame in frames]
    sizes = {picture.size for picture in pictures}
    if len(sizes) > 1:
        raise RequestError(
            f"the frames of a clip must have one size: got {sorted(sizes)}; "
            "resize them first"
        )
    patches = [patchify(pixels(picture, limits), limits) for picture in pictures]
    rows, columns = limits.grid(*pictures[0].size)
    return np.concatenate(patches), (len(frames), rows, columns)


def preprocess_all(
    sources: Sequence[images.Source], limits: ImageLimits = RELEASED
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Patches of several images one after another, and their grids [n 3].

    Raises: RequestError.
    """
    done = [preprocess(source, limits) for source in sources]
    side = limits.patch_size
    empty = np.zeros((0, 3, side, side), np.float32)
    patches = np.concatenate([empty, *(patches for patches, _ in done)])
    return patches, np.array([grid for _, grid in done], np.int64).reshape(-1, 3)


def pixels(picture: "Image", limits: ImageLimits = RELEASED) -> NDArray[np.uint8]:
    """Resized, composited and padded pixels [height width 3], before scaling."""
    size = limits.resized(*picture.size)
    if picture.size != size:
        picture = picture.resize(size, images.pillow().Resampling.BICUBIC)
    filled = _fill(np.asarray(picture), limits.transparent_bg)
    width, height = limits.padded(*size)
    canvas = np.zeros((height, width, 3), np.uint8)
    canvas[: size[1], : size[0]] = filled
    return canvas


def patchify(
    canvas: NDArray[np.uint8], limits: ImageLimits = RELEASED
) -> NDArray[np.float32]:
    """Scaled patches [h*w 3 14 14] of padded pixels, row by row."""
    mean = np.array(limits.image_mean, np.float32)
    std = np.array(limits.image_std, np.float32)
    scaled = (canvas.astype(np.float32) / np.float32(255) - mean) / std
    side = limits.patch_size
    rows, columns = canvas.shape[0] // side, canvas.shape[1] // side
    tiles = scaled.reshape(rows, side, columns, side, 3)
    patches = tiles.transpose(0, 2, 4, 1, 3).reshape(rows * columns, 3, side, side)
    return np.ascontiguousarray(patches)


def prompt_text(width: int, height: int) -> str:
    """The prompt of one image of this original size; encode with specials allowed."""
    return (
        f"<|media_begin|>image {width}x{height}"
        "<|media_content|><|media_pad|><|media_end|>"
    )


def expand_placeholders(
    ids: Sequence[int],
    grids: Sequence[Sequence[int]] | NDArray[np.int64],
    placeholder: int,
    merge: int = 2,
) -> list[int]:
    """Each placeholder repeated once per feature row of its image: (h/2)(w/2).

    Raises: RequestError when placeholders and grids differ in number.
    """
    found = sum(1 for token in ids if token == placeholder)
    if found != len(grids):
        raise RequestError(
            f"a prompt needs one placeholder per image: got {found} for {len(grids)} "
            "images; add or remove images"
        )
    counts = iter([int(h) * int(w) // merge**2 for _, h, w in grids])
    expanded: list[int] = []
    for token in ids:
        expanded += [token] * (next(counts) if token == placeholder else 1)
    return expanded


def _fill(levels: NDArray[np.uint8], board: Chessboard) -> NDArray[np.uint8]:
    if levels.shape[2] == 3:
        return levels
    down, across = np.indices(levels.shape[:2]) // board.square
    odd = (down + across) % 2 == int(board.white_top_left)
    ground = np.where(odd, board.gray, board.white).astype(np.float32)[..., None]
    # float32: a value that is exactly whole may be cut to the level below it.
    alpha = levels[..., 3:].astype(np.float32) / np.float32(255)
    mixed = alpha * levels[..., :3].astype(np.float32) + (1 - alpha) * ground
    return mixed.clip(0, 255).astype(np.uint8)
