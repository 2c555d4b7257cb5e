"""Chained keys of a sequence: one for the end of every hash block (§5.4.1).

A key names everything in front of it: tokens, contents of images, weights, tenant.
"""

import copy
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

from k3.errors import RequestError

KEY_BYTES = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """Where the placeholders of an image stand, and the digest of its content."""

    start: int
    tokens: int
    digest: bytes

    def __post_init__(self) -> None:
        if self.start < 0 or self.tokens < 1 or len(self.digest) != KEY_BYTES:
            raise RequestError(
                f"an image has a start from 0, at least one token and a digest of "
                f"{KEY_BYTES} bytes: got {self.start}, {self.tokens} and "
                f"{len(self.digest)} bytes; take the digest from keys.content"
            )


def content(pixels: Tensor, grid: Sequence[int]) -> bytes:
    """Return the digest of an image: its grid and the bytes of its patches."""
    head = f"{tuple(grid)} {tuple(pixels.shape)} {pixels.dtype}".encode()
    data = pixels.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
    return blake2b(head + b"\0" + data, digest_size=KEY_BYTES).digest()


def root(*parts: bytes, salt: bytes = b"") -> bytes:
    """Return the key of the empty prefix; a tenant's salt makes it a secret."""
    secret = blake2b(salt, digest_size=KEY_BYTES).digest() if salt else b""
    made = blake2b(digest_size=KEY_BYTES, key=secret, person=b"k3 prefix root")
    for part in parts:
        made.update(struct.pack("<q", len(part)) + part)
    return made.digest()


class Chain:
    """The tokens of a sequence and the keys of its complete hash blocks.

    It grows with `extend`. Every placeholder must belong to one image: all images
    share its id, so that ids alone would take one picture for another.
    """

    def __init__(
        self,
        start: bytes,
        hash_tokens: int,
        images: Sequence[Image] = (),
        placeholder: int | None = None,
        *,
        weight_version: int = 0,
    ) -> None:
        self.start, self.hash_tokens = start, hash_tokens
        self.weight_version = weight_version
        self.images = sorted(images, key=lambda image: image.start)
        self.placeholder = placeholder
        self.tokens: list[int] = []
        self.keys: list[bytes] = []
        self._covered = {
            at
            for image in self.images
            for at in range(image.start, image.start + image.tokens)
        }
        ends = [0, *(image.start + image.tokens for image in self.images)]
        starts = [image.start for image in self.images]
        for image, end in zip(starts, ends[:-1], strict=True):
            if image < end:
                raise RequestError(
                    f"images must not overlap: got one that starts at {image}, before "
                    f"the end of another at {end}"
                )

    def __len__(self) -> int:
        return len(self.tokens)

    def fork(self) -> "Chain":
        """Return a chain of the same tokens that grows on its own."""
        made = copy.copy(self)
        made.tokens, made.keys = list(self.tokens), list(self.keys)
        return made

    def extend(self, tokens: Sequence[int], *, generated: bool = False) -> "Chain":
        """Add tokens behind those it has; returns self.

        A placeholder that the model has `generated` is a token like any other: where
        a picture stands, its digest makes another key.
        """
        self._check(len(self.tokens), tokens, generated)
        self.tokens.extend(int(token) for token in tokens)
        while (len(self.keys) + 1) * self.hash_tokens <= len(self.tokens):
            self.keys.append(self._next())
        return self

    def reusable(self) -> list[bytes]:
        """Return the keys a request may resume from: its last token is always run."""
        return self.keys[: max(len(self.tokens) - 1, 0) // self.hash_tokens]

    def _next(self) -> bytes:
        start = len(self.keys) * self.hash_tokens
        stop = start + self.hash_tokens
        made = blake2b(digest_size=KEY_BYTES, person=b"k3 prefix block")
        made.update(self.keys[-1] if self.keys else self.start)
        made.update(np.asarray(self.tokens[start:stop], "<i8").tobytes())
        for image in self.images:
            if start <= image.start < stop:
                place = struct.pack("<qq", image.start - start, image.tokens)
                made.update(place + image.digest)
        return made.digest()

    def _check(self, first: int, tokens: Sequence[int], generated: bool) -> None:
        if self.placeholder is None:
            return
        for at, token in enumerate(tokens, first):
            pictured = at in self._covered
            spoken = generated and not pictured
            if (token == self.placeholder) != pictured and not spoken:
                raise RequestError(
                    f"every media placeholder needs the content of its image, and an "
                    f"image stands on placeholders alone: got token {token} at {at}; "
                    f"pass images=[Image(start=..., tokens=..., digest=...)]"
                )
