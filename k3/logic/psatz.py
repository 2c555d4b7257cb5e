"""Search for arithmetic certificates. Untrusted: the kernel checks what is found."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

from k3.errors import ProofError
from k3.logic import kernel, polynomial, smt
from k3.logic.kernel import Thm
from k3.logic.polynomial import Entry, Fact, Poly
from k3.logic.terms import Term

MOST_CONDITIONS = 8


def prove(goal: Term, by: Sequence[Thm] = (), *, degree: int = 1) -> Thm:
    """The goal from the facts, by products of at most `degree` of them."""
    known = [p.concl for p in by]
    where = polynomial.conditions([*known, goal])
    if len(where) > MOST_CONDITIONS:
        raise ProofError(f"{len(where)} conditions are too many for one certificate")
    proof: dict[tuple[bool, ...], Any] = {}
    for bits in range(2 ** len(where)):
        case = tuple(bool(bits >> i & 1) for i in range(len(where)))
        facts = kernel.case_facts(known, where, case)
        cases = dict(zip(where, case, strict=True))
        proof[case] = [
            _search(facts + more, degree) for more in polynomial.branches(goal, cases)
        ]
    return kernel.certificate(goal, by, proof)


def _search(facts: list[Fact], degree: int) -> list[Entry]:
    for d in range(1, degree + 1):
        entries = _solve(facts, _products(facts, d))
        if entries is not None:
            return entries
    raise ProofError(f"no certificate of degree {degree} was found")


def _products(facts: list[Fact], degree: int) -> list[tuple[int, ...]]:
    indices = [i for i, f in enumerate(facts) if f.poly or f.kind == ">"]
    return [
        chosen
        for d in range(1, degree + 1)
        for chosen in combinations_with_replacement(indices, d)
    ]


def _solve(facts: list[Fact], products: list[tuple[int, ...]]) -> list[Entry] | None:
    """Multipliers that make the combination a contradiction: a linear program."""
    smt.versions()
    import z3

    solver = z3.SolverFor("QF_LRA")
    solver.set("timeout", 10_000)
    solver.from_string(_program(facts, products))
    if solver.check() != z3.sat:
        return None
    found = {str(d): solver.model()[d].as_fraction() for d in solver.model().decls()}
    return [
        Entry(chosen, Fraction(str(found[f"w{i}"])))
        for i, chosen in enumerate(products)
        if found.get(f"w{i}")
    ]


def _program(facts: list[Fact], products: list[tuple[int, ...]]) -> str:
    """Weights, and a gap, such that the weighted sum plus the gap is zero."""
    lines = ["(declare-const gap Real) (assert (>= gap 0))"]
    columns: dict[tuple[int, ...], list[str]] = {(): ["gap"]}
    strict = ["gap"]
    for i, chosen in enumerate(products):
        kinds = [facts[f].kind for f in chosen]
        lines.append(f"(declare-const w{i} Real)")
        if "=" not in kinds:
            lines.append(f"(assert (>= w{i} 0))")
        if all(k == ">" for k in kinds):
            strict.append(f"w{i}")
        for m, c in _product(facts, chosen).items():
            size = f"(/ {abs(c.numerator)} {c.denominator})"
            factor = size if c > 0 else f"(- {size})"
            columns.setdefault(m, []).append(f"(* {factor} w{i})")
    lines += [f"(assert (= 0 (+ 0 {' '.join(ts)})))" for ts in columns.values()]
    return "\n".join([*lines, f"(assert (> (+ 0 {' '.join(strict)}) 0))"])


def _product(facts: list[Fact], chosen: tuple[int, ...]) -> Poly:
    out: Poly = {(): Fraction(1)}
    for i in chosen:
        out = polynomial.mul(out, facts[i].poly)
    return out
