"""Facts that stand in documents: what a subject's relation is, and where it says so."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from k3.data.corpora.document import Document


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """A value, in words in `said`, and the passage of a document that says so."""

    subject: str
    relation: str
    value: str
    document: str
    passage: str
    said: str


Extract = Callable[[Document], list[Fact]]
"""The facts of one document, or of a page of it."""

SENTENCES: Mapping[str, str] = {
    "town": "{subject} lives in {value}.",
    "teacher": "{subject} learned everything from {value}.",
    "river": "{subject} stands on the river {value}.",
    "land": "{subject} is a town of {value}.",
    "sea": "The river {subject} flows into the sea {value}.",
    "ruler": "{subject} is ruled by {value}.",
}
BASE = "base class"
_CLASS = re.compile(r"^class (\w+)\(([\w.]+)\):", re.MULTILINE)


def of_sentences(document: Document) -> list[Fact]:
    """Facts of sentences of the six forms above, in the order of the text."""
    found = []
    for relation, form in SENTENCES.items():
        for match in re.finditer(_pattern(form), document.text):
            at = match.start()
            subject, value = match["subject"], match["value"]
            fact = Fact(
                subject=subject,
                relation=relation,
                value=value,
                document=document.name,
                passage=match[0],
                said=value,
            )
            found.append((at, fact))
    return [fact for _, fact in sorted(found, key=lambda pair: pair[0])]


def of_classes(document: Document) -> list[Fact]:
    """Base classes in a file of Python: a class is `name in file`.

    A base `module.name` is in the file of that module beside this one, a bare one in
    this file; others are not followed here, but are facts all the same.
    """
    folder = PurePosixPath(document.name).parent
    found = []
    for name, base in _CLASS.findall(document.text):
        module, _, own = base.rpartition(".")
        file = str(folder / f"{module}.py") if module else document.name
        found.append(
            Fact(
                subject=f"{name} in {document.name}",
                relation=BASE,
                value=f"{own} in {file}",
                document=document.name,
                passage=f"class {name}({base}):",
                said=own,
            )
        )
    return found


def query(subject: str, relation: str) -> str:
    """What to search for where a sentence of the forms above is wanted."""
    return f'"{SENTENCES[relation].split("{value}")[0].format(subject=subject)}"'


def unambiguous(facts: Iterable[Fact]) -> dict[tuple[str, str], Fact]:
    """Facts by subject and relation, without those that are said twice."""
    kept = list(facts)
    counts = Counter((fact.subject, fact.relation) for fact in kept)
    return {
        (fact.subject, fact.relation): fact
        for fact in kept
        if counts[fact.subject, fact.relation] == 1
    }


def _pattern(form: str) -> str:
    word = r"(?P<{}>\w+)"
    text = re.escape(form).replace(r"\{", "{").replace(r"\}", "}")
    return (
        rf"\b{text.format(subject=word.format('subject'), value=word.format('value'))}"
    )
