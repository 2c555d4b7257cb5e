"""Ground obligations and certificates of the second checker, apart from the kernel."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from k3.logic.check_terms import Sort, Terms, demand

Poly = dict[tuple[int, ...], Fraction]
Fact = tuple[str, Poly]


class Text:
    """SMT-LIB for one obligation; binders become opaque constants."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.lines = [
            "(set-logic ALL)",
            "(declare-datatypes ((list! 1)) "
            "((par (T) ((nil) (cons (hd T) (tl (list! T)))))))",
            "(declare-datatypes ((two! 2)) ((par (S T) ((pair (fst S) (snd T))))))",
        ]
        self.known: dict[Any, str] = {}

    def sort(self, s: Sort) -> str:
        """A sort."""
        if s[0] in ("Bool", "Int", "Real"):
            return str(s[0])
        if s[0] in ("List", "Pair"):
            head = "list!" if s[0] == "List" else "two!"
            return f"({head} {' '.join(self.sort(x) for x in s[1:])})"
        if ("sort", s) not in self.known:
            self.known["sort", s] = f"sort!{len(self.known)}"
            self.lines.append(f"(declare-sort {self.known['sort', s]} 0)")
        return self.known["sort", s]

    def symbol(self, key: Any, domain: Sequence[Sort], result: Sort) -> str:
        """A declared function."""
        if key not in self.known:
            texts = [self.sort(s) for s in (*domain, result)]
            self.known[key] = f"sym!{len(self.known)}"
            ins = " ".join(texts[:-1])
            self.lines.append(f"(declare-fun {self.known[key]} ({ins}) {texts[-1]})")
        return self.known[key]

    def term(self, t: int) -> str:
        """A term."""
        op, data, xs = self.terms.rows[t]
        sort = self.terms.sorts[t]
        if op == "lit":
            return self._number(data, sort)
        if op in ("free", "lam", "forall"):
            return self.symbol(("term", t), (), sort)
        if op == "nil":
            return f"(as nil {self.sort(sort)})"
        inner = [self.term(x) for x in xs]
        if op == "const":
            head = self.symbol(("const", data), data[1], data[2])
        elif op == "call":
            f = self.terms.sorts[xs[0]]
            head = self.symbol(("apply", f), (f, *f[1:-1]), f[-1])
        elif op == "pair":
            head = f"(as pair {self.sort(sort)})"
        else:
            head = op
        return f"({head} {' '.join(inner)})" if inner else head

    def _number(self, value: Any, sort: Sort) -> str:
        if sort == ("Bool",):
            return str(value).lower()
        unit = ".0" if sort == ("Real",) else ""
        top, bottom = abs(value.numerator), value.denominator
        text = f"{top}{unit}" if bottom == 1 else f"(/ {top}.0 {bottom}.0)"
        return f"(- {text})" if value < 0 else text


def follows(terms: Terms, known: Sequence[int], goal: int) -> bool:
    """Do z3 and cvc5 both refute `known and not goal`?"""
    text = Text(terms)
    asserts = [f"(assert {text.term(k)})" for k in known]
    asserts.append(f"(assert (not {text.term(goal)}))")
    whole = "\n".join([*text.lines, *asserts])
    return all(refuted(whole) for refuted in SOLVERS)


def _z3_refutes(text: str) -> bool:
    import z3

    solver = z3.Solver()
    solver.set("timeout", 60_000)
    try:
        solver.add(z3.parse_smt2_string(text))
    except z3.Z3Exception as e:
        demand(False, f"z3 does not read an obligation: {e}")
    return bool(solver.check() == z3.unsat)


def _cvc5_refutes(text: str) -> bool:
    import cvc5

    manager = cvc5.TermManager()
    solver = cvc5.Solver(manager)
    solver.setOption("tlimit-per", "60000")
    reader = cvc5.InputParser(solver, cvc5.SymbolManager(manager))
    reader.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "log")
    while not (command := reader.nextCommand()).isNull():
        answer = command.invoke(solver, reader.getSymbolManager())
        demand("error" not in answer, f"cvc5 does not read an obligation: {answer}")
    return bool(solver.checkSat().isUnsat())


SOLVERS: tuple[Callable[[str], bool], ...] = (_z3_refutes, _cvc5_refutes)


def plus(p: Poly, q: Poly, k: Fraction = Fraction(1)) -> Poly:
    """p + k q, without zero coefficients."""
    keys = {*p, *q}
    zero = Fraction(0)
    total = {m: p.get(m, zero) + k * q.get(m, zero) for m in keys}
    return {m: c for m, c in total.items() if c}


