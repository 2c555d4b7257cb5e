"""Matching: which instance of a ∀-theorem speaks of a given term. Untrusted."""

from collections.abc import Iterable, Iterator

from k3.logic import kernel
from k3.logic.kernel import Thm
from k3.logic.syntax import fresh
from k3.logic.terms import BINDERS, HINTS, Term, open_body

Match = dict[Term, Term]


def prenex(th: Thm) -> Thm:
    """The theorem with all its variables in front of all its premises."""
    if not _nested(th.concl):
        return th
    variables: list[Term] = []
    premises: list[Term] = []
    while th.concl.op in ("forall", "=>"):
        if th.concl.op == "=>":
            premises.append(th.concl.args[0])
            th = kernel.mp(th, kernel.assume(premises[-1]))
        else:
            vs, _ = opened(th.concl)
            variables += vs
            th = th(*vs)
    for p in reversed(premises):
        th = kernel.discharge(p, th)
    return kernel.generalize(variables, th)


def parts(th: Thm) -> list[Thm]:
    """Every part of nested conjunctions."""
    if th.concl.op != "and":
        return [th]
    every = range(len(th.concl.args))
    return [p for i in every for p in parts(kernel.conj_elim(th, i))]


def pieces(th: Thm) -> list[Thm]:
    """The parts of a conjunction, also behind variables and premises."""
    th = prenex(th)
    holes, body = opened(th.concl) if th.concl.op == "forall" else ((), th.concl)
    premises = []
    while body.op == "=>":
        premises.append(body.args[0])
        body = body.args[1]
    if body.op != "and":
        return [th]
    inner = th(*holes) if holes else th
    for p in premises:
        inner = kernel.mp(inner, kernel.assume(p))
    out = []
    for i in range(len(body.args)):
        part = kernel.conj_elim(inner, i)
        for p in reversed(premises):
            part = kernel.discharge(p, part)
        out += pieces(kernel.generalize(holes, part) if holes else part)
    return out


def _nested(t: Term) -> bool:
    """Is there a quantifier behind another or behind a premise?"""
    t = t.args[0] if t.op == "forall" else t
    while t.op == "=>":
        t = t.args[1]
    return t.op == "forall"


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
        self.holes, body = opened(self.th.concl)
        self.set = frozenset(self.holes)
        if definition:
            equation = body.args[1] if body.op == "=>" else body
            self.groups: list[tuple[Term, ...]] = [(equation.args[0],)]
        else:
            self.groups = self._triggers(body)

    def _triggers(self, body: Term) -> list[tuple[Term, ...]]:
        inside = [t for t in subterms([body]) if t.free & self.set]
        parts = [t for t in inside if t.op in ("const", "call")]
        parts = parts or [t for t in inside if t.op == "*"]
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
