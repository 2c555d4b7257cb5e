"""Drafts: tokens proposed cheaply, for the model to verify in one pass."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from k3.errors import RequestError
from k3.kernels import sample
from k3.kernels.sample import SampleOptions


@dataclass(frozen=True, slots=True)
class Proposal:
    """Tokens that may follow, and the law that each was drawn from.

    Without `probs` the draft was certain of its tokens.
    """

    ids: tuple[int, ...]
    probs: Float[Tensor, "k W"] | None = None

    def cut(self, count: int) -> "Proposal":
        """Return the first `count` tokens."""
        probs = None if self.probs is None else self.probs[:count]
        return Proposal(self.ids[:count], probs)


@dataclass(frozen=True, slots=True)
class Chance:
    """How a sequence draws its tokens, and the random numbers that are its own."""

    sampling: SampleOptions
    generator: torch.Generator


@runtime_checkable
class Draft(Protocol):
    """Proposes the next tokens of several sequences.

    What it draws it draws from the sequence's own `chances`, so that a result does
    not depend on who else is in the batch.
    """

    def propose(
        self, contexts: list[list[int]], k: int, chances: Sequence[Chance], /
    ) -> list[Proposal]:
        """At most k tokens behind each context."""

    def check(self, vocab_size: int, /) -> None:
        """Refuse a model with so many tokens if the draft is not for it."""


def draw(
    logits: Float[Tensor, "B W"], chances: Sequence[Chance]
) -> tuple[Float[Tensor, "B W"] | None, Int[Tensor, " B"]]:
    """The law of each row's next token, and one token of it by the row's own numbers.

    Without a row that is drawn no law is made: a greedy one is certain of its token.
    """
    drawing = [chance.sampling.temperature > 0 for chance in chances]
    if not any(drawing):
        return None, logits.argmax(-1)
    law = sample.distribution(logits, [chance.sampling for chance in chances])
    uniform = [
        torch.rand((), generator=c.generator, dtype=torch.float64) if draws else 0.0
        for c, draws in zip(chances, drawing, strict=True)
    ]
    return law, sample.draw(law, law.new_tensor(uniform))


def proposals(
    ids: Sequence[Tensor], laws: Sequence[Tensor | None], chances: Sequence[Chance]
) -> list[Proposal]:
    """Chains of the tokens [B] of each step, with the laws [B W] of those drawn."""
    drawn = [law for law in laws if law is not None]
    sure = [not drawn or chance.sampling.temperature == 0 for chance in chances]
    return [
        Proposal(
            tuple(tokens),
            # Without chances all are greedy.
            None if not sure or sure[row] else torch.stack([x[row] for x in drawn]),
        )
        for row, tokens in enumerate(torch.stack(list(ids), 1).tolist())
    ]


class NGramDraft:
    """Prompt lookup: what followed the last tokens when they last came before.

    The longest match of `most` down to `least` tokens is taken.
    """

    def __init__(self, least: int = 2, most: int = 4) -> None:
        if not 1 <= least <= most:
            raise RequestError(
                f"a lookup compares at least 1 token: got {least} to {most}; "
                "1 <= least <= most"
            )
        self.least, self.most = least, most

    def propose(
        self, contexts: list[list[int]], k: int, chances: Sequence[Chance] = ()
    ) -> list[Proposal]:
        """At most k tokens behind each context; none where nothing matches."""
        return [Proposal(tuple(self._follow(context, k))) for context in contexts]

    def check(self, vocab_size: int) -> None:
        """Any model's tokens can be looked up."""

    def _follow(self, context: list[int], k: int) -> list[int]:
        packed = array("q", context)
        text, width = packed.tobytes(), packed.itemsize
        for n in range(min(self.most, len(context) - 1), self.least - 1, -1):
            # The last token has no follower yet, so a match ends before it.
            at = _last(text[-n * width :], text[:-width], width)
            if at is not None:
                return context[at + n : at + n + k]
        return []


def _last(part: bytes, text: bytes, width: int) -> int | None:
    """Where an item sequence last begins, in items."""
    at = text.rfind(part)
    while at >= 0 and at % width:
        at = text.rfind(part, 0, at + len(part) - 1)
    return at // width if at >= 0 else None
