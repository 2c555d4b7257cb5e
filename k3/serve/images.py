"""Pictures of requests: where they stand, and their features, encoded once."""

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor

from k3.config import K3Config
from k3.errors import RequestError
from k3.model import Model
from k3.serve import keys
from k3.serve.keys import Chain, Image
from k3.serve.request import Request

KEPT_BYTES = 2**26
"""Features of pictures that are kept for the next turn of a conversation."""


def locate(
    tokens: Sequence[int], pixels: Tensor, grids: Tensor, config: K3Config
) -> tuple[Image, ...]:
    """Return where each picture's placeholders stand, with its content's digest.

    Raises: RequestError if placeholders and pictures differ in number.
    """
    placeholder = config.media_placeholder_token_id
    places = [at for at, token in enumerate(tokens) if token == placeholder]
    sizes = [_rows(grid, config) for grid in grids.tolist()]
    if len(places) != sum(sizes):
        raise RequestError(
            f"every picture needs one placeholder for each of its rows: got "
            f"{len(places)} placeholders for pictures of {sizes} rows; expand each "
            "placeholder to (h/2)(w/2) of them first"
        )
    images, first = [], 0
    for size, patches, grid in zip(
        sizes, _pieces(pixels, grids), grids.tolist(), strict=True
    ):
        digest = keys.content(patches, grid)
        images.append(Image(start=places[first], tokens=size, digest=digest))
        first += size
    return tuple(images)


class Features:
    """Rows of pictures by content, the last used `limit` bytes of them."""

    def __init__(self, model: Model, limit: int = KEPT_BYTES) -> None:
        self.model, self.limit = model, limit
        self.encoded = 0
        self._held: OrderedDict[bytes, Tensor] = OrderedDict()

    def clear(self) -> None:
        """Forget all: the weights have changed."""
        self._held.clear()

    def of(self, request: Request, chain: Chain, span: range) -> Tensor | None:
        """Return the rows of the placeholders in a span; None without a picture.

        Those that a model generated have their embedding.
        """
        parts = []
        for number, image in enumerate(request.images):
            first = max(span.start, image.start) - image.start
            stop = min(span.stop, image.start + image.tokens) - image.start
            if first < stop:
                rows = self._rows(request, number)[first:stop]
                parts.append((image.start + first, rows))
        if not parts:
            return None
        parts += [(at, self._spoken(chain)) for at in _spoken_at(request, chain, span)]
        return torch.cat([rows for _, rows in sorted(parts, key=lambda part: part[0])])

    def _spoken(self, chain: Chain) -> Tensor:
        """The row of a placeholder that the model generated: its embedding."""
        id_ = torch.tensor([[chain.placeholder]], device=self.model.device)
        return self.model.language_model.embed(id_)[0]

    def _rows(self, request: Request, number: int) -> Tensor:
        digest = request.images[number].digest
        if digest not in self._held:
            assert request.pixels is not None, "images come with their pixels"
            assert request.grids is not None, "images come with their grids"
            pixels = _pieces(request.pixels, request.grids)[number]
            grid = request.grids[number : number + 1]
            self._held[digest] = self.model.encode_images(
                pixels.to(self.model.device, self.model.dtype),
                grid.to(self.model.device),
            )
            self.encoded += 1
        self._held.move_to_end(digest)
        rows = self._held[digest]
        while len(self._held) > 1 and self._bytes() > self.limit:
            self._held.popitem(last=False)
        return rows

    def _bytes(self) -> int:
        return sum(rows.nbytes for rows in self._held.values())


def _spoken_at(request: Request, chain: Chain, span: range) -> list[int]:
    """Where placeholders in a span stand that are no picture's."""
    first = 0 if request.spoken else len(request.tokens)
    return [
        at
        for at in range(max(span.start, first), span.stop)
        if chain.tokens[at] == chain.placeholder
        and not any(i.start <= at < i.start + i.tokens for i in chain.images)
    ]


def _rows(grid: Sequence[int], config: K3Config) -> int:
    """Feature rows of one item: one for each merged patch, of any number of frames."""
    assert config.vision is not None, "pictures need a vision tower"
    mh, mw = config.vision.merge_kernel_size
    _, h, w = grid
    return (h // mh) * (w // mw)


def _pieces(pixels: Tensor, grids: Tensor) -> tuple[Tensor, ...]:
    """The patches of each picture."""
    return pixels.split([t * h * w for t, h, w in grids.tolist()])
