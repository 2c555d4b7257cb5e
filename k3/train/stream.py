"""Documents as one stream of tokens, and the rows that a run reads from it."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from k3.data import order
from k3.data.corpora import Document
from k3.data.examples import Example
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError


def tokens(documents: Iterable[Document], tokenizer: Tokenizer) -> Int[Tensor, " T"]:
    """All documents in one row, the end token before the first and after each."""
    ids = [tokenizer.eos_id]
    for document in documents:
        ids += tokenizer.encode(document.text)
        ids.append(tokenizer.eos_id)
    return torch.tensor(ids)


@dataclass(slots=True, eq=False)
class Text:
    """A source of whole rows, cut from the stream without regard to its documents.

    An epoch cuts at its own offset and reads in its own order, so that each token is a
    target about once; both depend on the seed and the epoch alone.
    """

    stream: Int[Tensor, " T"]
    seed: int
    domain: str = "text"

    def row(self, index: int, tokens: int) -> list[Example]:
        """The piece of a number that counts through all epochs, as one example.

        Raises: RequestError where the text is too short.
        """
        # The first token of a piece is the last target of the one before it.
        stride = tokens - 1
        per_epoch = (len(self.stream) - tokens) // stride
        if per_epoch < 1:
            raise RequestError(
                f"the text must be longer than two rows of {tokens} tokens: got "
                f"{len(self.stream)}; lower tokens"
            )
        epoch = index // per_epoch
        offset = order.mix(self.seed, epoch, 1) % stride
        start = offset + stride * order.in_epochs(index, per_epoch, self.seed)
        ids = self.stream[start : start + tokens]
        learned = torch.ones(tokens, dtype=torch.bool)
        learned[0] = False
        return [Example(ids=ids, learned=learned, domain=self.domain)]
