"""Image and video parts of messages: data URLs alone, decoded within limits."""

import base64
import binascii
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from k3.data import images as image_files
from k3.data import media, video, xtml
from k3.data.limits import ImageLimits
from k3.data.xtml import results
from k3.data.xtml.content import MEDIA
from k3.errors import RequestError
from k3.serve import keys
from k3.serve.openai.errors import ApiError, invalid
from k3.serve.openai.options import ServerOptions

# The subtypes that are no suffix of a container.
SUFFIXES = {"quicktime": "mov", "x-msvideo": "avi", "x-matroska": "mkv", "mpeg": "mpg"}


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of a request, in the order of their places in the prompt."""

    prompts: tuple[str, ...] = ()
    patches: tuple[Tensor, ...] = ()
    grids: tuple[tuple[int, int, int], ...] = ()

    @property
    def pixels(self) -> Tensor | None:
        """All patches [N 3 14 14]; None without pictures."""
        return torch.cat(self.patches) if self.patches else None

    @property
    def grid_rows(self) -> Tensor | None:
        """The grids [n 3]; None without pictures."""
        return torch.tensor(self.grids) if self.grids else None

    def expand(
        self, ids: Sequence[int], placeholder: int, merge: int
    ) -> tuple[list[int], tuple[keys.Image, ...]]:
        """The ids with a placeholder for each row, and where each picture stands."""
        tokens = media.expand_placeholders(ids, list(self.grids), placeholder, merge)
        found, start = [], 0
        for patches, grid in zip(self.patches, self.grids, strict=True):
            start = tokens.index(placeholder, start)
            count = grid[1] * grid[2] // merge**2
            digest = keys.content(patches, grid)
            found.append(keys.Image(start=start, tokens=count, digest=digest))
            start += count
        return tokens, tuple(found)


def read(messages: Any, wanted: xtml.RenderOptions, options: ServerOptions) -> Pictures:
    """The pictures of a conversation.

    Raises: ApiError 400 or 413, RequestError for messages that cannot be rendered.
    """
    if not any(True for _ in _parts(messages)):
        return Pictures()
    if options.config.vision is None:
        raise invalid(
            "messages must be text: this model has no vision tower; remove the images",
            "messages",
        )
    # Checks the whole conversation, so that the order below has well-formed turns.
    xtml.render(messages, wanted, None)
    parts = [
        (f"{turn.path}.content[{place}]", part)
        for turn in results.ordered(messages)
        for place, part in _parts_of(turn.message)
    ]
    if len(parts) > options.max_images:
        raise invalid(
            f"messages may hold {options.max_images} images: got {len(parts)}; send "
            "fewer",
            "messages",
        )
    return _joined([_picture(part, path, options) for path, part in parts])


def _parts(messages: Any) -> Iterator[Any]:
    if isinstance(messages, list):
        for message in messages:
            if isinstance(message, Mapping):
                yield from _parts_of(message)


def _parts_of(message: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    content = message.get("content")
    if isinstance(content, list):
        for place, part in enumerate(content):
            if isinstance(part, Mapping) and part.get("type") in MEDIA:
                yield place, part


def _joined(found: list[tuple[str, Tensor, tuple[int, int, int]]]) -> Pictures:
    prompts, patches, grids = zip(*found, strict=True)
    return Pictures(prompts, patches, grids)


def _picture(
    part: Mapping[str, Any], path: str, options: ServerOptions
) -> tuple[str, Tensor, tuple[int, int, int]]:
    kind = part["type"]
    value = part.get(kind)
    if isinstance(value, Mapping):
        value = value.get("url")
    here = f"{path}.{kind}"
    subtype, data = _decoded(value, here, options.max_image_bytes)
    limits = options.image_limits
    try:
        if kind in ("video", "video_url"):
            frames: list[Any] = _frames(data, subtype, limits)
        else:
            frames = [image_files.read(data, limits.max_pixels)]
        patches, grid = media.preprocess_clip(frames, limits)
    except RequestError as error:
        raise invalid(f"{here}: {error}", here) from error
    size = frames[0].size
    return (
        media.prompt_text(*size),
        torch.from_numpy(np.ascontiguousarray(patches)),
        grid,
    )


def _frames(data: bytes, subtype: str, limits: ImageLimits) -> list[Any]:
    suffix = SUFFIXES.get(subtype, subtype)
    if f".{suffix}" not in video.SUFFIXES:
        raise RequestError(
            f"a video must be of a known container: got {subtype[:40]!r}; send mp4 or "
            "webm"
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"clip.{suffix}")
        file.write_bytes(data)
        return list(video.frames(file, limits.max_frames))


def _decoded(value: Any, path: str, most_bytes: int) -> tuple[str, bytes]:
    """The subtype and the bytes of a data URL."""
    if not isinstance(value, str):
        raise invalid(f"{path} must be a data URL: send data:image/png;base64,…", path)
    head, comma, text = value.partition(",")
    scheme, _, kind = head.partition(":")
    if scheme != "data" or not comma or not head.endswith(";base64"):
        raise invalid(
            f"{path} must be a data URL in base64, for nothing is fetched from "
            f"elsewhere: got {value[:30]!r}; send data:image/png;base64,…",
            path,
        )
    if len(text) > most_bytes * 4 // 3 + 4:
        raise ApiError(
            413,
            f"{path} may have {most_bytes} bytes: got about {len(text) * 3 // 4}; send "
            "a smaller one",
            param=path,
            code="image_too_large",
        )
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as fault:
        raise invalid(
            f"{path} must be base64: {fault}; encode it again", path
        ) from None
    return kind.split(";")[0].partition("/")[2].lower(), data
