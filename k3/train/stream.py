"""Documents as one stream of tokens, and the rows that a step reads from it."""

from collections.abc import Iterable

import torch
from jaxtyping import Int
from torch import Tensor

from k3.data.corpora import Document
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError


def tokens(documents: Iterable[Document], tokenizer: Tokenizer) -> Int[Tensor, " T"]:
    """All documents in one row, the end token before the first and after each."""
    ids = [tokenizer.eos_id]
    for document in documents:
        ids += tokenizer.encode(document.text)
        ids.append(tokenizer.eos_id)
    return torch.tensor(ids)


def rows(
    stream: Int[Tensor, " T"], step: int, batch: int, length: int, seed: int
) -> Int[Tensor, "batch length1"]:
    """Inputs and targets of a step: `batch` rows of `length + 1` tokens.

    An epoch cuts the stream into rows at its own offset and reads them in its own
    order, so that each token is a target about once; the offset and order depend on
    the seed and the epoch alone, and a resumed run continues where it stopped.
    """
    per_epoch = (len(stream) - length) // length
    if per_epoch < 1:
        raise RequestError(
            f"the text must be longer than two rows of {length} tokens: got "
            f"{len(stream)}; lower tokens"
        )
    picked = []
    for index in range(step * batch, (step + 1) * batch):
        epoch, place = divmod(index, per_epoch)
        generator = torch.Generator().manual_seed((seed * 1_000_003 + epoch) % 2**63)
        offset = int(torch.randint(length, (), generator=generator))
        order = torch.randperm(per_epoch, generator=generator)
        start = offset + int(order[place]) * length
        start = min(start, len(stream) - length - 1)
        picked.append(stream[start : start + length + 1])
    return torch.stack(picked)
