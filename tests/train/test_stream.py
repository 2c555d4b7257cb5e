"""Rows cover an epoch once, and depend on seed and step alone."""

import pytest
import torch

from k3.data.corpora import Document
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.train import stream


def test_documents_are_parted_by_the_end_token():
    tokenizer = Tokenizer({bytes([i]): i for i in range(256)})
    documents = [Document(name="a", text="ab"), Document(name="b", text="[EOS]")]
    found = stream.tokens(documents, tokenizer).tolist()
    end = tokenizer.eos_id
    assert found == [end, *b"ab", end, *b"[EOS]", end]


def test_an_epoch_reads_every_token_once():
    tokens, length, batch = torch.arange(1003), 10, 3
    steps = (len(tokens) - length) // length // batch
    targets = torch.cat(
        [
            stream.rows(tokens, s, batch, length, 4)[:, 1:].flatten()
            for s in range(steps)
        ]
    )
    assert len(set(targets.tolist())) == len(targets) == steps * batch * length


def test_rows_are_consecutive_and_one_longer_than_the_inputs():
    rows = stream.rows(torch.arange(500), 7, 4, 33, 0)
    assert rows.shape == (4, 34)
    assert (rows[:, 1:] - rows[:, :-1] == 1).all()


def test_epochs_and_seeds_differ_and_steps_repeat():
    tokens = torch.arange(211)
    first = stream.rows(tokens, 0, 2, 10, 0)
    assert torch.equal(first, stream.rows(tokens, 0, 2, 10, 0))
    assert not torch.equal(first, stream.rows(tokens, 0, 2, 10, 1))
    assert not torch.equal(first, stream.rows(tokens, 10, 2, 10, 0))


def test_short_text_is_refused():
    with pytest.raises(RequestError, match="longer than two rows of 10 tokens: got 15"):
        stream.rows(torch.arange(15), 0, 1, 10, 0)


def test_the_largest_seed_draws_rows():
    ids = torch.arange(50)
    rows = stream.rows(ids, 3, 2, 7, 2**63 - 1)
    assert rows.shape == (2, 8)
    assert not torch.equal(rows, stream.rows(ids, 3, 2, 7, 2**63 - 2))
