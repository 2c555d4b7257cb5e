"""Held-out text: bits per byte, with an interval over its documents."""

import math
from collections.abc import Sequence

from k3.data.corpora import Document
from k3.data.tokenizer import Tokenizer
from k3.eval import metrics
from k3.eval.figures import Figure
from k3.model import Model
from k3.train import evaluate


def bits_per_byte(
    model: Model,
    tokenizer: Tokenizer,
    documents: Sequence[Document],
    *,
    window: int = 512,
    workers: int = 1,
) -> Figure:
    """-log2 p of all bytes over their number, as `k3 train` scores a run."""
    nats = evaluate.nats(model, tokenizer, documents, window, workers)
    bits = [each / math.log(2) for each in nats]
    sizes = [float(document.num_bytes) for document in documents]
    low, high = metrics.bootstrap(bits, sizes)
    value = math.fsum(bits) / sum(sizes)
    return Figure(
        name="bits_per_byte", count=len(documents), value=value, low=low, high=high
    )
