"""Video files: refused by name without the video extra, else a few frames."""

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3.errors import RequestError

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (
    *(".3gp", ".avi", ".flv", ".m2ts", ".m4v", ".mkv", ".mov"),
    *(".mp4", ".mpeg", ".mpg", ".ogv", ".ts", ".webm", ".wmv"),
)


def is_video(source: Any) -> bool:
    """True for a path whose ending is a video container's."""
    return (
        isinstance(source, (str, os.PathLike))
        and Path(source).suffix.lower() in SUFFIXES
    )


def frames(path: str | os.PathLike[str], max_frames: int = 4) -> "list[Image]":
    """Up to `max_frames` evenly spaced frames, first and last included.

    Decodes twice, so that no frame is kept that is not returned.
    Raises: RequestError without the extra or for a file that does not decode.
    """
    name = Path(path).name
    library = _library(name)
    try:
        total = sum(1 for _ in _decode(library, path))
        wanted = evenly_spaced(total, max_frames)
        found = [
            frame.to_image()
            for place, frame in enumerate(_decode(library, path))
            if place in wanted
        ]
    # The decoder raises its own errors and OSError; all mean the same to the caller.
    except Exception as fault:
        raise RequestError(
            f"a video must decode: {name} does not ({type(fault).__name__}: {fault}); "
            "send another file"
        ) from None
    if not found:
        raise RequestError(f"a video must have frames: {name} has none; send another")
    return found


def evenly_spaced(total: int, count: int) -> list[int]:
    """At most `count` places of `total`, the first and the last among them."""
    if total <= count:
        return list(range(total))
    if count == 1:
        return [0]
    return [place * (total - 1) // (count - 1) for place in range(count)]


def _library(name: str) -> Any:
    try:
        return importlib.import_module("av")
    except ImportError:
        raise RequestError(
            f"video files need the video extra, for {name}: pip install 'k3[video]'"
        ) from None


def _decode(library: Any, path: str | os.PathLike[str]) -> Any:
    with library.open(os.fspath(path)) as container:
        yield from container.decode(video=0)
