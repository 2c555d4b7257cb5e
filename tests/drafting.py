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


class FixedTree:
    """Draws a tree's candidates from laws of their depth, or is certain of the best."""

    def __init__(self, laws, start, tree, certain=False):
        self.laws, self.start, self.tree = laws, start, tree
        self.certain = certain

    def check(self, vocab_size):
        """It is for any model."""

    def propose(self, contexts, k, chances):
        pairs_ = zip(contexts, chances, strict=True)
        return [self._one(len(c) - self.start, x.generator) for c, x in pairs_]

    def _one(self, at, generator):
        depth, drawn, ids, laws = [], {}, [], []
        for above in self.tree.parents:
            depth.append(at + (0 if above < 0 else depth[above] + 1 - at))
            law = self.laws[depth[-1]].clone()
            law[drawn.setdefault(above, [])] = 0
            law /= law.sum()
            token = int(
                law.argmax()
                if self.certain
                else law.multinomial(1, generator=generator)
            )
            drawn[above].append(token)
            ids.append(token)
            laws.append(law)
        probs = None if self.certain else torch.stack(laws)
        return Proposal(tuple(ids), probs, self.tree.parents)


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


COUNT = 1200


def pairs(net, draft, options, k=2):
    """How often each pair of tokens comes first, over many seeds."""
    from serving import request

    from k3.serve import speculate

    found = {}
    asked = [
        request("x", 3, max_tokens=2, **options | {"seed": i}) for i in range(COUNT)
    ]
    rows = [sequence(one) for one in asked]
    state = prefilled(net, rows[:1], k + 1)
    for start in range(0, COUNT, 250):
        part = rows[start : start + 250]
        for s in part:
            s.running.last_id = s.chain.tokens[-1]
        at = state.select([0] * len(part))
        at, _ = speculate.decode(net, at, part, draft, k)
        short = [i for i, s in enumerate(part) if not s.finish]
        if short:
            left = [part[i] for i in short]
            speculate.decode(net, at.select(short), left, draft, k)
    for s in rows:
        pair = tuple(s.chain.tokens[3:5])
        found[pair] = found.get(pair, 0) + 1
    return found


def expected(net, options):
    """The law of the first two tokens."""
    from serving import request

    from k3.kernels import sample

    asked = request("x", 3, **options)
    rule, prompt = asked.options.sampling, torch.tensor([asked.tokens])
    first = sample.distribution(net(prompt)[:, -1], [rule])[0]
    words = [int(i) for i in first.nonzero()[:, 0]]
    both = torch.cat([prompt.repeat(len(words), 1), torch.tensor(words)[:, None]], 1)
    second = sample.distribution(net(both)[:, -1], [rule] * len(words))
    return {
        (a, b): float(first[a] * second[i, b])
        for i, a in enumerate(words)
        for b in second[i].nonzero()[:, 0].tolist()
    }


def chi_square(found, law):
    """(statistic - degrees) / its deviation, rare pairs in one cell."""
    cells, rest = [], [0.0, 0]
    for pair, chance in law.items():
        if chance * COUNT >= 5:
            cells.append((chance * COUNT, found.get(pair, 0)))
        else:
            rest[0] += chance * COUNT
    rest[1] = COUNT - sum(n for _, n in cells)
    cells.append((max(rest[0], 1e-9), rest[1]))
    value = sum((n - want) ** 2 / want for want, n in cells)
    degrees = len(cells) - 1
    return (value - degrees) / (2 * degrees) ** 0.5
