"""What `k3 prove` prints: the list, one theorem, its proof, the article's map."""

import os
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3.cli import output
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.proof import Record

Cache = Path | None
KINDS = {"ours": "=", "generalized_by": "<", "limit": "-"}


def needed_solvers() -> None:
    """ProofError with the command that installs z3 and cvc5, where they are missing."""
    from k3.logic import smt

    smt.versions()


def cache_file() -> Path:
    """Where verdicts of the solvers are kept between runs."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "k3" / "obligations.jsonl"


def known(name: str) -> str:
    """The name of a theorem, or a sentence with those that are near."""
    from k3 import proof
    from k3.proof import graphs

    names = [*proof.theorems(), *graphs.names()]
    if name not in names:
        near = [n for n in names if name in n] or ["k3 prove lists them"]
        raise RequestError(f"no theorem is called {name}: {', '.join(near)}")
    return name


def proved(name: str, *, explain: bool) -> tuple["Record", dict[str, Any]]:
    """The record of a new proof, and with `explain` how it goes."""
    from k3 import proof
    from k3.proof import graphs

    if name in graphs.names():
        more = {"decided": f"by the normal form of its graph: {name}"}
        return graphs.prove(name), more if explain else {}
    return proof.prove(name), explanation(name) if explain else {}


def explanation(name: str) -> dict[str, Any]:
    """How a proof goes: lemmas in their order, definitions, rules by number."""
    from k3 import proof
    from k3.logic import log, smt

    theorem = proof.theorems()[name]
    with smt.session():
        steps = list(log.steps(theorem.proof()))
        done: list[Any] = [f for f in smt.current().memo if hasattr(f, "__qualname__")]
    lemmas = {f"{f.__module__.removeprefix('k3.')}.{f.__name__}": f for f in done}
    laws = (step for step in steps if step.rule in ("define", "recursive"))
    return {
        "lemmas": {n: " ".join((f.__doc__ or "").split()) for n, f in lemmas.items()},
        "definitions": sorted({str(law.data[0].name) for law in laws}),
        "rules": dict(Counter(step.rule for step in steps).most_common()),
    }


def plain(record: "Record") -> dict[str, Any]:
    """A record as plain values."""
    from k3.proof import listing

    lines = [line.strip() for line in record.statement.splitlines()]
    premises = [line.removeprefix("if ") for line in lines if line.startswith("if ")]
    return listing.plain(record) | {"hypotheses": premises}


def line(record: "Record") -> str:
    """A record on one line."""
    axioms = f"  {', '.join(record.axioms)}" if record.axioms else ""
    return f"{record.level:2} {record.name:44} {record.seconds:6.2f} s{axioms}"


def show_list(*, as_json: bool) -> int:
    """Every theorem: level, name, scope, axioms."""
    from k3.proof import listing

    found = listing.entries()
    if as_json:
        output.json_value([listing.plain(entry) for entry in found])
        return 0
    for entry in found:
        axioms = f"  [{', '.join(entry.axioms)}]" if entry.axioms else ""
        print(f"{entry.level:2} {entry.name:44} {entry.scope}{axioms}")
    print(f"{len(found)} theorems", *listing.counted(found), sep="\n")
    return 0


def show_record(record: "Record") -> None:
    """One theorem for a person."""
    from k3.proof import listing

    print(f"{record.name}\n{record.words}\n\n{record.statement}\n")
    print(f"level    {record.level}: {listing.LEVELS[record.level]}")
    print(f"scope    {record.scope}")
    print(f"axioms   {', '.join(record.axioms) or 'none'}")
    print(f"proved   in {record.seconds:.2f} s, {record.steps} steps")
    for name, found in record.mutants.items():
        print(f"refuted  {name}")
        print(*(f"         {row}" for row in found.splitlines()), sep="\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A run that proved everything: its solver seed, whether the log was repeated."""

    seed: int
    log_checked: bool
    seconds: float


def show_all(
    records: list["Record"], failures: dict[str, str], run: Run, *, as_json: bool
) -> None:
    """The counts of a run, then every theorem that failed."""
    from k3.proof import listing
    from k3.proof.prove import unproved

    variants = sum(len(record.mutants) for record in records)
    if as_json:
        output.json_value(
            {
                "theorems": [plain(record) for record in records],
                "counts": listing.counts(records),
                "mutants": variants,
                "failures": failures,
                **asdict(run),
            }
        )
        return
    print(f"{len(records)} theorems proved in {run.seconds:.1f} s", end="")
    print(f", solver seed {run.seed}", *listing.counted(records), sep="\n")
    print(f"wrong variants, each refuted: {variants}")
    if run.log_checked:
        print("the second checker repeated every step of the log")
    if failures:
        print(unproved(failures))


def show_explanation(more: dict[str, Any]) -> None:
    """How the proof goes, where that was asked for."""
    for title, found in more.items():
        if isinstance(found, str):
            print(f"{title}  {found}")
            continue
        print(f"\n{title}")
        pairs = found.items() if isinstance(found, dict) else ((x, "") for x in found)
        for name, says in pairs:
            print(f"  {name:44} {says}".rstrip())


def show_article(*, as_json: bool) -> int:
    """Each theorem of the article: ours, a generalization, or why it is open."""
    from k3 import proof

    found = proof.article()
    if as_json:
        output.json_value(found)
        return 0
    for name, answer in found.items():
        ((kind, what),) = answer.items()
        print(f"{name:60} {KINDS[kind]} {what}")
    tally = Counter(kind for answer in found.values() for kind in answer)
    print(
        f"{len(found)} theorems of the article: {tally['ours']} are ours (=), "
        f"{tally['generalized_by']} follow from a general one (<), "
        f"{tally['limit']} are limits (-; docs/limits.md)"
    )
    return 0
