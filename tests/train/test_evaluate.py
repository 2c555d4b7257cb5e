"""Every token is scored once, and bytes are those of UTF-8."""

import math

import pytest
import torch
from torch import nn

from k3.data.corpora import Document
from k3.data.tokenizer import Tokenizer
from k3.train import evaluate, pretrain


class Uniform(nn.Module):
    """One of 512 ids each time."""

    def forward(self, ids):
        assert ids.shape[1] <= 8
        return torch.zeros(*ids.shape, 512)


@pytest.fixture
def tokenizer():
    return Tokenizer({bytes([i]): i for i in range(256)})


@pytest.mark.parametrize("size", [1, 7, 8, 9, 12, 13, 50])
def test_uniform_model_pays_nine_bits_a_token(tokenizer, size):
    documents = [Document(name="a", text="x" * size), Document(name="b", text="é")]
    assert evaluate.bits_per_byte(Uniform(), tokenizer, documents, 8) == pytest.approx(
        9
    )


def test_windows_score_each_token_after_at_least_half_a_window(tokenizer):
    seen = []

    class Echo(nn.Module):
        def forward(self, ids):
            seen.append(ids[0].tolist())
            return torch.zeros(*ids.shape, 512)

    text = "abcdefghijkl"
    evaluate.bits_per_byte(Echo(), tokenizer, [Document(name="a", text=text)], 8)
    assert bytes(seen[0][1:]).decode() == text[:7]
    assert bytes(seen[1]).decode() == text[3:11]


def test_a_window_that_holds_the_document_is_the_plain_loss(small, tokenizer):
    model = pretrain.fresh(small)
    nn.init.normal_(model.language_model.lm_head.weight)
    text = "plain text"
    ids = torch.tensor([tokenizer.eos_id, *text.encode()])
    with torch.no_grad():
        logits = model(ids[None, :-1])[0]
    want = nn.functional.cross_entropy(logits, ids[1:]).item() / math.log(2)
    documents = [Document(name="a", text=text)]
    for count in (1, 2):
        found = evaluate.bits_per_byte(model, tokenizer, documents, 99, count)
        assert found == pytest.approx(want, rel=1e-5)
