"""Training: the ranks are the truth, in tiktoken and by hand."""

import itertools
import sys

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from k3.data import bpe, split
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError

BYTES = {bytes([byte]): byte for byte in range(256)}


def _by_hand(piece, ranks):
    """Merge the adjacent pair whose joined bytes have the lowest rank."""
    parts = [bytes([byte]) for byte in piece]
    while True:
        joined = [a + b for a, b in itertools.pairwise(parts)]
        known = [pair for pair in joined if pair in ranks]
        if not known:
            return [ranks[part] for part in parts]
        at = joined.index(min(known, key=ranks.__getitem__))
        parts[at : at + 2] = [joined[at]]


def test_training_is_reproducible_and_complete(texts, ranks):
    again = bpe.train(texts, 512)
    assert again == ranks
    assert sorted(ranks.values()) == list(range(512))
    assert {token for token, rank in ranks.items() if rank < 256} == set(BYTES)


def test_ids_equal_those_of_the_trainer(texts, ranks):
    """The library keeps a merge list; on its own training text both agree."""
    tokenizer = Tokenizer(ranks)
    trained = tokenizers.Tokenizer(tokenizers.models.BPE())
    trained.pre_tokenizer = bpe._pieces(tokenizers)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=512,
        min_frequency=2,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    trained.train_from_iterator(texts, trainer)
    for text in texts:
        assert tokenizer.encode(text) == trained.encode(text).ids


@given(st.text(alphabet="the sanid'\n1é汉", max_size=40))
def test_encoding_is_rank_merging_inside_pieces(ranks, text):
    tokenizer = Tokenizer(ranks)
    splitter = bpe._pieces(tokenizers)
    alphabet = bpe._byte_of_character()
    expected = []
    for shown, _ in splitter.pre_tokenize_str(text):
        expected += _by_hand(bytes(alphabet[c] for c in shown), ranks)
    assert tokenizer.encode(text) == expected


def test_report_83_a_merge_list_gives_another_split():
    """`abc` was made as a+bc, but the ranks also join ab+c."""
    ranks = BYTES | {b"ab": 256, b"bc": 257, b"abc": 258}
    merges = [("a", "b"), ("b", "c"), ("a", "bc")]
    vocab = {t.decode(): r for t, r in ranks.items() if t in (b"a", b"b", b"c")}
    vocab |= {"ab": 256, "bc": 257, "abc": 258}
    listed = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, merges))
    assert listed.encode("abc").ids == [256, 99]
    assert Tokenizer(ranks).encode("abc") == [258]
    assert _by_hand(b"abc", ranks) == [258]


@given(st.text(alphabet="abc", max_size=12))
def test_report_83_the_lowest_rank_is_merged_first(text):
    ranks = BYTES | {
        token: 256 + place
        for place, token in enumerate([b"bc", b"ab", b"aab", b"abab", b"bca", b"cc"])
    }
    assert Tokenizer(ranks).encode(text) == _by_hand(text.encode(), ranks)


@given(st.text(max_size=40))
def test_both_libraries_cut_the_same_pieces(text):
    """The splitter of the trainer reads the expression as tiktoken does."""
    alphabet = bpe._byte_of_character()
    cuts = bpe._pieces(tokenizers).pre_tokenize_str(text)
    wanted = [bytes(alphabet[c] for c in shown) for shown, _ in cuts]
    # With every prefix of a piece as a rank, a piece comes out as one token, and
    # a piece that tiktoken cuts elsewhere does not.
    ranks = dict(BYTES)
    for piece in wanted:
        for end in range(2, len(piece) + 1):
            ranks.setdefault(piece[:end], len(ranks))
    tokenizer = Tokenizer(ranks)
    ids = [i for chunk in split.chunks(text) for i in tokenizer.encode(chunk)]
    expected = [i for piece in wanted for i in _by_hand(piece, ranks)]
    assert ids == expected


@pytest.mark.parametrize("count", [0, 255])
def test_fewer_ranks_than_bytes_are_refused(count):
    with pytest.raises(RequestError, match=f"at least 256, one per byte: got {count}"):
        bpe.train(["text"], count)


def test_too_little_text_is_refused():
    with pytest.raises(RequestError, match="got 256 of 300; give more text"):
        bpe.train(["ab"], 300)


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(RequestError, match=r"pip install 'k3\[train\]'"):
        bpe.train(["text"], 300)
