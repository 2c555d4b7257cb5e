"""What a draft is trained on: conversations, stores of shards, text, tasks."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from k3.data import conversations, corpora, store, tasks
from k3.data.corpora import is_heldout
from k3.data.examples import Example
from k3.data.limits import ImageLimits
from k3.data.listed import Listed
from k3.data.mixture import AnySource, Mixture
from k3.data.shard_source import ShardSource
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.train import stream

TEXT = "text"
"""The standard library's text, as a source."""
DEFAULT = (TEXT, "chat", "tools", "recall")

Pair = tuple[AnySource, AnySource | None]
"""What is trained on, and what is held out."""


def mixtures(
    names: Sequence[str], folder: Path, tokens: int, seed: int
) -> tuple[Mixture, Mixture]:
    """Rows to train on, and rows held out; each source fills an equal share.

    A name is a JSONL file of conversations, a folder that `k3 data` has built, `text`,
    or a task. Without anything held out the second is the first.
    Raises: RequestError, CheckpointError.
    """
    tokenizer = Tokenizer.load(folder)
    found = [_open(name, folder, tokenizer, seed) for name in names]
    if not found:
        raise RequestError("a draft is trained on something: got no data; name some")
    train = [source for source, _ in found]
    held = [source for _, source in found if source is not None] or train
    return _mixed(train, tokens, seed, tokenizer), _mixed(held, tokens, seed, tokenizer)


def _mixed(
    sources: list[AnySource], tokens: int, seed: int, tokenizer: Tokenizer
) -> Mixture:
    weights = [1.0] * len(sources)
    pad_id = tokenizer.pad_id
    return Mixture(
        sources=sources, weights=weights, tokens=tokens, seed=seed, pad_id=pad_id
    )


def _open(name: str, folder: Path, tokenizer: Tokenizer, seed: int) -> Pair:
    if name == TEXT:
        corpus = corpora.stdlib()
        sides = (stream.tokens(d, tokenizer) for d in (corpus.train, corpus.heldout))
        train, held = (stream.Text(side, seed) for side in sides)
        return train, held
    if name in tasks.DRAWS:
        return tasks.named(name, tokenizer), tasks.named(name, tokenizer, "heldout")
    path = Path(name)
    if path.is_dir():
        opened = store.load(path)
        opened.check(tokenizer)
        kept = opened.splits.get("heldout")
        held_out = ShardSource(opened, "heldout", seed=seed) if kept else None
        return ShardSource(opened, seed=seed), held_out
    if path.suffix != ".jsonl":
        raise RequestError(
            f"data is a .jsonl file, a folder of k3 data, {TEXT} or one of "
            f"{', '.join(tasks.DRAWS)}: got {name!r}; choose one"
        )
    found = conversations.read(path, tokenizer, ImageLimits.load(folder))
    return _listed(path.stem, found, seed)


def _listed(name: str, found: Iterable[Example], seed: int) -> Pair:
    """Conversations as rows; those held out by a hash, so that copies stay together."""
    sides: tuple[list[Example], list[Example]] = [], []
    for example in found:
        known = ",".join(map(str, example.ids.tolist()))
        sides[is_heldout(known)].append(dataclasses.replace(example, domain=name))
    train, held = sides if sides[0] else (sides[1], [])
    return Listed(name, train, seed), Listed(name, held, seed) if held else None
