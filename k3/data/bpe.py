"""Train a byte-level BPE vocabulary and hand it over as ranks.

The `tokenizers` library counts and merges; what counts afterwards are the ranks:
the adjacent pair whose joined bytes have the lowest rank is merged, whichever merge
made those bytes first. A merge list can split differently and is not kept.
"""

from collections.abc import Iterable
from types import ModuleType

from k3.data import split
from k3.errors import RequestError


def train(
    texts: Iterable[str], num_ranks: int, *, min_frequency: int = 2
) -> dict[bytes, int]:
    """Ranks of a vocabulary of `num_ranks` tokens learned from `texts`.

    The 256 single bytes come first; the same texts give the same ranks.
    Raises: RequestError without the `train` extra, or when the texts are too short.
    """
    if num_ranks < 256:
        raise RequestError(
            f"num_ranks must be at least 256, one per byte: got {num_ranks}; raise it"
        )
    library = _library()
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = _pieces(library)
    trainer = library.trainers.BpeTrainer(
        vocab_size=num_ranks,
        min_frequency=min_frequency,
        initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pieces = (chunk for text in texts for chunk in split.chunks(text))
    tokenizer.train_from_iterator(pieces, trainer)
    ranks = _ranks(tokenizer.get_vocab())
    if len(ranks) < num_ranks:
        raise RequestError(
            f"the texts must yield num_ranks tokens: got {len(ranks)} of {num_ranks}; "
            "give more text or lower num_ranks"
        )
    return ranks


def _library() -> ModuleType:
    try:
        import tokenizers
    except ImportError:
        raise RequestError(
            "training a vocabulary needs the train extra: pip install 'k3[train]'"
        ) from None
    return tokenizers


def _pieces(library: ModuleType) -> object:
    names = library.pre_tokenizers
    expression = library.Regex(split.PATTERN)
    return names.Sequence(
        [
            names.Split(expression, "isolated"),
            names.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _ranks(vocab: dict[str, int]) -> dict[bytes, int]:
    alphabet = _byte_of_character()
    return {
        bytes(alphabet[character] for character in token): rank
        for token, rank in sorted(vocab.items(), key=lambda item: item[1])
    }


def _byte_of_character() -> dict[str, int]:
    """The byte behind each stand-in: printable Latin-1 itself, others from U+0100."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + place): byte for place, byte in enumerate(others)
    }
