"""What a recipe's mixture is made of: the sources by their names."""

from collections.abc import Callable, Iterable

from k3.data import tasks
from k3.data.corpora import Corpus
from k3.data.mixture import AnySource, Mixture
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.train import stream

Make = Callable[[Corpus, Tokenizer, int], AnySource]


def text(corpus: Corpus, tokenizer: Tokenizer, seed: int) -> stream.Text:
    """The corpus's training text, a row at a time."""
    return stream.Text(stream.tokens(corpus.train, tokenizer), seed)


def _task(name: str) -> Make:
    return lambda corpus, tokenizer, seed: tasks.named(name, tokenizer)


SOURCES: dict[str, Make] = {"text": text} | {name: _task(name) for name in tasks.DRAWS}
"""Each from the corpus, the tokenizer and the seed of the run."""


def mixture(
    shares: Iterable[tuple[str, float]],
    corpus: Corpus,
    tokenizer: Tokenizer,
    seed: int,
) -> Callable[[int], Mixture]:
    """Rows by their length in tokens, each source with its weight.

    Raises: RequestError for a name that is none.
    """
    names, weights = zip(*shares, strict=True)
    check(names)
    made = [SOURCES[name](corpus, tokenizer, seed) for name in names]
    pad_id = tokenizer.pad_id

    def rows(tokens: int) -> Mixture:
        return Mixture(
            sources=made, weights=weights, tokens=tokens, seed=seed, pad_id=pad_id
        )

    return rows


def texts(names: Iterable[str], corpus: Corpus) -> list[str]:
    """What the vocabulary is learned from: the corpus, and some of what tasks write."""
    written = tasks.texts(name for name in names if name in tasks.DRAWS)
    return [document.text for document in corpus.train] + written


def check(names: Iterable[str]) -> None:
    """Refuse names that no source has."""
    for name in names:
        if name not in SOURCES:
            raise RequestError(
                f"a mixture is made of {', '.join(SOURCES)}: got {name!r}; choose "
                "among them"
            )
