"""Speculative decoding: a draft proposes, one pass verifies, what is wrong is undone.

Every sequence has its own count of accepted tokens. What is taken back is replayed
from cached inputs of the KDA layers, so a state holds verified tokens only.
"""

from collections.abc import Sequence as Many

import torch
from torch import Tensor

from k3.errors import RequestError
from k3.kernels import sample
from k3.model import DecodeState, Model
from k3.model.draft import features
from k3.serve import accept, speculate_tree
from k3.serve.accept import verify as verify
from k3.serve.block import Block as Block
from k3.serve.block import finish, propose
from k3.serve.draft import Draft as Draft
from k3.serve.draft import NGramDraft as NGramDraft
from k3.serve.draft_eagle import EagleDraft as EagleDraft
from k3.serve.draft_model import ModelDraft as ModelDraft
from k3.serve.features import layers
from k3.serve.sequence import Sequence


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
    # What earlier rounds kept is verified: only this one may be taken back.
    starts, state = state.lens, state.keeping(keep_inputs(k))
    reads, taps = layers(draft), dict[str, Tensor]()
    if any(block.proposal.parents for block in blocks):
        return speculate_tree.decode(model, state, blocks, reads)
    ids = _ids(blocks)
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
    finish(blocks, found, [*logits])


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
