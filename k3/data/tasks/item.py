"""What a task draws: a passage or a dialogue, as an example or as a question."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from k3.data import examples, media, xtml
from k3.data.examples import Example
from k3.data.tasks.lot import Lot, Split
from k3.data.tokenizer import Tokenizer
from k3.data.xtml import RenderOptions
from k3.data.xtml.render import Channel


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Question:
    """A prompt and the one answer that is wanted; pictures as patches and grids.

    `start_in` is the channel of XTML that the answer begins in, None for plain text.
    """

    ids: list[int]
    answer: str
    item: "Item"
    start_in: Channel | None = None
    pixels: Float[Tensor, "N 3 P P"] | None = None
    grids: Int[Tensor, "n 3"] | None = None


class Item(Protocol):
    """One draw of a task."""

    def example(self, tokenizer: Tokenizer, domain: str) -> Example:
        """The whole of it, learned where the answer is."""

    def question(self, tokenizer: Tokenizer) -> Question:
        """What stands before the first answer, and that answer."""

    def texts(self) -> list[str]:
        """The texts that are tokenized one by one: what a vocabulary learns from."""


Part = tuple[Any, bool]
"""A text, learned or only read; or a picture, which is only read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """Text between end tokens, with pictures in it where there are any."""

    parts: tuple[Part, ...]

    @property
    def _pictures(self) -> list[Any]:
        return [part for part, _ in self.parts if not isinstance(part, str)]

    def example(self, tokenizer: Tokenizer, domain: str) -> Example:
        """All parts; the end token behind a learned last part is learned too."""
        end = tokenizer.eos_id
        ids, learned = [end], [False]
        for part, counts in self.parts:
            found = _encode(part, tokenizer)
            ids += found
            learned += [counts] * len(found)
        pixels, grids = _patches(self._pictures)
        return Example(
            ids=torch.tensor([*ids, end]),
            learned=torch.tensor([*learned, self.parts[-1][1]]),
            domain=domain,
            pixels=pixels,
            grids=grids,
        )

    def question(self, tokenizer: Tokenizer) -> Question:
        """The parts before the first learned one, which is the answer."""
        first = [counts for _, counts in self.parts].index(True)
        before = Passage(parts=self.parts[:first])
        ids = [tokenizer.eos_id]
        for part, _ in before.parts:
            ids += _encode(part, tokenizer)
        pixels, grids = _patches(before._pictures)
        answer = self.parts[first][0].strip()
        return Question(ids=ids, answer=answer, item=self, pixels=pixels, grids=grids)

    def texts(self) -> list[str]:
        """Its parts that are texts."""
        return [part for part, _ in self.parts if isinstance(part, str)]


def _encode(part: Any, tokenizer: Tokenizer) -> list[int]:
    """A text as ordinary tokens; a picture as its prompt, grown to its rows."""
    if isinstance(part, str):
        return tokenizer.encode(part)
    ids = tokenizer.encode(media.prompt_text(*part.size), allow_special=True)
    return _grown(ids, [part], tokenizer)


def _grown(ids: list[int], pictures: Sequence[Any], tokenizer: Tokenizer) -> list[int]:
    grids = [(1, *media.RELEASED.grid(*picture.size)) for picture in pictures]
    pad = tokenizer.special_id(examples.PLACEHOLDER)
    return media.expand_placeholders(ids, grids, pad)


def _patches(pictures: Sequence[Any]) -> tuple[Tensor | None, Tensor | None]:
    if not pictures:
        return None, None
    patches, grids = media.preprocess_all(pictures)
    return torch.from_numpy(patches), torch.from_numpy(grids)


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialogue:
    """Messages in XTML with their tools and pictures; thinking is left empty."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    effort: str | None = None
    pictures: Sequence[Any] = ()

    @property
    def wanted(self) -> RenderOptions:
        """How it is rendered: an effort means that there is a think channel."""
        return RenderOptions(
            tools=self.tools,
            thinking=self.effort is not None,
            thinking_effort=self.effort,
        )

    def example(self, tokenizer: Tokenizer, domain: str) -> Example:
        """The whole dialogue, learned on what the assistant writes."""
        return examples.of_conversation(
            self.messages,
            tokenizer,
            domain,
            wanted=self.wanted,
            pictures=self.pictures,
        )

    def question(self, tokenizer: Tokenizer) -> Question:
        """The messages before the first answer with the generation prompt."""
        first = [m["role"] for m in self.messages].index("assistant")
        before = self.messages[:first]
        pictures = self.pictures[: sum(map(_count_pictures, before))]
        asked = xtml.render(before, self.wanted, _prompts(pictures))
        ids = _grown(asked.encode(tokenizer), pictures, tokenizer)
        pixels, grids = _patches(pictures)
        answer = str(self.messages[first].get("content") or "")
        return Question(
            ids=ids,
            answer=answer,
            item=self,
            start_in=asked.start_in,
            pixels=pixels,
            grids=grids,
        )

    def texts(self) -> list[str]:
        """All ordinary segments."""
        whole = dataclasses.replace(self.wanted, add_generation_prompt=False)
        pieces = xtml.render(self.messages, whole, _prompts(self.pictures)).segments
        return [piece.text for piece in pieces if not piece.special]


def _prompts(pictures: Sequence[Any]) -> list[str]:
    return [media.prompt_text(*picture.size) for picture in pictures]


def _count_pictures(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return sum(part["type"] == "image" for part in parts)


Draw = Callable[[Lot], Item]


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A source of examples: example `index` is a pure function of the index.

    The two splits draw from seeds of their own, and from halves of their own where
    the possible questions are few (digits, facts, sums).
    """

    domain: str
    draw: Draw
    tokenizer: Tokenizer
    split: Split = "train"

    def item(self, index: int) -> Item:
        """The draw of this index."""
        return self.draw(Lot.of(self.domain, self.split, index))

    def example(self, index: int) -> Example:
        """The draw of this index as a document."""
        return self.item(index).example(self.tokenizer, self.domain)

    def question(self, index: int) -> Question:
        """The draw of this index as a question."""
        return self.item(index).question(self.tokenizer)
