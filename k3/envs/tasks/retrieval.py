"""A gap in a sentence of Python's help, to be filled from the documents and cited."""

import re
from functools import cache

from k3.data.corpora import python
from k3.data.tasks.lot import Lot, Split
from k3.envs.documents.citation import write
from k3.envs.documents.library import Library
from k3.envs.documents.reader import Reader, plain
from k3.envs.harness.task import Steps, text
from k3.envs.tasks.reading import Reading

DOMAIN = "retrieval"
GAP = "____"
FEWEST, MOST = 9, 30
_END = re.compile(r"(?<=[.])\s+(?=[A-Z])")


def make(split: Split, index: int) -> Reading:
    """A sentence that belongs to the split, with one of its long words left out."""
    lot = Lot.of(DOMAIN, split, index)
    library, sentences = _shelf()
    while True:
        sentence = lot.rng.choice(sentences)
        if lot.keeps(f"{DOMAIN}:{sentence}"):
            break
    right = lot.rng.choice(_single(sentence))
    asked = re.sub(rf"\b{right}\b", GAP, sentence)
    return Reading(
        question=f"Which word is missing in this sentence of the documents?\n{asked}",
        right=right,
        passages=(sentence,),
        script=lambda: _fill(asked),
        reader=Reader(library),
    )


def _fill(asked: str) -> Steps:
    """Look for the sentence in what a search names, and read the word off it."""
    before, after = (part.strip() for part in asked.split(GAP))
    longer = max(before, after, key=len)
    pattern = re.compile(rf"{re.escape(before)} ?(\w+) ?{re.escape(after)}")
    # As a group, wherever a page holds it whole; by its words, where none does.
    words = " ".join(re.findall(r"\w+", longer))
    exact = text((yield "search", {"query": f'"{words}"'}))
    loose = text((yield "search", {"query": words}))
    hits = [*exact.splitlines(), *loose.splitlines()]
    for name in dict.fromkeys(hit.split(" from line ")[0] for hit in hits):
        lines = text((yield "find", {"name": name, "text": longer}))
        for line in re.findall(r"\d+", lines if lines.startswith("lines") else ""):
            # The gap may stand before what was found, on a line above.
            start = max(1, int(line) - 10)
            page = text((yield "open", {"name": name, "start": start}))
            found = pattern.search(plain(page.partition("\n")[2]))
            if found:
                return write(found[1], [(name, found[0])])
    return ""


@cache
def _shelf() -> tuple[Library, tuple[str, ...]]:
    """Python's help as a library, and the sentences of it that can be asked about."""
    corpus = python.topics()
    documents = [*corpus.train, *corpus.heldout]
    count: dict[str, int] = {}
    for document in documents:
        for paragraph in document.text.split("\n\n"):
            if not paragraph.startswith((" ", "*", "[", ".", "-")):
                for sentence in _END.split(plain(paragraph)):
                    count[sentence] = count.get(sentence, 0) + 1
    kept = [s for s, seen in count.items() if seen == 1 and _is_fit(s)]
    return Library(documents), tuple(kept)


def _is_fit(sentence: str) -> bool:
    sized = FEWEST <= len(sentence.split()) <= MOST and len(sentence) <= 300
    return sized and sentence.endswith(".") and bool(_single(sentence))


def _single(sentence: str) -> list[str]:
    """The long words that stand in a sentence once, by themselves."""
    words = re.findall(r"(?<!\S)([a-z]{6,})(?=[.,;:]?(?:\s|$))", sentence)
    return [w for w in words if len(re.findall(rf"\b{w}\b", sentence)) == 1]
