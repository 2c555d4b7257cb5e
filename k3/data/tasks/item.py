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


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Question:
    """A prompt and the one answer that is wanted; pictures as patches and grids."""

    ids: list[int]
    answer: str
    item: "Item"
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """Plain text between end tokens; `parts` are texts, each learned or only read."""

    parts: tuple[tuple[str, bool], ...]

    def example(self, tokenizer: Tokenizer, domain: str) -> Example:
        """All parts; the end token behind a learned last part is learned too."""
        ids, learned = [tokenizer.eos_id], [False]
        for text, counts in (*self.parts, ("", self.parts[-1][1])):
            found = tokenizer.encode(text) if text else [tokenizer.eos_id]
            ids += found
            learned += [counts] * len(found)
        return Example(
            ids=torch.tensor(ids), learned=torch.tensor(learned), domain=domain
        )

    def question(self, tokenizer: Tokenizer) -> Question:
        """The parts before the first learned one, which is the answer."""
        ids = [tokenizer.eos_id]
        for text, counts in self.parts:
            if counts:
                return Question(ids=ids, answer=text, item=self)
            ids += tokenizer.encode(text)
        raise AssertionError("a passage has a learned part")

    def texts(self) -> list[str]:
        """Its parts."""
        return [text for text, _ in self.parts]


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

    @property
    def _prompts(self) -> list[str]:
        return [media.prompt_text(*picture.size) for picture in self.pictures]

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
        asked = xtml.render(self.messages[:first], self.wanted, self._prompts)
        ids, pixels, grids = asked.encode(tokenizer), None, None
        if self.pictures:
            patches, found = media.preprocess_all(self.pictures)
            pad = tokenizer.special_id(examples.PLACEHOLDER)
            ids = media.expand_placeholders(ids, found, pad)
            pixels, grids = torch.from_numpy(patches), torch.from_numpy(found)
        answer = str(self.messages[first].get("content") or "")
        return Question(ids=ids, answer=answer, item=self, pixels=pixels, grids=grids)

    def texts(self) -> list[str]:
        """All ordinary segments."""
        whole = dataclasses.replace(self.wanted, add_generation_prompt=False)
        pieces = xtml.render(self.messages, whole, self._prompts).segments
        return [piece.text for piece in pieces if not piece.special]


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
