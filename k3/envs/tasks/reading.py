"""A question that documents answer, with citations."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from k3.data.corpora.document import Document
from k3.envs.documents import citation, expand, facts
from k3.envs.documents.expand import Path
from k3.envs.documents.facts import Extract, Fact
from k3.envs.documents.library import Library
from k3.envs.documents.reader import Reader
from k3.envs.harness.task import Ability, Steps, text


@dataclass(kw_only=True)
class Reading:
    """Implements `Task`: 1 for the right answer under citations that hold, else 0.

    `passages` are what must be cited, each in a document that was opened.
    """

    question: str
    right: str
    passages: tuple[str, ...]
    script: Callable[[], Steps]
    reader: Reader
    answer: str | None = field(default=None, init=False)

    @property
    def goal(self) -> str:
        """The question, and how it is answered."""
        return f"{self.question}\n\n{citation.FORM}"

    @property
    def abilities(self) -> Mapping[str, Ability]:
        """Search, open, find."""
        return self.reader.abilities

    def submit(self, answer: str) -> None:
        """Take an answer; it is the last."""
        self.answer = answer if self.answer is None else self.answer

    def solve(self) -> Steps:
        """The steps of a perfect agent."""
        return self.script()

    def score(self) -> float:
        """1 for the right answer under citations that hold, else 0."""
        if self.answer is None:
            return 0.0
        held = citation.holds(self.answer, self.right, self.passages, self.reader)
        return float(held)

    def close(self) -> None:
        """Nothing of its own is held: the library may be shared."""


def of_paths(paths: tuple[Path, ...], library: Library, extract: Extract) -> Reading:
    """The question that these paths compose; its script finds each fact by search."""
    right = ", ".join(path[-1].said for path in paths)
    asked = " and ".join(expand.asked(path) for path in paths)
    order = " (both, in this order, with a comma between)" if len(paths) > 1 else ""
    # The script knows subject and relations, as the question says them, no value.
    chains = [(path[0].subject, [fact.relation for fact in path]) for path in paths]
    return Reading(
        question=f"What is {asked}{order}?",
        right=right,
        passages=tuple(expand.passages(paths)),
        script=lambda: _follow(chains, extract),
        reader=Reader(library),
    )


def _follow(chains: list[tuple[str, list[str]]], extract: Extract) -> Steps:
    """Follow each chain through the documents; answer with all facts as citations."""
    known: dict[tuple[str, str], Fact] = {}
    used: list[tuple[str, str]] = []
    said = []
    for start, relations in chains:
        subject = start
        for relation in relations:
            if (subject, relation) not in known:
                yield from _learn(subject, relation, known, extract)
            fact = known[subject, relation]
            used.append((fact.document, fact.passage))
            subject = fact.value
        said.append(fact.said)
    return citation.write(", ".join(said), list(dict.fromkeys(used)))


def _learn(
    subject: str, relation: str, known: dict[tuple[str, str], Fact], extract: Extract
) -> Steps:
    """Open what a search or a look into its file names, until the fact stands there."""
    word, _, file = subject.partition(" in ")
    if file:
        found = text((yield "find", {"name": file, "text": f"class {word}("}))
        places = [(file, int(line)) for line in re.findall(r"\d+", found)]
    else:
        hits = text((yield "search", {"query": facts.query(subject, relation)}))
        places = [_place(line) for line in hits.splitlines()]
    for name, line in places:
        page = text((yield "open", {"name": name, "start": line}))
        body = Document(name=name, text=page.partition("\n")[2])
        known |= {(f.subject, f.relation): f for f in extract(body)}
        if (subject, relation) in known:
            break
    return ""


def _place(hit: str) -> tuple[str, int]:
    """Document and line of a hit as `search` writes it."""
    name, _, rest = hit.partition(" from line ")
    return name, int(rest.partition(":")[0])
