"""Speculative decoding: a draft proposes, one pass verifies, what is wrong is undone.

Every sequence has its own count of accepted tokens. What is taken back is replayed
from cached inputs of the KDA layers, so a state holds verified tokens only.
"""

from collections.abc import Sequence as Many
from dataclasses import dataclass, field

import torch
from torch import Tensor

from k3.errors import RequestError
from k3.kernels import sample
from k3.model import DecodeState, Model
from k3.model.completion import Choice, Token
from k3.model.draft import features
from k3.serve import accept
from k3.serve.accept import verify as verify
from k3.serve.choose import no_choice
from k3.serve.draft import Chance, Proposal
from k3.serve.draft import Draft as Draft
from k3.serve.draft import NGramDraft as NGramDraft
from k3.serve.draft_eagle import EagleDraft as EagleDraft
from k3.serve.draft_model import ModelDraft as ModelDraft
from k3.serve.features import FeatureDraft, layers
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


def check(model: Model, draft: Draft | None, k: int) -> None:
    """Refuse a draft without tokens to propose, tokens without a draft, and others'."""
    if (draft is None) != (k == 0):
        raise RequestError(
            "drafting takes a draft and num_speculative_tokens of at least 1: got "
            f"{type(draft).__name__} and {k}; give both or none"
        )
    if draft is not None:
        draft.check(model.config.text.vocab_size)


def keep_inputs(k: int) -> int:
    """Inputs that a state keeps for rounds of k drafted tokens."""
    return k + 1 if k else 0


def decode(
    model: Model, state: DecodeState, rows: Many[Sequence], draft: Draft, k: int
) -> tuple[DecodeState, list[Block]]:
    """One round for all rows: at most k + 1 tokens each, the state behind them.

    The state has run all tokens of each chain but the last; the one returned keeps
    keep_inputs(k) inputs. What goes wrong with one sequence is in its block.
    """
    blocks = propose(rows, draft, k, model.config.text.vocab_size)
    ids = _ids(blocks)
    # What earlier rounds kept is verified: only this one may be taken back.
    starts = state.lens
    reads, taps = layers(draft), dict[str, Tensor]()
    state = state.keeping(keep_inputs(k))
    logits, state = model.step(ids.to(model.device), state, taps if reads else None)
    _decide(blocks, _allowed(blocks, logits))
    if reads:
        _trace(blocks, starts, features(taps, reads))
    # A row that failed ends; it goes back as far as any other.
    width = ids.shape[1]
    back = [width - max(block.emitted, 1) for block in blocks]
    return state.rewind(back), blocks


def _trace(blocks: list[Block], starts: Many[int], seen: Tensor) -> None:
    """Leave the draft the features of what each sequence went on by."""
    for block, start, read in zip(blocks, starts, seen, strict=True):
        block.sequence.trace.see(start, read[: max(block.emitted, 1)])


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
            _constrain(block)
        except Exception as error:
            block.error = error
        blocks.append(block)
    return blocks


def _constrain(block: Block) -> None:
    """Take the masks before each token, and cut at the first that is not allowed."""
    rules, ids = block.sequence.constraint, block.proposal.ids
    if rules is None:
        block.masks = [None] * (len(ids) + 1)
        return
    went = 0
    try:
        block.masks = [rules.mask()]
        for token in ids:
            mask = block.masks[-1]
            if mask is not None and not mask[token]:
                break
            rules.accept(token)
            went += 1
            # What follows the end of a constraint is never looked at.
            block.masks.append(None if rules.done() else rules.mask())
            if rules.done():
                break
    finally:
        rules.rollback(went)
    block.proposal = block.proposal.cut(went)


def _ids(blocks: list[Block]) -> Tensor:
    """The last token of each row and its proposal, filled up to one width."""
    width = max((block.drafted for block in blocks), default=0)
    rows = [
        [b.sequence.running.last_id, *b.proposal.ids, *[0] * (width - b.drafted)]
        for b in blocks
    ]
    return torch.tensor(rows)


def _allowed(blocks: list[Block], logits: Tensor) -> Tensor:
    """Logits [B T W] in which constraints have ruled tokens out."""
    if all(mask is None for block in blocks for mask in block.masks):
        return logits
    logits = logits.clone()
    for row, block in zip(logits, blocks, strict=True):
        for place, mask in zip(row, block.masks, strict=False):
            if mask is not None:
                place.masked_fill_(~mask.to(row.device), -torch.inf)
    return logits


def _decide(blocks: list[Block], logits: Tensor) -> None:
    """Verify each proposal by the logits after its prefixes, and go on by what stays.

    A place without a distribution ends a block before it; as the first it is an error.
    """
    good: list[list[bool]] = torch.isfinite(logits.amax(-1)).tolist()
    usable = [
        [*row[: block.drafted + 1], False].index(False)
        for row, block in zip(good, blocks, strict=True)
    ]
    found = _emit(blocks, usable, logits)
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


def _emit(blocks: list[Block], usable: list[int], logits: Tensor) -> list[list[int]]:
    """The tokens that follow each sequence; sets how many of them were drafted."""
    best: list[list[int]] = logits.argmax(-1).tolist()
    drawing = [
        row
        for row, block in enumerate(blocks)
        if block.sequence.running.sampling.temperature > 0 and block.error is None
    ]
    laws = iter(_laws(blocks, [(row, usable[row]) for row in drawing], logits))
    found: list[list[int]] = []
    for row, block in enumerate(blocks):
        proposal, running = block.proposal.cut(usable[row]), block.sequence.running
        ids: list[int] = []
        if block.error is None and row in drawing:
            p = next(laws)
            if usable[row]:
                numbers = accept.uniforms(len(proposal.ids) + 1, running.generator)
                checked = proposal.ids, p, proposal.probs, numbers
                ids, block.accepted = accept.verify(*checked)
        elif block.error is None:
            sure = best[row][: usable[row]]
            kept = [a == b for a, b in zip(proposal.ids, sure, strict=False)]
            block.accepted = [*kept, False].index(False)
            ids = sure[: block.accepted + 1]
        found.append(ids)
    return found


def _laws(
    blocks: list[Block], rows: list[tuple[int, int]], logits: Tensor
) -> Many[Tensor]:
    """The target's laws [n W] after the first n prefixes of each of these rows."""
    if not rows:
        return []
    flat = torch.cat([logits[row, :n] for row, n in rows])
    options = [
        blocks[row].sequence.running.sampling for row, n in rows for _ in range(n)
    ]
    return sample.distribution(flat, options).split([n for _, n in rows])


def _choices(
    blocks: list[Block], found: list[list[int]], logits: Tensor
) -> list[Choice]:
    """Log-probabilities of all emitted tokens in order, and of their alternatives."""
    flat = torch.cat([row[: len(ids)] for row, ids in zip(logits, found, strict=True)])
    at = torch.tensor([i for ids in found for i in ids], device=logits.device)
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
