"""Run a prompt from the longest stored prefix, and store what it passes (§5.4.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from k3.errors import RequestError
from k3.model import DecodeState, Model
from k3.serve.keys import Chain
from k3.serve.layout import CacheOptions
from k3.serve.prefix import PrefixCache


@dataclass(frozen=True, slots=True)
class Prefilled:
    """Logits [1 1 W] of the last token, the state after it, and what was reused."""

    logits: Tensor
    state: DecodeState
    cached_tokens: int
    chain: Chain


def chunk_ends(start: int, tokens: int, options: CacheOptions) -> list[int]:
    """Where passes end: every chunk, the last boundary a repeat can use, the end.

    A repeat of the prompt may reuse all but its last token, and only where a pass
    ended: a prompt of an exact multiple must stop one boundary early too.
    """
    last = (tokens - 1) // options.hash_tokens * options.hash_tokens
    chunk = options.chunk_tokens
    multiples = range(start - start % chunk + chunk, tokens, chunk)
    return sorted({*multiples, last, tokens} - set(range(start + 1)))


@torch.no_grad()
def prefill(
    model: Model,
    cache: PrefixCache,
    tokens: Sequence[int] | Chain,
    *,
    features: Tensor | None = None,
    turn: bool = True,
    keep_inputs: int = 0,
) -> Prefilled:
    """Restore, run the rest in chunks, and commit after each one.

    `features` are the rows of all images of the prompt; those of reused tokens are
    left out here. `turn` keeps the last checkpoint, from which the next turn goes on.
    """
    if model is not cache.model:
        raise RequestError(
            "a prefix cache belongs to one model: got another; make it its own"
        )
    chain = tokens if isinstance(tokens, Chain) else cache.chain(tokens)
    if not len(chain):
        raise RequestError("a prompt needs at least one token: got none")
    state, cached = cache.restore(chain, keep_inputs=keep_inputs)
    ends = chunk_ends(cached, len(chain), cache.options)
    unit, start = cache.options.hash_tokens, cached
    last = len(chain) // unit * unit
    for end in ends:
        aligned = end % unit == 0
        write = (
            cache.schedule(chain, end, turn=turn and end == last) if aligned else None
        )
        try:
            ids = torch.tensor([chain.tokens[start:end]], device=model.device)
            rows = _features(chain, features, start, end)
            logits, state = model(ids, state=state, features=rows, logits="last")
        except BaseException:
            if write is not None:
                cache.abort(write)
            raise
        if write is not None:
            cache.commit(write, state)
        start = end
    return Prefilled(logits, state, cached, chain)


def _features(
    chain: Chain, features: Tensor | None, start: int, end: int
) -> Tensor | None:
    """The image rows that belong to the placeholders of a chunk."""
    if features is None or chain.placeholder is None:
        return None
    first = chain.tokens[:start].count(chain.placeholder)
    count = chain.tokens[start:end].count(chain.placeholder)
    return features[first : first + count] if count else None
