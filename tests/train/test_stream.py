"""Rows cover an epoch once, and depend on seed and number alone."""

import pytest
import torch

from k3.data.corpora import Document
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.train import stream


def ids(text, index, tokens):
    (example,) = text.row(index, tokens)
    return example.ids


def test_documents_are_parted_by_the_end_token():
    tokenizer = Tokenizer({bytes([i]): i for i in range(256)})
    documents = [Document(name="a", text="ab"), Document(name="b", text="[EOS]")]
    found = stream.tokens(documents, tokenizer).tolist()
    end = tokenizer.eos_id
    assert found == [end, *b"ab", end, *b"[EOS]", end]


def test_an_epoch_learns_every_token_once():
    text, length = stream.Text(torch.arange(1003), 4), 10
    count = (1003 - length) // (length - 1)
    targets = torch.cat([ids(text, n, length)[1:] for n in range(count)])
    assert len(set(targets.tolist())) == len(targets) == count * (length - 1)


def test_a_row_is_consecutive_and_learned_but_for_its_first_token():
    (example,) = stream.Text(torch.arange(500), 0).row(7, 33)
    assert example.ids.shape == (33,)
    assert (example.ids.diff() == 1).all()
    assert example.learned.tolist() == [False] + 32 * [True]


def test_epochs_and_seeds_differ_and_numbers_repeat():
    text = stream.Text(torch.arange(211), 0)
    first = ids(text, 0, 10)
    assert torch.equal(first, ids(text, 0, 10))
    assert not torch.equal(first, ids(stream.Text(torch.arange(211), 1), 0, 10))
    assert not torch.equal(first, ids(text, 22, 10))


def test_short_text_is_refused():
    with pytest.raises(RequestError, match="longer than two rows of 10 tokens: got 15"):
        stream.Text(torch.arange(15), 0).row(0, 10)


def test_the_largest_seed_draws_rows():
    text = stream.Text(torch.arange(50), 2**63 - 1)
    assert not torch.equal(
        ids(text, 3, 7), ids(stream.Text(torch.arange(50), 2**63 - 2), 3, 7)
    )
