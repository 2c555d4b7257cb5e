"""EAGLE-3 in the engine: one layer that reads what the target's passes have left."""

from collections.abc import Sequence

import torch
from torch import Tensor

from k3.errors import RequestError
from k3.kernels import sample
from k3.model.cache import MLACache
from k3.model.draft import Draft
from k3.serve.draft import Chance, Proposal
from k3.serve.features import Trace


class EagleDraft:
    """Proposes by a trained draft, from features of the tokens that the target ran.

    A sequence's trace holds the features that came since the last round and the
    draft's own rows. Rows of proposed tokens are dropped after the round: what the
    target verified is run again from its own features. Where a restored prefix left
    no features the draft sees less of the past; the result stays the target's.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
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
        """k tokens behind each context, drawn as its sequence draws its own."""
        rows = zip(traces, contexts, chances, strict=True)
        return [self._one(trace, tokens, k, chance) for trace, tokens, chance in rows]

    def _one(self, trace: Trace, tokens: list[int], k: int, chance: Chance) -> Proposal:
        read = trace.take()
        if read is None or k < 1:
            return Proposal(())
        cache = self._cache(trace)
        device = self.draft.fc.weight.device
        # The feature of a position led to the token after it.
        ids = torch.tensor([tokens[trace.end - len(read) + 1 : trace.end + 1]])
        feature = self.draft.fuse(read[None].to(self.draft.fc.weight.dtype))
        hidden, logits = self.draft(ids.to(device), feature, cache)
        made, laws = list[int](), list[Tensor]()
        for step in range(k):
            if step:
                last = torch.tensor([[made[-1]]], device=device)
                hidden, logits = self.draft(last, hidden[:, -1:], cache)
            token, law = self._draw(logits[:, -1], chance)
            made.append(token)
            laws.append(law)
        cache.rewind((k - 1,))
        if chance.sampling.temperature == 0:
            return Proposal(tuple(made))
        return Proposal(tuple(made), torch.stack(laws))

    def _cache(self, trace: Trace) -> MLACache:
        if trace.cache is None:
            trace.cache = self.draft.init_cache(1)
        return trace.cache

    def _draw(self, logits: Tensor, chance: Chance) -> tuple[int, Tensor]:
        """A token of the target, and the law over its tokens that it was drawn from."""
        if chance.sampling.temperature == 0:
            return int(self._ids[logits[0].argmax()]), logits
        own = sample.distribution(logits, [chance.sampling])
        number = torch.rand((), generator=chance.generator, dtype=torch.float64)
        drawn = sample.draw(own, own.new_tensor([float(number)]))
        law = own.new_zeros(self.draft.config.text.vocab_size)
        law[self._ids] = own[0]
        return int(self._ids[drawn]), law
