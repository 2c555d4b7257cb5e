"""The long-input rules and the eight alternatives of the split expression."""

import unicodedata

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from k3.data import split

# Every byte sequence of two and more stays whole only inside one piece, so a
# vocabulary of bytes shows nothing; tiktoken's own splitter is reached by giving
# the wanted pieces as ranks.
BYTES = {bytes([byte]): byte for byte in range(256)}


def _pieces(text, *wanted):
    """Tokens of `text` when each wanted piece is one token if it is one piece."""
    ranks = dict(BYTES)
    for piece in wanted:
        whole = piece.encode()
        for end in range(2, len(whole) + 1):
            ranks.setdefault(whole[:end], len(ranks))
    encoding = tiktoken.Encoding(
        "t", pat_str=split.PATTERN, mergeable_ranks=ranks, special_tokens={}
    )
    return [
        encoding.decode_single_token_bytes(i) for i in encoding.encode_ordinary(text)
    ]


@pytest.mark.parametrize(
    "pieces",
    [
        ["汉字", "Latin", "汉", "Ab"],
        ["Hello", " world", "!"],
        ["don't", " DON'T", " we'LL"],
        ["123", "456", "7"],
        [" #!!\n\n", "x"],
        ["  \n", "x"],
        [" ", " x"],
        ["a", "  "],
        ["(word", " -", "word"],
        ["HTTP", "/", "2"],
        ["camel", "Case", "ABCdef"],
        ["é\u0301ʰ", " ǅx"],
    ],
)
def test_alternatives(pieces):
    text = "".join(pieces)
    assert _pieces(text, *pieces) == [piece.encode() for piece in pieces]


@given(st.text(alphabet="汉字漢aZé '1\n", max_size=30))
def test_report_83_han_and_latin_never_share_a_piece(text):
    found = _pieces(text, text, *(text[i:] for i in range(len(text))))
    for piece in found:
        shown = piece.decode("utf-8", "ignore")
        han = any("CJK" in unicodedata.name(c, "") for c in shown)
        latin = any("LATIN" in unicodedata.name(c, "") for c in shown)
        assert not (han and latin), shown


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("", []),
        ("a" * 25_000, [25_000]),
        ("a" * 25_001, [25_000, 1]),
        ("hi " + "a" * 50_001, [25_003, 25_000, 1]),
        (" " * 25_000 + "b", [25_001]),
        (" " * 25_001 + "b", [25_000, 2]),
        ("ab " * 10_000, [30_000]),
        ("ab " * 200_000, [400_000, 200_000]),
        ("b" + " " * 60_000 + "c" * 30_000, [25_001, 25_000, 35_000, 5_000]),
    ],
)
def test_long_inputs_are_cut(text, lengths):
    found = list(split.chunks(text))
    assert "".join(found) == text
    assert [len(chunk) for chunk in found] == lengths


@given(st.lists(st.tuples(st.sampled_from("a \n"), st.integers(0, 9))))
def test_chunks_are_bounded_in_length_and_run(runs):
    text = "".join(char * count for char, count in runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split, "MAX_CHUNK_CHARS", 12)
        patch.setattr(split, "MAX_RUN_CHARS", 4)
        found = list(split.chunks(text))
    assert "".join(found) == text
    for chunk in found:
        assert len(chunk) <= 12
        assert all(len(run.group()) <= 4 for run in split._RUN.finditer(chunk))
