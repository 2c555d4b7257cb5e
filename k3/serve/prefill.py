"""Run a prompt from the longest stored prefix, and store what it passes (§5.4.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from k3.errors import RequestError
from k3.model import DecodeState, Model
from k3.serve.entries import Write
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


def chunk_ends(
    start: int, tokens: int, options: CacheOptions, branch: int = 0
) -> list[int]:
    """Where passes end: every chunk, the last boundary a repeat can use, the end.

    A repeat of the prompt may reuse all but its last token, and only where a pass
    ended: a prompt of an exact multiple must stop one boundary early too. `branch` is
    where this prompt leaves another: their next sibling will leave there as well.
    """
    last = (tokens - 1) // options.hash_tokens * options.hash_tokens
    chunk = options.chunk_tokens
    multiples = range(start - start % chunk + chunk, tokens, chunk)
    return sorted({*multiples, branch, last, tokens} - set(range(start + 1)))


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
    branch = cache.matched(chain)
    ends = chunk_ends(cached, len(chain), cache.options, branch)
    unit, start = cache.options.hash_tokens, cached
    kept = {branch, len(chain) // unit * unit} if turn else {branch}
    for end in ends:
        span, write = range(start, end), None
        if end % unit == 0:
            write = cache.schedule(chain, end, turn=end in kept)
        logits, state = _run(cache, chain, span, (state, features), write)
        start = end
    return Prefilled(logits, state, cached, chain)


def _run(
    cache: PrefixCache,
    chain: Chain,
    span: range,
    inputs: tuple[DecodeState, Tensor | None],
    write: Write | None,
) -> tuple[Tensor, DecodeState]:
    """One pass over a span of the chain, committed, or aborted if it fails."""
    state, features = inputs
    ids = [chain.tokens[span.start : span.stop]]
    try:
        logits, state = cache.model(
            torch.tensor(ids, device=cache.model.device),
            state=state,
            features=_features(chain, features, span),
            logits="last",
        )
    except BaseException:
        if write is not None:
            cache.abort(write)
        raise
    if write is not None:
        cache.commit(write, state)
    return logits, state


def _features(chain: Chain, features: Tensor | None, span: range) -> Tensor | None:
    """The image rows that belong to the placeholders of a chunk."""
    if features is None or chain.placeholder is None:
        return None
    first = chain.tokens[: span.start].count(chain.placeholder)
    count = chain.tokens[span.start : span.stop].count(chain.placeholder)
    return features[first : first + count] if count else None
