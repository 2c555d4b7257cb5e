"""`k3 read --check`: every name exists, every piece of evidence is there and fresh."""

import re
from collections import Counter
from collections.abc import Callable, Iterator

from k3 import graph
from k3.errors import ConfigError
from k3.reader import (
    code,
    formulas,
    links,
    live,
    markdown,
    site,
    source,
    theorems,
    trace,
    verdicts,
    worked,
)
from k3.reader.chapter import Chapter, Claim, chapters

SPEC = source.ROOT / "k3" / "spec"
# Files of k3.spec that carry the equations and state none.
CARRIERS = ("__init__", "weights")


def problems() -> list[str]:
    """A sentence for each thing that is wrong, in the order of the chapters."""
    found = [wrong for chapter in chapters() for wrong in of_chapter(chapter)]
    # Pages are made of names that exist, so links are looked at last.
    if not found:
        found += links.dead(site.site())
    return found + unset() + uncovered() + untraced()


def of_chapter(chapter: Chapter) -> list[str]:
    """What is wrong with the claims and worked numbers of one chapter."""
    found = []
    for claim in chapter.claims:
        where = f"{chapter.file}, claim {claim.id}"
        found += [f"{where}: {wrong}" for wrong in of_claim(claim)]
    for where, text in texts(chapter):
        wrong = (_refusal(worked.value, given) for given in worked.find(text))
        found += [f"{where}: {each}" for each in wrong if each]
    ids = Counter(claim.id for claim in chapter.claims)
    found += [f"{chapter.file}: two claims are called {i}" for i in ids if ids[i] > 1]
    return found


def of_claim(claim: Claim) -> Iterator[str]:
    """What is wrong with one claim."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", claim.id):
        yield f"an id is lower-case words with hyphens: got {claim.id!r}"
    for name in (*claim.code, *claim.runs):
        yield from _refusals(source.find, name)
    yield from _equation(claim)
    for name in claim.theorems:
        yield from _refusals(theorems.receipt, name)
        if name in theorems.receipts() and not theorems.fresh(name):
            yield f"the receipt of {name} is of another statement; {theorems.REBUILD}"
    if claim.exact:
        yield from _refusals(verdicts.verdict, claim.exact)
        if claim.exact in verdicts.verdicts() and not verdicts.fresh(claim.exact):
            yield f"the verdict {claim.exact} is of older code; {verdicts.REBUILD}"
    if claim.graph and claim.graph not in graph.catalogue:
        yield f"no graph is called {claim.graph}; k3 graph lists them"
    if claim.widget and claim.widget not in live.names():
        yield f"no widget is called {claim.widget}; k3/reader/widgets has its names"


def _equation(claim: Claim) -> Iterator[str]:
    """The claim's equations stand in the first lines of its code's docstrings."""
    if not claim.equation or _refusal(_sources, claim):
        return
    named: set[str] = set()
    for found in _sources(claim):
        named |= code.equations(found.docstring)
    for number in sorted(code.numbers(claim.equation) - named):
        yield (
            f"equation {number} is in no first line of a docstring of its code, which "
            f"names {', '.join(sorted(named)) or 'none'}"
        )


def _sources(claim: Claim) -> list[source.Source]:
    return [source.find(name) for name in claim.code]


def texts(chapter: Chapter) -> Iterator[tuple[str, str]]:
    """(where, Markdown) of every text of a chapter."""
    yield chapter.file, chapter.summary
    for part in chapter.parts:
        if isinstance(part, Claim):
            where = f"{chapter.file}, claim {part.id}"
            yield from ((where, t) for t in (part.title, part.text, part.limits))
        else:
            yield chapter.file, part.text


def formulas_used() -> Iterator[tuple[str, str, bool]]:
    """(where, TeX, whether it stands alone) of every formula of every chapter."""
    for chapter in chapters():
        for where, text in texts(chapter):
            yield from ((where, *found) for found in markdown.maths(text))


def unset() -> list[str]:
    """A sentence for each formula that the cache lacks."""
    known = formulas.typeset()
    return [
        f"{where}: the formula {tex.strip()[:60]!r} is not typeset; {formulas.REBUILD}"
        for where, tex, display in formulas_used()
        if formulas.key(tex, display=display) not in known
    ]


def uncovered() -> list[str]:
    """A sentence for each public function of k3.spec that is in no chapter."""
    shown = {name for c in chapters() for claim in c.claims for name in claim.code}
    return [
        f"k3.spec.{path.stem}:{name} is in no chapter; give it to a claim's code"
        for path in sorted(SPEC.glob("*.py"))
        if path.stem not in CARRIERS
        for name in source.public(f"k3.spec.{path.stem}")
        if f"k3.spec.{path.stem}:{name}" not in shown
    ]


def untraced() -> list[str]:
    """A sentence where the trace is of another model than the one in the package."""
    wrong = f"{trace.FILE}: the trace is of another model; {trace.REBUILD}"
    return [] if trace.fresh() else [wrong]


def _refusals(look: Callable[[str], object], name: str) -> Iterator[str]:
    wrong = _refusal(look, name)
    if wrong:
        yield wrong


def _refusal(look: Callable[..., object], given: object) -> str:
    """What is wrong with a name, or nothing."""
    try:
        look(given)
    except ConfigError as error:
        return str(error)
    return ""
