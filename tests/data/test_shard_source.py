"""Documents and windows of a store, every token once an epoch."""

import collections

import pytest
import torch

from k3.data import store
from k3.data.examples import Example
from k3.data.mixture import Mixture, RowSource
from k3.data.shard_source import ShardSource
from k3.errors import RequestError

LENGTHS = [3, 1, 7, 2, 11, 4, 5]
TOTAL = sum(LENGTHS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ids count through all documents, which lie in three shards; evens are masked."""
    directory, first = tmp_path_factory.mktemp("s") / "d", 0
    with store.writing(directory) as part:
        writer = store.Writer(part, "train", tokens=13)
        for length in LENGTHS:
            ids = torch.arange(first, first + length)
            learned = ids % 2 == 1
            learned[0] = False
            writer.add(Example(ids=ids, learned=learned, domain="d"))
            first += length
        writer.flush()
        splits = {"train": {"shards": writer.shards}, "heldout": {"shards": []}}
        store.write_facts(part, {"name": "n", "tokenizer": "t", "splits": splits})
    return directory


@pytest.fixture(scope="module")
def source(folder):
    return ShardSource(store.load(folder))


def starts():
    return [sum(LENGTHS[:i]) for i in range(len(LENGTHS))]


def test_an_epoch_holds_each_document_once(source):
    assert (len(source), source.tokens) == (7, TOTAL)
    for epoch in range(3):
        examples = [source.example(7 * epoch + i) for i in range(7)]
        assert sorted(len(e) for e in examples) == sorted(LENGTHS)
        assert sorted(int(e.ids[0]) for e in examples) == starts()
    orders = {tuple(len(source.example(7 * e + i)) for i in range(7)) for e in range(9)}
    assert len(orders) > 5


def test_an_example_is_the_document_with_its_flags(source):
    for index in range(7):
        example = source.example(index)
        number = int(example.name.removeprefix("n:"))
        assert len(example) == LENGTHS[number]
        assert torch.equal(example.ids, starts()[number] + torch.arange(len(example)))
        assert torch.equal(example.learned[1:], example.ids[1:] % 2 == 1)
        assert (example.ids.dtype, example.domain) == (torch.int64, "n")


@pytest.mark.parametrize("tokens", [2, 5, 11, 32, 33, 34, 100])
def test_windows_of_an_epoch_hold_no_token_twice(source, tokens):
    windows = max(1, TOTAL // tokens)
    for epoch in range(3):
        seen = collections.Counter()
        for at in range(windows):
            pieces = source.row(epoch * windows + at, tokens)
            assert sum(map(len, pieces)) == min(tokens, TOTAL)
            for piece in pieces:
                seen.update(piece.ids.tolist())
        assert set(seen.values()) == {1}
        assert len(seen) == windows * min(tokens, TOTAL)


def test_a_window_breaks_where_documents_end(source):
    bounds = {*starts(), TOTAL}
    for index in range(40):
        pieces = source.row(index, 9)
        for piece in pieces:
            assert piece.ids.diff().eq(1).all()
            assert not set(piece.ids[1:].tolist()) & bounds
            assert not piece.learned[0]
            assert torch.equal(piece.learned[1:], piece.ids[1:] % 2 == 1)
        assert all(int(piece.ids[0]) in bounds for piece in pieces[1:])


def test_seeds_and_epochs_read_in_their_own_order(folder, source):
    def first(reader, epoch):
        return [reader.row(epoch * 6 + i, 5)[0].ids[0].item() for i in range(6)]

    other = ShardSource(store.load(folder), seed=5)
    orders = [first(source, 0), first(source, 1), first(other, 0), first(other, 1)]
    assert len({tuple(found) for found in orders}) == 4
    assert first(source, 0) == orders[0]


def test_a_mixture_takes_whole_rows(source):
    assert isinstance(source, RowSource)
    mixed = Mixture(sources=[source], weights=[1.0], tokens=11, seed=0, pad_id=99)
    seen = [token for n in range(3) for token in mixed.row(n).ids[0].tolist()]
    assert len(set(seen)) == 33
    assert mixed.domains == ("n",)


@pytest.mark.parametrize("split", ["heldout", "other"])
def test_a_split_without_documents_is_refused(folder, split):
    with pytest.raises(RequestError, match=f"got '{split}' of train, heldout"):
        ShardSource(store.load(folder), split)
