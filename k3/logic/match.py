"""Matching: which instance of a ∀-theorem speaks of a given term. Untrusted."""

from collections.abc import Iterable, Iterator

from k3.logic.kernel import Thm
from k3.logic.syntax import fresh
from k3.logic.terms import BINDERS, HINTS, Term, open_body

Match = dict[Term, Term]


def opened(t: Term) -> tuple[tuple[Term, ...], Term]:
    """Fresh variables for a binder, and its body about them."""
    assert isinstance(t.data, tuple)
    names = HINTS[t.uid]
    vs = tuple(fresh(n, s) for n, s in zip(names, t.data, strict=True))
    return vs, open_body(t.args[0], vs)


def match(pattern: Term, t: Term, holes: frozenset[Term], found: Match) -> Match | None:
    """Extend `found` so that the pattern becomes t."""
    if pattern in holes:
        if pattern in found:
            return found if found[pattern] is t else None
        return {**found, pattern: t} if pattern.sort == t.sort and not t.loose else None
    if not (pattern.free & holes):
        return found if pattern is t else None
    same = pattern.op == t.op and pattern.sort == t.sort and pattern.data == t.data
    if not same or len(pattern.args) != len(t.args):
        return None
    for p, a in zip(pattern.args, t.args, strict=True):
        new = match(p, a, holes, found)
        if new is None:
            return None
        found = new
    return found


def subterms(ts: Iterable[Term]) -> list[Term]:
    """Every closed subterm outside binders, each once, parts first."""
    found: dict[Term, None] = {}
    for t in ts:
        _subterms(t, found, set())
    return list(found)


def _subterms(t: Term, found: dict[Term, None], seen: set[Term]) -> None:
    if t in found or t in seen:
        return
    seen.add(t)
    if t.op not in BINDERS:
        for a in t.args:
            _subterms(a, found, seen)
    found[t] = None


class Pattern:
    """A ∀-theorem with the groups of subterms whose match determines an instance."""

    def __init__(self, th: Thm, *, definition: bool) -> None:
        self.th = th
        self.holes, body = opened(th.concl)
        self.set = frozenset(self.holes)
        if definition:
            equation = body.args[1] if body.op == "=>" else body
            self.groups: list[tuple[Term, ...]] = [(equation.args[0],)]
        else:
            self.groups = self._triggers(body)

    def _triggers(self, body: Term) -> list[tuple[Term, ...]]:
        parts = [t for t in subterms([body]) if t.op in ("const", "call")]
        parts = [t for t in parts if t.free & self.set]
        whole: list[tuple[Term, ...]] = [(t,) for t in parts if self.set <= t.free]
        if whole:
            return whole
        return [
            (a, b)
            for i, a in enumerate(parts)
            for b in parts[i + 1 :]
            if self.set <= a.free | b.free
        ]

    def instances(self, candidates: list[Term]) -> Iterator[Thm]:
        """Instances whose triggers occur among the candidates."""
        for group in self.groups:
            found: list[Match] = [{}]
            for p in group:
                steps = [match(p, t, self.set, f) for f in found for t in candidates]
                found = [m for m in steps if m is not None]
            for m in found:
                if self.set <= m.keys():
                    yield self.th(*(m[h] for h in self.holes))
