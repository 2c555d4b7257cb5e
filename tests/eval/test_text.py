"""Bits per byte of held-out text: the figure of `k3 train`, with an interval."""

import pytest

import k3
from k3 import eval as evaluation
from k3.checkpoint import locate
from k3.data.corpora import Document
from k3.train import evaluate


def test_bits_per_byte_is_what_training_reports():
    model, tokenizer = k3.load("tiny"), k3.tokenizer(locate.locate("tiny"))
    texts = ("Return True if the file exists.", "The é of a module.", "x" * 40)
    documents = [Document(name=str(i), text=text) for i, text in enumerate(texts)]
    figure = evaluation.bits_per_byte(model, tokenizer, documents)
    known = evaluate.bits_per_byte(model, tokenizer, documents, 512)
    assert figure.value == pytest.approx(known)
    assert figure.count == 3
    assert figure.low <= figure.value <= figure.high
    assert figure.low < figure.high
