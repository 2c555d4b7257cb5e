"""Image limits: what preprocessor_config.json says, with the released values."""

import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from k3.errors import CheckpointError, RequestError

FILE_NAME = "preprocessor_config.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Chessboard:
    """What shows through transparent pixels; filled in after resizing."""

    square: int = 8
    white: int = 255
    gray: int = 180
    white_top_left: bool = True

    def __post_init__(self) -> None:
        if self.square < 1 or not (0 <= self.gray <= 255 and 0 <= self.white <= 255):
            raise CheckpointError(
                "a chessboard needs squares of a pixel or more and levels of 0 to 255: "
                f"got {self}; mend {FILE_NAME}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageLimits:
    """How large an image may become and how its pixels are scaled.

    Field names are the keys of media_proc_cfg. `max_pixels` (before resizing) and
    `max_frames` (the tower's time table) are ours.
    """

    in_patch_limit: int = 65536
    patch_limit_on_one_side: int = 512
    patch_size: int = 14
    merge_kernel_size: int = 2
    image_mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    image_std: tuple[float, ...] = (0.5, 0.5, 0.5)
    transparent_bg: Chessboard = field(default_factory=Chessboard)
    max_pixels: int = 89_478_485
    max_frames: int = 4

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            _positive(name, getattr(self, name))
        if len(self.image_mean) != 3 or len(self.image_std) != 3:
            raise CheckpointError(
                "image_mean and image_std need one value per colour: got "
                f"{self.image_mean} and {self.image_std}; mend them"
            )
        if not all(std > 0 for std in self.image_std):
            raise CheckpointError(
                f"image_std must be positive: got {self.image_std}; mend it"
            )

    @classmethod
    def load(cls, directory: str | Path) -> "ImageLimits":
        """From preprocessor_config.json of a directory; released values without it.

        Raises: CheckpointError. Keys that are not ours are named in a warning.
        """
        path = Path(directory) / FILE_NAME
        return cls.from_dict(_media_proc_cfg(path)) if path.is_file() else cls()

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> "ImageLimits":
        """From the media_proc_cfg mapping.

        Raises: CheckpointError for a value that is not supported.
        """
        config = dict(config)
        if config.pop("fixed_output_tokens", None) is not None:
            raise CheckpointError(
                "fixed_output_tokens must be null: other values are not supported; "
                f"mend {FILE_NAME}"
            )
        known: dict[str, Any] = {
            name: _positive(name, config.pop(name))
            for name in _INTEGERS
            if name in config
        }
        for name in ("image_mean", "image_std"):
            if name in config:
                known[name] = tuple(float(value) for value in config.pop(name))
        board = config.pop("transparent_bg_config", config.pop("transparent_bg", None))
        if board is not None:
            known["transparent_bg"] = _chessboard(board)
        if config:
            named = ", ".join(sorted(config))
            warnings.warn(f"{FILE_NAME} keys are not used: {named}", stacklevel=2)
        return cls(**known)

    @property
    def cell(self) -> int:
        """Pixels on one side of the square that becomes one token (28)."""
        return self.patch_size * self.merge_kernel_size

    def resized(self, width: int, height: int) -> tuple[int, int]:
        """Size after shrinking: never enlarged, at most the patch limits.

        Rounds down, and counts whole patches of the original, as released.
        """
        if width < 1 or height < 1:
            raise RequestError(
                f"an image must have pixels: got {width}x{height}; send another"
            )
        side = self.patch_limit_on_one_side * self.patch_size
        patches = max(1, width // self.patch_size) * max(1, height // self.patch_size)
        area = math.sqrt(self.in_patch_limit / patches)
        scale = min(1.0, area, side / width, side / height)
        return (
            min(side, max(1, int(width * scale))),
            min(side, max(1, int(height * scale))),
        )

    def padded(self, width: int, height: int) -> tuple[int, int]:
        """Size after padding right and bottom to whole cells."""
        return -(-width // self.cell) * self.cell, -(-height // self.cell) * self.cell

    def grid(self, width: int, height: int) -> tuple[int, int]:
        """Patches down and across of an image of this original size."""
        padded_width, padded_height = self.padded(*self.resized(width, height))
        return padded_height // self.patch_size, padded_width // self.patch_size

    def num_tokens(self, width: int, height: int) -> int:
        """Placeholder tokens of an image or clip of this original size."""
        rows, columns = self.grid(width, height)
        return rows * columns // self.merge_kernel_size**2


_INTEGERS = (
    "in_patch_limit",
    "patch_limit_on_one_side",
    "patch_size",
    "merge_kernel_size",
)
_POSITIVE = (*_INTEGERS, "max_pixels", "max_frames")

_BOARD_KEYS = {
    "chessboard_square_size": "square",
    "chessboard_white_value": "white",
    "chessboard_gray_value": "gray",
    "chessboard_square_on_top_left": "white_top_left",
}


def _positive(name: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise CheckpointError(
            f"{name} must be a positive integer: got {value!r}; mend {FILE_NAME}"
        )
    return value


def _media_proc_cfg(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_bytes())["media_proc_cfg"]
        return dict(config)
    except (ValueError, KeyError, TypeError, OSError, RecursionError) as fault:
        raise CheckpointError(
            f"{FILE_NAME} must be JSON with an object media_proc_cfg: {fault!r}; "
            "restore the file"
        ) from None


def _chessboard(config: Mapping[str, Any]) -> Chessboard:
    pattern = config.get("pattern", "chessboard")
    if pattern != "chessboard":
        raise CheckpointError(
            f"a transparent background must be a chessboard: got {pattern!r}; "
            f"mend {FILE_NAME}"
        )
    known = {_BOARD_KEYS[k]: v for k, v in config.items() if k in _BOARD_KEYS}
    rest = {k: v for k, v in config.items() if k not in (*_BOARD_KEYS, "pattern")}
    # The stage is the one remaining key; only the released stage is implemented.
    wrong = [k for k, v in rest.items() if v != "after_resize"]
    if wrong:
        raise CheckpointError(
            "the transparent background is filled after_resize: got "
            f"{wrong[0]}={rest[wrong[0]]!r}; mend {FILE_NAME}"
        )
    for key, name in _BOARD_KEYS.items():
        kind = bool if name == "white_top_left" else int
        if type(known.get(name, kind())) is not kind:
            raise CheckpointError(
                f"{key} must be {kind.__name__}: got {known[name]!r}; mend {FILE_NAME}"
            )
    return Chessboard(**known)
