"""One round of drafting for each sequence: what is proposed, ruled out and emitted."""

from collections.abc import Sequence as Many
from dataclasses import dataclass, field

import torch
from torch import Tensor

from k3.errors import RequestError
from k3.kernels import sample
from k3.model.completion import Choice, Token
from k3.serve.choose import no_choice
from k3.serve.draft import Chance, Draft, Proposal
from k3.serve.features import FeatureDraft
from k3.serve.request import Constraint
from k3.serve.sequence import Sequence


@dataclass(slots=True)
class Block:
    """What one round does for one sequence: proposed, ruled out, emitted."""

    sequence: Sequence
    proposal: Proposal
    masks: list[Tensor | None] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    accepted: int = 0
    error: Exception | None = None

    @staticmethod
    def of(sequence: Sequence, chosen: Token | Exception) -> "Block":
        """What a step without a draft has given."""
        if isinstance(chosen, Token):
            return Block(sequence, Proposal(()), tokens=[chosen])
        return Block(sequence, Proposal(()), error=chosen)

    @property
    def drafted(self) -> int:
        """Tokens that the model was asked to verify."""
        return len(self.proposal.ids)

    @property
    def emitted(self) -> int:
        """Tokens that the sequence has gone on by."""
        return len(self.tokens)


def propose(rows: Many[Sequence], draft: Draft, k: int, vocab_size: int) -> list[Block]:
    """Ask the draft, and cut what is too long or what a constraint rules out."""
    chances = [Chance(s.running.sampling, s.running.generator) for s in rows]
    contexts = [s.chain.tokens for s in rows]
    if isinstance(draft, FeatureDraft):
        traces = [s.trace for s in rows]
        made = draft.propose_from(traces, contexts, k, chances)
    else:
        made = draft.propose(contexts, k, chances)
    blocks = []
    for s, proposal in zip(rows, made, strict=True):
        if any(not 0 <= token < vocab_size for token in proposal.ids):
            raise RequestError(
                f"a draft proposes ids from 0 to {vocab_size - 1}: got "
                f"{proposal.ids}; use one for this model"
            )
        # The token that follows the block is one more.
        block = Block(s, proposal.cut(min(k, s.most - len(s) - 1)))
        try:
            constrain(block)
        except Exception as error:
            block.error = error
        blocks.append(block)
    return blocks


def constrain(block: Block) -> None:
    """Take the mask before each token, and leave out what no allowed token leads to.

    What a draft has drawn stays, though it is ruled out, to be rejected: a rejection
    is part of the law. What it was certain of is left out itself.
    """
    rules, made = block.sequence.constraint, block.proposal
    if rules is None:
        block.masks = [None] * (len(made.ids) + 1)
        return
    walk = _Walk(rules, made)
    masks, kept = {-1: rules.mask()}, list[int]()
    try:
        for node, (token, above) in enumerate(zip(made.ids, made.above, strict=True)):
            if above not in masks:
                continue
            mask = masks[above]
            allowed = mask is None or bool(mask[token])
            if allowed or made.probs is not None:
                kept.append(node)
            # What follows the end of a constraint is never looked at.
            if allowed and not walk.on(node):
                masks[node] = rules.mask()
    finally:
        walk.back(0)
    block.masks = [masks.get(node) for node in (-1, *kept)]
    block.proposal = made.pick(kept)


class _Walk:
    """A constraint on its way through the nodes of a proposal."""

    def __init__(self, rules: Constraint, made: Proposal) -> None:
        self.rules, self.made = rules, made
        self.went: list[int] = []

    def on(self, node: int) -> bool:
        """Go to a node; whether the constraint is done behind it."""
        path = self.made.path(node)
        same = [a == b for a, b in zip(self.went, path, strict=False)]
        self.back([*same, False].index(False))
        for at in path[len(self.went) :]:
            self.rules.accept(self.made.ids[at])
            self.went.append(at)
        return self.rules.done()

    def back(self, count: int) -> None:
        """Go back to the first nodes of the way."""
        self.rules.rollback(len(self.went) - count)
        self.went = self.went[:count]


def finish(blocks: list[Block], found: list[list[int]], logits: list[Tensor]) -> None:
    """Go on by the tokens found for each block, behind these logits [n W].

    Without a first token the block has an error.
    """
    choices = iter(_choices(blocks, found, logits))
    for block, ids in zip(blocks, found, strict=True):
        chosen = [next(choices) for _ in ids]
        if block.error is None and not ids:
            block.error = no_choice(block.sequence)
        try:
            _take(block, ids, chosen)
        except Exception as error:
            block.error = error


def _take(block: Block, ids: list[int], choices: list[Choice]) -> None:
    """Go on by tokens until one is the last."""
    for token_id, choice in zip(ids, choices, strict=True):
        block.tokens.append(block.sequence.take(token_id, choice))
        if block.sequence.finish:
            break
    block.accepted = min(block.accepted, block.emitted)


def _choices(
    blocks: list[Block], found: list[list[int]], logits: list[Tensor]
) -> list[Choice]:
    """Log-probabilities of all emitted tokens in order, and of their alternatives."""
    flat = torch.cat([row[: len(ids)] for row, ids in zip(logits, found, strict=True)])
    at = torch.tensor([i for ids in found for i in ids], device=flat.device)
    most = [
        block.sequence.running.sampling.logprobs
        for block, ids in zip(blocks, found, strict=True)
        for _ in ids
    ]
    scored = sample.score(flat, at.long(), max(most, default=0))
    columns = zip(
        scored.logprobs.tolist(),
        scored.top_ids.tolist(),
        scored.top_logprobs.tolist(),
        most,
        strict=True,
    )
    return [
        Choice(logprob, tuple(zip(top, values, strict=True))[:n])
        for logprob, top, values, n in columns
    ]
