"""A corpus becomes a folder of shards: `k3 data build`."""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from k3.data import media, shards, store
from k3.data.corpora import Corpus, Document
from k3.data.corpora.pictures import Picture, Pictures
from k3.data.corpora.table import Entry
from k3.data.examples import Example, of_conversation, of_text
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError

Told = Callable[[int, int], None]
"""Receives how many documents are done, and how many there are."""
Encode = Callable[[Document], Example]
Keep = Callable[[Sequence[Document], Sequence[Document]], Sequence[Document]]
"""From training and held-out documents those to train on: no repeats, of quality."""


def build(
    entry: Entry,
    out: Path,
    tokenizer: Tokenizer,
    *,
    folder: Path | None = None,
    keep: Keep = lambda train, held: train,
    told: Told = lambda done, total: None,
) -> dict[str, Any]:
    """Write a corpus to a new folder and return what its DATA.json says.

    `folder` is where the source lies if not where its package puts it; `keep`
    chooses among the training documents. A folder that is there is complete.
    Raises: RequestError.
    """
    corpus = entry.open(folder)
    with store.writing(out) as part:
        facts: dict[str, Any] = {
            "name": corpus.name,
            "kind": entry.kind,
            "source": corpus.source,
            "licence": corpus.licence,
            "version": corpus.version,
            "sha256": corpus.sha256,
        }
        if isinstance(corpus, Pictures):
            facts |= _pictures(corpus, part, told)
        else:
            encode = partial(_example, entry.kind, tokenizer, corpus.name)
            facts |= _documents(corpus, part, encode, keep=keep, told=told)
            facts["tokenizer"] = store.fingerprint(tokenizer)
            facts["vocab_size"] = tokenizer.vocab_size
        store.write_facts(part, facts)
    return facts


def _documents(
    corpus: Corpus, part: Path, encode: Encode, *, keep: Keep, told: Told
) -> dict[str, Any]:
    train, held = keep(corpus.train, corpus.heldout), corpus.heldout
    if not train:
        raise RequestError(
            f"a corpus keeps at least one document: all {len(corpus.train)} of "
            f"{corpus.name} were left out; loosen the filter"
        )
    total, done = len(train) + len(held), 0
    splits: dict[str, Any] = {}
    for name, documents in (("train", train), ("heldout", held)):
        writer = store.Writer(part, name)
        for document in documents:
            writer.add(encode(document))
            done += 1
            told(done, total)
        writer.flush()
        splits[name] = {"shards": writer.shards} | _sums(writer.shards)
    return {
        "bytes": sum(document.num_bytes for document in (*train, *held)),
        "documents": total,
        "left_out": len(corpus.train) - len(train),
        "tokens": sum(split["tokens"] for split in splits.values()),
        "splits": splits,
    }


def _example(
    kind: str, tokenizer: Tokenizer, domain: str, document: Document
) -> Example:
    """A document of a corpus as an example; that of a chat is JSON."""
    if kind == "text":
        return of_text(document, tokenizer, domain)
    messages = json.loads(document.text)["messages"]
    return of_conversation(messages, tokenizer, domain, name=document.name)


def _sums(entries: Iterable[dict[str, Any]]) -> dict[str, int]:
    found = list(entries)
    return {key: sum(e[key] for e in found) for key in ("documents", "tokens")}


def _pictures(corpus: Pictures, part: Path, told: Told) -> dict[str, Any]:
    """One file a split: a tensor for each picture, named by it, and the labels."""
    total, done = len(corpus.train) + len(corpus.heldout), 0
    splits: dict[str, Any] = {}
    for name, found in (("train", corpus.train), ("heldout", corpus.heldout)):
        file = part / f"{name}-00000.safetensors"
        shards.replace(file, _packed(found))
        done += len(found)
        told(done, total)
        sizes = [picture.pixels.shape for picture in found]
        entry = {
            "file": file.name,
            "documents": len(found),
            "tokens": sum(media.RELEASED.num_tokens(w, h) for h, w, _ in sizes),
        }
        files = [entry | store.measured(file)]
        splits[name] = {"pictures": files, "shards": []} | _sums(files)
    every = (*corpus.train, *corpus.heldout)
    return {
        "bytes": sum(picture.pixels.nbytes for picture in every),
        "documents": total,
        "left_out": 0,
        "tokens": sum(split["tokens"] for split in splits.values()),
        "splits": splits,
    }


def _packed(found: Sequence[Picture]) -> bytes:
    arrays: dict[str, NDArray[Any]] = {
        picture.name: np.ascontiguousarray(picture.pixels) for picture in found
    }
    labels = {picture.name: picture.label for picture in found}
    return save(arrays, {"labels": json.dumps(labels, ensure_ascii=False)})
