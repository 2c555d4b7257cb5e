"""Candidates of a token tree by a trained draft, depth by depth for all sequences."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels import sample
from k3.model.cache import MLACache
from k3.model.draft import Draft
from k3.model.tree import Nodes, TreeRows
from k3.serve.draft import Chance, Proposal
from k3.serve.tree import Tree

Logits = Callable[[Tensor], Tensor]


@dataclass(slots=True)
class _Grown:
    """What has been proposed behind one context."""

    ids: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    laws: list[Tensor] = field(default_factory=list)

    def add(self, token: int, above: int, law: Tensor | None) -> int:
        """Take a candidate; its number."""
        self.ids.append(token)
        self.parents.append(above)
        if law is not None:
            self.laws.append(law)
        return len(self.ids) - 1

    def proposal(self) -> Proposal:
        """All of it."""
        probs = torch.stack(self.laws) if self.laws else None
        return Proposal(tuple(self.ids), probs, tuple(self.parents))


@dataclass(frozen=True, slots=True)
class _Live:
    """A place whose candidates come next: its sequence, and its number in both trees.

    `row` is where its hidden state lies.
    """

    sequence: int
    node: int
    place: int
    row: int


def grow(
    draft: Draft,
    logits: Logits,
    behind: tuple[Float[Tensor, "B D"], MLACache],
    tree: Tree,
    chances: Sequence[Chance],
) -> list[Proposal]:
    """A tree behind each context, given the draft's hidden states and rows there.

    Where a law has fewer tokens than the tree has candidates there are fewer. The
    cache holds the contexts alone, before and after.
    """
    hidden, cache = behind
    below, grown = tree.below(), [_Grown() for _ in chances]
    live = [_Live(row, -1, -1, row) for row in range(len(chances))]
    while live:
        rules = [chances[at.sequence] for at in live]
        drawn = _candidates(logits(hidden), rules, [len(below[x.place]) for x in live])
        after = []
        for row, (at, found) in enumerate(zip(live, drawn, strict=True)):
            own = grown[at.sequence]
            for place, (token, law) in zip(below[at.place], found, strict=False):
                node = own.add(token, at.node, law)
                if place in below:
                    after.append(_Live(at.sequence, node, place, row))
        if after:
            hidden = _run(draft, hidden, cache, grown, after)
        live = after
    return [each.proposal() for each in grown]


def _run(
    draft: Draft,
    hidden: Float[Tensor, "m D"],
    cache: MLACache,
    grown: list[_Grown],
    live: list[_Live],
) -> Float[Tensor, "n D"]:
    """The draft's hidden states of these candidates, each on that of its parent."""
    nodes = Nodes.of([each.parents for each in grown])
    which = torch.tensor([nodes.starts[at.sequence] + at.node for at in live])
    ids = torch.tensor([[grown[at.sequence].ids[at.node]] for at in live])
    feature = hidden[[at.row for at in live]][:, None]
    rows = TreeRows.over(cache, nodes, which)
    return draft.advance(ids.to(hidden.device), feature, rows)[:, 0]


def _candidates(
    logits: Float[Tensor, "n W"], chances: Sequence[Chance], counts: Sequence[int]
) -> Iterator[list[tuple[int, Tensor | None]]]:
    """So many tokens of each row, with their laws where they are drawn."""
    drawing = [chance.sampling.temperature > 0 for chance in chances]
    laws = None
    if any(drawing):
        laws = sample.distribution(logits, [chance.sampling for chance in chances])
    for row, (chance, count) in enumerate(zip(chances, counts, strict=True)):
        if laws is None or not drawing[row]:
            best = torch.sort(logits[row], descending=True, stable=True).indices
            yield [(token, None) for token in best[:count].tolist()]
        else:
            yield [*_drawn(laws[row], chance.generator, count)]


def _drawn(
    law: Float[Tensor, " W"], generator: torch.Generator, count: int
) -> Iterator[tuple[int, Tensor]]:
    """Tokens without replacement: each with its law given those before it."""
    for _ in range(count):
        number = torch.rand((), generator=generator, dtype=torch.float64)
        token = int(sample.draw(law[None], law.new_tensor([float(number)])))
        yield token, law
        rest = law.clone()
        rest[token] = 0
        total = rest.sum()
        if not total > 0:
            return
        law = rest / total
