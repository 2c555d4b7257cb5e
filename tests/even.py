"""A constraint that tests of decoding share."""

import torch


class Even:
    """Allows even ids, and ends after a count of tokens."""

    def __init__(self, most, seen=()):
        self.most, self.seen = most, list(seen)

    def mask(self):
        return torch.arange(61) % 2 == 0

    def accept(self, token_id):
        assert token_id % 2 == 0
        self.seen.append(token_id)

    def rollback(self, n):
        self.seen = self.seen[: len(self.seen) - n]

    def fork(self):
        return Even(self.most, self.seen)

    def done(self):
        return len(self.seen) >= self.most
