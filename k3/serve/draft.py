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

    Without `probs` the draft was certain of its tokens. Without `parents` each token
    follows the one before it. A tree names for each the token that it follows, an
    earlier one, or -1 for the context; of those that follow the same one, the law of
    the second is given the first, and so on.
    """

    ids: tuple[int, ...]
    probs: Float[Tensor, "k W"] | None = None
    parents: tuple[int, ...] = ()

    @property
    def above(self) -> Sequence[int]:
        """The token that each follows."""
        return self.parents or range(-1, len(self.ids) - 1)

    def path(self, node: int) -> list[int]:
        """The tokens that lead to one, itself the last."""
        found: list[int] = []
        while node >= 0:
            found.append(node)
            node = self.above[node]
        return found[::-1]

    def cut(self, count: int) -> "Proposal":
        """Return the tokens that are at most `count` behind the context."""
        if not self.parents:
            probs = None if self.probs is None else self.probs[:count]
            return Proposal(self.ids[:count], probs)
        near = [n for n in range(len(self.ids)) if len(self.path(n)) <= count]
        return self.pick(near)

    def pick(self, nodes: Sequence[int]) -> "Proposal":
        """Return these tokens, in order; with each comes the one that it follows."""
        if len(nodes) == len(self.ids):
            return self
        if not self.parents:
            return self.cut(len(nodes))
        ids = tuple(self.ids[node] for node in nodes)
        probs = None if self.probs is None else self.probs[list(nodes)]
        place = {node: n for n, node in enumerate((-1, *nodes), -1)}
        return Proposal(ids, probs, tuple(place[self.parents[n]] for n in nodes))


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
