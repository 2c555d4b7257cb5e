"""Documents of a store by number, and rows that are windows of all of them."""

from bisect import bisect_right
from itertools import accumulate

import numpy as np
import torch

from k3.data import order
from k3.data.examples import Example
from k3.data.shards import Shard
from k3.data.store import Store
from k3.errors import RequestError


class ShardSource:
    """One split of a store, as documents and as rows.

    `example(n)` is a whole document; an epoch holds each once, in an order of its
    own. `row(n, tokens)` is a window of the documents as they were written, a ring of
    which each epoch reads all windows once, from an offset and in an order of its
    own: less than one window of an epoch is left out.
    Raises: RequestError for a split that is absent or empty.
    """

    def __init__(
        self, store: Store, split: str = "train", *, domain: str = "", seed: int = 0
    ) -> None:
        if not store.splits.get(split):
            raise RequestError(
                f"{store.directory} must have the split that is read: got {split!r} "
                f"of {', '.join(store.splits)}; choose one with documents"
            )
        self.domain, self._name, self._seed = domain or store.name, store.name, seed
        self._shards = store.splits[split]
        tokens = [len(shard.tokens) for shard in self._shards]
        documents = [len(shard.ends) for shard in self._shards]
        self._token_starts = [0, *accumulate(tokens)]
        self._document_starts = [0, *accumulate(documents)]

    @property
    def tokens(self) -> int:
        """Tokens of an epoch."""
        return self._token_starts[-1]

    def __len__(self) -> int:
        return self._document_starts[-1]

    def example(self, index: int) -> Example:
        """A document of the epoch that `index` falls into."""
        number = order.in_epochs(index, len(self), self._seed)
        at = bisect_right(self._document_starts, number) - 1
        shard, document = self._shards[at], number - self._document_starts[at]
        start = int(shard.ends[document - 1]) if document else 0
        return self._cut(shard, start, int(shard.ends[document]), number)

    def row(self, index: int, tokens: int) -> list[Example]:
        """The documents, and ends of documents, of one window."""
        windows = max(1, self.tokens // tokens)
        epoch, at = divmod(index, windows)
        offset = order.mix(self._seed, epoch, 1) % self.tokens
        window = order.place(at, windows, order.mix(self._seed, epoch))
        place, left = offset + window * tokens, min(tokens, self.tokens)
        found = []
        while left:
            found.append(self._piece(place % self.tokens, left))
            place += len(found[-1])
            left -= len(found[-1])
        return found

    def _piece(self, place: int, most: int) -> Example:
        """From a token on to the end of its document, or `most` tokens."""
        at = bisect_right(self._token_starts, place) - 1
        shard, start = self._shards[at], place - self._token_starts[at]
        document = int(np.searchsorted(shard.ends, start, side="right"))
        stop = min(int(shard.ends[document]), start + most)
        return self._cut(shard, start, stop, self._document_starts[at] + document)

    def _cut(self, shard: Shard, start: int, stop: int, number: int) -> Example:
        ids = torch.from_numpy(shard.tokens[start:stop].astype(np.int64))
        if shard.learned is None:
            learned = torch.ones(len(ids), dtype=torch.bool)
        else:
            learned = torch.from_numpy(shard.learned[start:stop].astype(bool))
        learned[0] = False
        name = f"{self._name}:{number}"
        return Example(ids=ids, learned=learned, domain=self.domain, name=name)