def times(p: Poly, q: Poly) -> Poly:
    """p q."""
    out: Poly = {}
    for (m, c), (n, d) in product(p.items(), q.items()):
        out = plus(out, {tuple(sorted((*m, *n))): c * d})
    return out


def polynomial(terms: Terms, t: int, choice: dict[int, bool]) -> Poly:
    """The polynomial of a term, its ite conditions decided by `choice`."""
    op, data, xs = terms.rows[t]
    if op == "lit":
        return {(): data} if data else {}
    if op == "ite" and xs[0] in choice:
        return polynomial(terms, xs[1] if choice[xs[0]] else xs[2], choice)
    if op in ("+", "-", "*"):
        a, b = (polynomial(terms, x, choice) for x in xs)
        if op == "*":
            return times(a, b)
        return plus(a, b, Fraction(1 if op == "+" else -1))
    if op == "/" and terms.rows[xs[1]][0] == "lit" and terms.rows[xs[1]][1]:
        return plus({}, polynomial(terms, xs[0], choice), 1 / terms.rows[xs[1]][1])
    return {(t,): Fraction(1)}


def ite_conditions(terms: Terms, ts: Iterable[int]) -> list[int]:
    """Conditions of numeric choices outside binders, in order of appearance."""
    order: dict[int, None] = {}
    done: set[int] = set()
    for t in ts:
        _ite_conditions(terms, t, order, done)
    return list(order)


def _ite_conditions(
    terms: Terms, t: int, order: dict[int, None], done: set[int]
) -> None:
    op, _, xs = terms.rows[t]
    if t in done or op in ("lam", "forall"):
        return
    done.add(t)
    for x in xs:
        _ite_conditions(terms, x, order, done)
    if op == "ite" and terms.sorts[t] in (("Int",), ("Real",)):
        order.setdefault(xs[0])


def said(terms: Terms, t: int, true: bool, choice: dict[int, bool]) -> Iterator[Fact]:
    """Polynomial facts in a statement that is true, or false."""
    op, _, xs = terms.rows[t]
    if op == "not":
        yield from said(terms, xs[0], not true, choice)
    elif op == "and" and true:
        for x in xs:
            yield from said(terms, x, True, choice)
    elif op in ("<=", "<") or (op == "=" and true and _numeric(terms, xs[0])):
        a, b = (polynomial(terms, x, choice) for x in xs)
        minus = Fraction(-1)
        if op == "=":
            yield "=", plus(b, a, minus)
        elif true:
            yield (">=" if op == "<=" else ">"), plus(b, a, minus)
        else:
            yield (">" if op == "<=" else ">="), plus(a, b, minus)


def _numeric(terms: Terms, t: int) -> bool:
    return terms.sorts[t] in (("Int",), ("Real",))


def certified(terms: Terms, known: Sequence[int], goal: int, cases: Any) -> bool:
    """Is there a valid certificate for every case?"""
    where = ite_conditions(terms, [*known, goal])
    given = {tuple(case): branches for case, branches in cases}
    for values in product((False, True), repeat=len(where)):
        choice = dict(zip(where, values, strict=True))
        facts = [f for k in known for f in said(terms, k, True, choice)]
        for c, true in choice.items():
            facts += said(terms, c, true, choice)
        op, _, xs = terms.rows[goal]
        if op == "=" and _numeric(terms, xs[0]):
            ((_, gap),) = said(terms, goal, True, choice)
            against = [[(">", gap)], [(">", plus({}, gap, Fraction(-1)))]]
        else:
            demand(op in ("<=", "<", "not", "lit"), "this goal takes no certificate")
            against = [list(said(terms, goal, False, choice))]
        found = given.get(values, ())
        if len(found) != len(against):
            return False
        pairs = zip(against, found, strict=True)
        if not all(contradiction(facts + more, entries) for more, entries in pairs):
            return False
    return True


def contradiction(facts: list[Fact], entries: Any) -> bool:
    """A combination of products that is negative, though it cannot be."""
    total: Poly = {}
    positive = False
    for positions, factor in entries:
        weight = Fraction(factor)
        demand(all(0 <= i < len(facts) for i in positions), "a fact that is not there")
        signs = {facts[i][0] for i in positions}
        if not signs or (weight < 0 and "=" not in signs):
            return False
        positive |= signs == {">"} and weight > 0
        value: Poly = {(): weight}
        for i in positions:
            value = times(value, facts[i][1])
        total = plus(total, value)
    rest = {m: c for m, c in total.items() if m}
    constant = total.get((), Fraction(0))
    return not rest and (constant < 0 or (positive and constant == 0))
