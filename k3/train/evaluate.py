"""Bits per byte of documents: what a model makes of text it has not seen."""

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from k3.data.corpora import Document
from k3.data.tokenizer import Tokenizer
from k3.train import workers


def bits_per_byte(
    model: nn.Module,
    tokenizer: Tokenizer,
    documents: Iterable[Document],
    window: int,
    num_workers: int = 1,
) -> float:
    """Mean of -log2 p over the UTF-8 bytes of all documents.

    Every document stands alone after one end token. It is read in windows of
    `window` tokens that overlap by half, and each token is scored once, in the first
    window that holds it, so with at least half a window before it where there is one.
    """
    documents = list(documents)
    total = math.fsum(nats(model, tokenizer, documents, window, num_workers))
    return total / math.log(2) / sum(document.num_bytes for document in documents)


def nats(
    model: nn.Module,
    tokenizer: Tokenizer,
    documents: Iterable[Document],
    window: int,
    num_workers: int = 1,
) -> list[float]:
    """-ln p of each document, read as `bits_per_byte` reads it."""

    def read(document: Document) -> float:
        ids = [tokenizer.eos_id, *tokenizer.encode(document.text)]
        return _nats(model, torch.tensor(ids), window)

    with workers.pool(num_workers) as pool:
        return list(pool.map(read, documents))


@torch.inference_mode()
def _nats(model: nn.Module, ids: Tensor, window: int) -> float:
    """Return -log p of all tokens after the first."""
    total, start, scored = 0.0, 0, 1
    while scored < len(ids):
        part = ids[start : start + window + 1]
        logits = model(part[None, :-1])
        assert isinstance(logits, Tensor)
        losses = F.cross_entropy(logits[0], part[1:], reduction="none")
        total += float(losses[scored - start - 1 :].double().sum())
        scored = start + len(part)
        start += window // 2
    return total
