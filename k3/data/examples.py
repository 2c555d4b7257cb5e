"""Documents as training examples: ids, and which of them count in the loss."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from k3.data import images, media, xtml
from k3.data.corpora import Document
from k3.data.limits import ImageLimits
from k3.data.tokenizer import Tokenizer
from k3.data.xtml import RenderOptions, Segment, options, segments
from k3.data.xtml.emitted import assistants, emitted
from k3.errors import RequestError, ShapeError

PLACEHOLDER = "<|media_pad|>"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Example:
    """One document.

    `learned` is True where this token, as a target, counts in the loss: never for
    the first one, for a picture's or for what the model is only told; these stay in
    the context. `pixels` and `grids` are those of all its pictures, as
    `media.preprocess_all` gives them.
    Raises: ShapeError.
    """

    ids: Int[Tensor, " T"]
    learned: Bool[Tensor, " T"]
    domain: str
    name: str = ""
    pixels: Float[Tensor, "N 3 P P"] | None = None
    grids: Int[Tensor, "n 3"] | None = None

    def __post_init__(self) -> None:
        if self.ids.dim() != 1 or self.ids.shape != self.learned.shape:
            raise ShapeError(
                "an example has one flag for each of its ids: got ids "
                f"{list(self.ids.shape)} and learned {list(self.learned.shape)}; "
                "give both [T]"
            )
        if not len(self.ids) or self.learned[0]:
            raise ShapeError(
                "an example begins with a token that nothing predicts: got "
                f"{len(self.ids)} tokens, the first one learned; put an end token first"
            )
        if (self.pixels is None) != (self.grids is None):
            raise ShapeError("pixels and grids come together: got one; give both")

    def __len__(self) -> int:
        return len(self.ids)


def of_text(document: Document, tokenizer: Tokenizer, domain: str) -> Example:
    """The document after an end token and with one behind it; all of it is learned."""
    end = tokenizer.eos_id
    ids = torch.tensor([end, *tokenizer.encode(document.text), end])
    learned = torch.ones(len(ids), dtype=torch.bool)
    learned[0] = False
    return Example(ids=ids, learned=learned, domain=domain, name=document.name)


def of_conversation(
    messages: Sequence[Any],
    tokenizer: Tokenizer,
    domain: str,
    *,
    wanted: RenderOptions | None = None,
    pictures: Sequence[images.Source] = (),
    limits: ImageLimits = media.RELEASED,
    name: str = "",
) -> Example:
    """A conversation in XTML, learned where the model writes (release section 4).

    `wanted` holds tools, effort, and what the last answer was asked for (choice,
    format); `pictures` are those of the messages' image parts, in order, each
    placeholder grown to its rows.
    Raises: RequestError for what the renderer refuses.
    """
    wanted = wanted or RenderOptions()
    read = [images.read(picture, limits.max_pixels) for picture in pictures]
    prompts = [media.prompt_text(*picture.size) for picture in read]
    pieces = _pieces(messages, wanted, prompts)
    patches, grids = media.preprocess_all(read, limits)
    ids, learned = _encode(pieces, tokenizer, iter(grids), limits.merge_kernel_size)
    return Example(
        ids=torch.tensor(ids),
        learned=torch.tensor(learned),
        domain=domain,
        name=name,
        pixels=torch.from_numpy(patches) if read else None,
        grids=torch.from_numpy(grids) if read else None,
    )


def _pieces(
    messages: Sequence[Any], wanted: RenderOptions, prompts: Sequence[str]
) -> list[Segment]:
    """The history; what one answer is asked for stands before that last answer."""
    if wanted.continue_final_message:
        raise RequestError(
            "continue_final_message must be False in training: every message is whole; "
            "leave it out"
        )
    whole = dataclasses.replace(wanted, add_generation_prompt=False)
    pieces = list(xtml.render(messages, whole, prompts).segments)
    asked = [piece for piece in options.after(wanted) if piece.text]
    if asked:
        del pieces[-len(asked) :]
        last = (assistants(pieces) or [len(pieces)])[-1]
        pieces[last:last] = asked
    return pieces


def _encode(
    pieces: Sequence[Segment],
    tokenizer: Tokenizer,
    grids: Iterator[Any],
    merge: int,
) -> tuple[list[int], list[bool]]:
    ids: list[int] = []
    learned: list[bool] = []
    for piece, writes in zip(pieces, emitted(pieces), strict=True):
        found = segments.encode([piece], tokenizer)
        if piece.special and piece.text not in segments.MARKERS:
            pad = tokenizer.special_id(PLACEHOLDER)
            found = media.expand_placeholders(found, [next(grids)], pad, merge)
        ids += found
        learned += [writes] * len(found)
    return ids, learned
