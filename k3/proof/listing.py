"""Every theorem with its scope, level and axioms, as they were when last proved.

Levels and axioms come out of a proof, so a list that proves nothing reads them from
`proved.json`, which `tools/theorems.py` writes. A statement that has changed since has
no level: it is shown as "?".
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from importlib import resources
from typing import Any

from k3.logic import log
from k3.proof import graphs
from k3.proof.prove import Record, article, theorems

LEVELS = {
    "K": "kernel rules and checked certificates only",
    "KS": "also ground steps on which z3 and cvc5 agree",
    "N": "decided by the normal form of graphs, not replayed in the kernel",
    "?": "not proved since it changed",
}
# Around the reasons in docs/limits.md.
BEGIN = "<!-- reasons, by tools/theorems.py -->\n"
END = "<!-- end of reasons -->\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A theorem in a list."""

    name: str
    words: str
    scope: str
    level: str
    axioms: tuple[str, ...]
    mutants: tuple[str, ...]


def entries() -> list[Entry]:
    """All theorems in order, with what the last proof of each has shown."""
    text = (resources.files("k3.proof") / "proved.json").read_text()
    proved: dict[str, Any] = json.loads(text)
    found = []
    for name, theorem in theorems().items():
        said = " ".join((theorem.statement.__doc__ or "").split())
        now = log.digest(theorem.statement())
        wrong = tuple(theorem.mutants())
        entry = _entry(name, said, theorem.scope, now, proved)
        found.append(replace(entry, mutants=wrong))
    for name in graphs.names():
        said, scope = graphs.words(name), graphs.scope(name)
        entry = _entry(name, said, scope, graphs.digest(name), proved)
        found.append(replace(entry, mutants=graphs.wrong_variants(name)))
    return found


def _entry(
    name: str, words: str, scope: str, digest: str, proved: dict[str, Any]
) -> Entry:
    old = proved.get(name, {})
    known = old.get("digest") == digest
    return Entry(
        name=name,
        words=words,
        scope=scope,
        level=old["level"] if known else "?",
        axioms=tuple(old["axioms"]) if known else (),
        mutants=(),
    )


def proved_json(records: Iterable[Record]) -> str:
    """What `entries` reads, from a run that proved everything."""
    kept = {
        r.name: {"level": r.level, "axioms": list(r.axioms), "digest": r.digest}
        for r in records
    }
    return json.dumps(kept, indent=1) + "\n"


def reach(scope: str) -> str:
    """The kind of a scope: all sizes, the released sizes, or one instance."""
    if scope.startswith("one instance"):
        return "one instance"
    return "released sizes" if scope.startswith("the released") else "all sizes"


def counts(found: Iterable[Entry | Record]) -> dict[str, dict[str, int]]:
    """How many theorems there are by level and by kind of scope."""
    listed = list(found)
    levels = Counter(e.level for e in listed)
    scopes = Counter(reach(e.scope) for e in listed)
    return {
        "level": {level: levels[level] for level in LEVELS if levels[level]},
        "scope": dict(scopes.most_common()),
    }


def counted(found: Iterable[Entry | Record]) -> list[str]:
    """The counts as two lines."""
    return [
        f"by {what}: " + ", ".join(f"{key} {n}" for key, n in table.items())
        for what, table in counts(found).items()
    ]


def plain(entry: Entry | Record) -> dict[str, Any]:
    """An entry or a record as plain values."""
    return asdict(entry)


def markdown() -> str:
    """The text of docs/theorems.md."""
    listed = entries()
    lines = [
        "# Theorems",
        "",
        "Written by `tools/theorems.py`; do not edit. `k3 prove NAME` proves one again",
        "and prints its statement, `k3 prove --all` proves all.",
        "",
        f"{len(listed)} theorems; " + "; ".join(counted(listed)) + ".",
        "",
        *(f"- **{level}**: {says}." for level, says in LEVELS.items() if level != "?"),
    ]
    concept = ""
    for entry in listed:
        if (now := entry.name.split(".")[0]) != concept:
            concept = now
            lines += ["", f"## {concept}", "", "| theorem | says | for | level |"]
            lines += ["|---|---|---|---|"]
        axioms = f" ({', '.join(entry.axioms)})" if entry.axioms else ""
        cells = (entry.name, entry.words, entry.scope, entry.level + axioms)
        lines.append("| " + " | ".join(c.replace("|", r"\|") for c in cells) + " |")
    return "\n".join(lines) + "\n"


def reasons() -> str:
    """Why theorems of the article are not ours: a line for each reason."""
    table: dict[str, list[str]] = {}
    for name, answer in article().items():
        if "limit" in answer:
            table.setdefault(answer["limit"], []).append(name)
    return "".join(
        f"- {reason}: {', '.join(f'*{name}*' for name in names)}.\n"
        for reason, names in sorted(table.items())
    )


def with_reasons(limits: str) -> str:
    """The text of docs/limits.md with its list of reasons renewed."""
    before, rest = limits.split(BEGIN)
    return before + BEGIN + reasons() + END + rest.split(END)[1]
