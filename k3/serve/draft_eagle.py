"""EAGLE-3 in the engine: one layer that reads what the target's passes have left."""

from collections.abc import Sequence
from itertools import compress

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from k3.errors import RequestError
from k3.model.cache import MLACache
from k3.model.draft import Draft
from k3.serve import draft_tree
from k3.serve.draft import Chance, Proposal, draw, proposals
from k3.serve.features import Trace, together
from k3.serve.tree import Tree

PASS_TOKENS = 1024
"""Tokens of a new context that one pass runs."""

TOGETHER = 32
"""New tokens up to which a sequence is run beside others: they are padded to it."""


class EagleDraft:
    """Proposes by a trained draft, from features of the tokens that the target ran.

    A sequence's trace holds the features that came since the last round and the
    draft's own rows. Rows of proposed tokens are dropped after the round: what the
    target verified is run again from its own features. Where a restored prefix left
    no features the draft sees less of the past; the result stays the target's. With a
    `tree` it proposes one of that shape instead of a chain.
    """

    def __init__(self, draft: Draft, tree: Tree | None = None) -> None:
        self.draft, self.tree = draft, tree
        self.reads = draft.config.layers
        self._ids = draft.target_ids()

    def check(self, vocab_size: int) -> None:
        """Refuse a target with other tokens."""
        own = self.draft.config.text.vocab_size
        if own != vocab_size:
            raise RequestError(
                f"a draft proposes its target's tokens, {own} of them: got a model "
                f"with {vocab_size}; train one for this model"
            )

    def propose(
        self, contexts: list[list[int]], k: int, chances: Sequence[Chance] = ()
    ) -> list[Proposal]:
        """Nothing: without features there is nothing to go on."""
        return [Proposal(()) for _ in contexts]

    @torch.inference_mode()
    def propose_from(
        self,
        traces: Sequence[Trace],
        contexts: list[list[int]],
        k: int,
        chances: Sequence[Chance],
    ) -> list[Proposal]:
        """k tokens behind each context, or a tree at most k deep.

        They are drawn as the sequence draws its own.
        """
        known = [bool(trace.parts) and k > 0 for trace in traces]
        made = [Proposal(()) for _ in traces]
        if any(known):
            rows = [n for n, has in enumerate(known) if has]
            asked = [*compress(chances, known)]
            hidden, cache = self._read(
                [*compress(traces, known)], [*compress(contexts, known)]
            )
            if self.tree is None:
                found = self._chain(hidden, cache, k, asked)
            else:
                shape, behind = self.tree.cut(k), (hidden, cache)
                found = draft_tree.grow(self.draft, self._logits, behind, shape, asked)
            for row, proposal in zip(rows, found, strict=True):
                made[row] = proposal
        return made

    def _read(
        self, traces: list[Trace], contexts: list[list[int]]
    ) -> tuple[Float[Tensor, "B D"], MLACache]:
        """Run the features that have come; the hidden state behind each context."""
        news = [
            self._catch_up(trace, tokens)
            for trace, tokens in zip(traces, contexts, strict=True)
        ]
        cache = together(traces, self.draft.init_cache(1))
        lens = [len(read) for _, read in news]
        ids = pad_sequence([ids for ids, _ in news], batch_first=True)
        read = pad_sequence([read for _, read in news], batch_first=True)
        hidden = self._run(ids, read, cache)
        # Padding stands behind what is real, which cannot see it.
        cache.rewind(tuple(ids.shape[1] - n for n in lens))
        return hidden[torch.arange(len(lens)), torch.tensor(lens) - 1], cache

    def _catch_up(self, trace: Trace, tokens: list[int]) -> tuple[Tensor, Tensor]:
        """The last new tokens and features of one; those before them are run alone."""
        read = trace.take()
        assert read is not None
        # The feature of a position led to the token after it.
        ids = torch.tensor(tokens[trace.end - len(read) + 1 : trace.end + 1])
        if len(read) > TOGETHER:
            own = trace.rows()
            cache = own.fork() if own else self.draft.init_cache(1)
            trace.cache, trace.row = cache, 0
            early = len(read) - 1
            for at in range(0, early, PASS_TOKENS):
                part = slice(at, min(at + PASS_TOKENS, early))
                self._run(ids[None, part], read[None, part], cache)
            ids, read = ids[early:], read[early:]
        return ids, read

    def _run(
        self, ids: Tensor, read: Float[Tensor, "B T F"], cache: MLACache
    ) -> Float[Tensor, "B T D"]:
        weight = self.draft.fc.weight
        feature = self.draft.fuse(read.to(weight.device, weight.dtype))
        return self.draft.advance(ids.to(weight.device), feature, cache)

    def _chain(
        self,
        hidden: Float[Tensor, "B D"],
        cache: MLACache,
        k: int,
        chances: Sequence[Chance],
    ) -> list[Proposal]:
        """k tokens behind each, every one on the hidden state of the one before."""
        ids, laws = list[Tensor](), list[Tensor | None]()
        for step in range(k):
            if step:
                last = ids[-1].to(hidden.device)[:, None]
                hidden = self.draft.advance(last, hidden[:, None], cache)[:, 0]
            law, drawn = draw(self._logits(hidden), chances)
            ids.append(drawn)
            laws.append(law)
        cache.rewind((k - 1,) * len(chances))
        return proposals(ids, laws, chances)

    def _logits(self, hidden: Float[Tensor, "B D"]) -> Float[Tensor, "B W"]:
        """Logits over the target's tokens; those that the draft cannot name have none.

        A greedy tie goes to the lower id of the target.
        """
        logits = self.draft.shared_head(hidden)
        words = self.draft.config.text.vocab_size
        if logits.shape[-1] == words:
            return logits
        full = logits.new_full((len(logits), words), -torch.inf)
        return full.index_copy(1, self._ids, logits)
