"""Image files of any kind become RGB or RGBA pixels, or are refused.

Pixels are taken as stored: an EXIF orientation tag is not applied, and of several
frames the first is used. 16-bit grey keeps its high byte; CMYK and palettes are
converted by Pillow; float pixels are refused.
"""

import io
import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from k3.errors import RequestError

if TYPE_CHECKING:
    from PIL.Image import Image

Source: TypeAlias = "str | os.PathLike[str] | bytes | Image"


def pillow() -> ModuleType:
    """The Pillow image module.

    Raises: RequestError with the command that installs it.
    """
    try:
        from PIL import Image
    except ImportError:
        raise RequestError(
            "images need the vision extra: pip install 'k3[vision]'"
        ) from None
    return Image


def read(source: Source, max_pixels: int) -> "Image":
    """The image in mode RGB, or RGBA when it has transparency.

    Raises: RequestError for a file that is no image, is cut short or is too large.
    """
    library = pillow()
    name = source_name(source)
    if isinstance(source, library.Image):
        return _load(source, name, max_pixels)
    # Pillow leaves a file open that it refuses, so the file is ours to close.
    with _stream(source) as stored:
        try:
            image = library.open(stored)
        except Exception as fault:
            raise _unreadable(name, fault) from None
        return _load(image, name, max_pixels)


def source_name(source: Any) -> str:
    """What an error message calls the source."""
    if isinstance(source, (str, os.PathLike)):
        return Path(source).name
    return "the image"


def _stream(source: Source) -> io.BufferedIOBase:
    if isinstance(source, (bytes, bytearray)):
        return io.BytesIO(source)
    if not isinstance(source, (str, os.PathLike)):
        raise RequestError(
            "an image must be a path, bytes or a Pillow image: got "
            f"{type(source).__name__}; convert it"
        )
    if not Path(source).is_file():
        raise RequestError(
            f"an image must be a file: {os.fspath(source)!r} is none; give its path"
        )
    return Path(source).open("rb")


def _load(image: "Image", name: str, max_pixels: int) -> "Image":
    width, height = image.size
    if width < 1 or height < 1 or width * height > max_pixels:
        raise RequestError(
            f"an image may have 1 to {max_pixels} pixels: {name} is "
            f"{width}x{height}; send a smaller one"
        )
    # Decoders raise whatever they meet in a broken file, so every fault is the file's.
    try:
        image.load()
        return _eight_bits(image)
    except RequestError:
        raise
    except Exception as fault:
        raise _unreadable(name, fault) from None


def _unreadable(name: str, fault: Exception) -> RequestError:
    reason = str(fault).split(" <", 1)[0]
    return RequestError(
        f"an image must be whole and of a known format: {name} is not "
        f"({type(fault).__name__}: {reason}); send another file"
    )


def _eight_bits(image: "Image") -> "Image":
    if image.mode.startswith("I"):
        return _high_byte(image)
    if image.mode == "F":
        raise RequestError(
            "pixels must be integers: got a float image (mode F); save it as 8-bit RGB"
        )
    # PA, La and RGBa are the palette and premultiplied kinds of the same thing.
    has_alpha = image.mode in ("RGBA", "LA", "PA", "La", "RGBa")
    has_alpha = has_alpha or "transparency" in image.info
    return _convert(image, "RGBA" if has_alpha else "RGB")


def _convert(image: "Image", mode: str) -> "Image":
    if image.mode == mode:
        return image
    if image.mode == "La":
        image = image.convert("LA")
    return image.convert(mode)


def _high_byte(image: "Image") -> "Image":
    import numpy as np

    levels = np.asarray(image)
    if levels.min() < 0 or levels.max() > 65535:
        raise RequestError(
            f"grey levels must fit 16 bits: got {levels.min()} to {levels.max()}; "
            "save it as 8-bit RGB"
        )
    grey = (levels.astype(np.int64) >> 8).astype(np.uint8)
    image = pillow().fromarray(grey)
    return image.convert("RGB")
