"""Drafts that know what comes, and lie when they are told to."""

import sys

import torch

from k3.serve.draft import Proposal
from k3.serve.keys import Chain
from k3.serve.sequence import Sequence


class Scripted:
    """Proposes the true continuation up to a count of tokens, then another token."""

    def __init__(self, texts, right, words=57):
        self.texts, self.right, self.words = texts, right, words
        self.rounds = 0

    def check(self, vocab_size):
        """It is for any model."""

    def propose(self, contexts, k, chances=()):
        right = self.right[self.rounds % len(self.right)]
        self.rounds += 1
        each = right if isinstance(right, list) else [right] * len(contexts)
        return [self._one(c, k, n) for c, n in zip(contexts, each, strict=True)]

    def _one(self, context, k, right):
        text = next(t for t in self.texts if t[: len(context)] == context)
        true = text[len(context) : len(context) + k]
        lies = [(token + 1) % self.words for token in true]
        return Proposal(tuple(true[:right] + lies[right:]))


class Fixed:
    """Draws from laws that depend on the place only, or is certain of one token."""

    def __init__(self, laws, start, certain=False):
        self.laws, self.start, self.certain = laws, start, certain

    def check(self, vocab_size):
        """It is for any model."""

    def propose(self, contexts, k, chances):
        made = []
        for context, chance in zip(contexts, chances, strict=True):
            at = len(context) - self.start
            laws = self.laws[at : at + k]
            if self.certain:
                made.append(Proposal(tuple(laws.argmax(-1).tolist())))
                continue
            ids = [int(law.multinomial(1, generator=chance.generator)) for law in laws]
            made.append(Proposal(tuple(ids), laws))
        return made


def sequence(request, vocab=61):
    """A sample of a request as the engine has it after its prompt and one token."""
    chain = Chain(b"", sys.maxsize).extend(request.tokens)
    most = request.options.max_tokens
    return Sequence(
        request, 0, chain, order=(0, 0), max_tokens=most, eos=None, tokenizer=None
    )


def prefilled(net, sequences, keep):
    """The state behind all tokens of each sequence but the last."""
    from k3.model import DecodeState

    states = []
    for s in sequences:
        s.running.last_id = s.chain.tokens[-1]
        ids = torch.tensor([s.chain.tokens[:-1]])
        states.append(net(ids, state=net.init_state(1, keep))[1])
    return DecodeState.join(states)
