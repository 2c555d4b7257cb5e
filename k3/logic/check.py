"""A second checker: repeats every step of a proof log from the text alone.

Written apart from the kernel and shares no code with it; it trusts z3 and cvc5 for
ground steps, which it prints and asks anew, and nothing else.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from k3.logic.check_constants import Step
from k3.logic.check_rules import RULES
from k3.logic.check_terms import (
    B,
    Sort,
    Terms,
    demand,
    frozen,
    literal,
    sort_of_log,
)


@dataclass(frozen=True)
class Checked:
    """A theorem of the log: its statement's digest, its axioms and its level."""

    statement: str
    axioms: Mapping[str, str]
    level: str


class Log:
    """Reads a log line by line; the first wrong line ends it."""

    def __init__(self) -> None:
        self.terms = Terms()
        self.numbers: list[int] = []  # term numbers of the log -> rows
        self.steps: list[Step] = []
        self.meanings: dict[str, Any] = {}
        self.theorems: dict[str, Checked] = {}
        self.digests: dict[int, str] = {}

    def line(self, line: dict[str, Any]) -> None:
        """One line."""
        if "term" in line:
            self._term(line)
        elif "rule" in line:
            self._step(line)
        elif "declare" in line:
            name, domain, result = self.symbol(line["declare"])
            demand(name not in self.meanings, f"{name} has two meanings")
            self.meanings[name] = ("declared", domain, result)
        elif "theorem" in line:
            self._theorem(line["theorem"], self.steps[_at(line["step"], self.steps)])
        else:
            demand(False, f"a line of no known kind: {line}")

    # ------------------------------------------------------------------ reading

    def symbol(self, x: Any) -> tuple[str, tuple[Sort, ...], Sort]:
        """A symbol read from the log."""
        name, domain, result = x
        demand(isinstance(name, str), "a symbol has a name")
        return name, tuple(map(sort_of_log, domain)), sort_of_log(result)

    def _term(self, line: dict[str, Any]) -> None:
        op: str = line["op"]
        data: Any = line.get("data")
        demand(line["term"] == len(self.numbers), "terms are numbered in order")
        sort = sort_of_log(line["sort"]) if "sort" in line else None
        demand((sort is None) != (op in ("free", "bound", "lit", "nil")), "leaf sorts")
        if sort is not None:
            data = literal(data, sort) if op == "lit" else frozen(data)
            demand(not line["args"], "a leaf has no parts")
            demand(op != "nil" or sort[0] == "List", "nil is a list")
            demand(op != "free" or isinstance(data, str), "a variable has a name")
            level = isinstance(data, tuple) and [type(k) for k in data] == [int, int]
            demand(op != "bound" or (level and min(data) >= 0), "a bound variable")
        elif op == "const":
            data = self.symbol(data)
        elif op in ("lam", "forall"):
            data = tuple(map(sort_of_log, data))
        args = [self.number(a) for a in line["args"]]
        self.numbers.append(self.terms.enter(op, data, args, sort))

    def number(self, n: Any) -> int:
        """The row of a term of the log."""
        return self.numbers[_at(n, self.numbers)]

    def _step(self, line: dict[str, Any]) -> None:
        demand(line["step"] == len(self.steps), "steps are numbered in order")
        demand(line["rule"] in RULES, f"no rule {line['rule']}")
        premises = [self.steps[_at(p, self.steps)] for p in line["from"]]
        hyps, concl = RULES[line["rule"]](self, premises, line["data"])
        claimed = frozenset(self.number(h) for h in line["hyps"])
        demand(hyps == claimed, f"step {line['step']} has other hypotheses")
        demand(concl == self.number(line["concl"]), f"step {line['step']} shows other")
        demand(self.terms.sorts[concl] == B, "a theorem is a statement")
        demand(not self.terms.open[concl], "a theorem has no unbound variables")
        axioms = frozenset[tuple[str, int]]().union(*(p.axioms for p in premises))
        if line["rule"] == "axiom":
            axioms = frozenset([(line["data"][0], concl)])
        given = frozenset((n, self.number(t)) for n, t in line["axioms"])
        demand(axioms == given, f"step {line['step']} rests on other axioms")
        ground = line["rule"] == "ground" or any(p.ground for p in premises)
        self.steps.append(Step(hyps, concl, axioms, ground))

    def _theorem(self, name: str, step: Step) -> None:
        demand(name not in self.theorems, f"{name} is stated twice")
        demand(not step.hyps, f"{name} has hypotheses left")
        axioms = {n: self.digest(t) for n, t in step.axioms}
        demand(len(axioms) == len(step.axioms), "two axioms have one name")
        level = "KS" if step.ground else "K"
        self.theorems[name] = Checked(self.digest(step.concl), axioms, level)

    def digest(self, t: int) -> str:
        """What a statement is: sha256 of its tree."""
        if t in self.digests:
            return self.digests[t]
        op, data, xs = self.terms.rows[t]
        leaf = op in ("free", "bound", "lit", "nil")
        if op == "lit" and not isinstance(data, bool):
            data = str(data)
        sort = self.terms.sorts[t] if leaf or not xs else None
        tree = [op, data, sort, [self.digest(x) for x in xs]]
        self.digests[t] = hashlib.sha256(json.dumps(tree).encode()).hexdigest()
        return self.digests[t]

    # -------------------------------------------------------------- definitions

    def meaning(self, symbol: Any, key: Any, bodies: Iterable[int]) -> None:
        """Give a constant its one meaning; the bodies use earlier constants only."""
        name = symbol[0]
        if name in self.meanings:
            demand(self.meanings[name] == key, f"{name} has two meanings")
            return
        for body in bodies:
            self.earlier(body)
        self.meanings[name] = key

    def earlier(self, t: int) -> None:
        """Every constant of a term already has its meaning."""
        op, data, xs = self.terms.rows[t]
        if op == "const":
            known = self.meanings.get(data[0])
            same = known is not None and known[1:3] == data[1:]
            demand(same, f"{data[0]} is used before it has a meaning")
        for x in xs:
            self.earlier(x)


def _at(n: Any, rows: list[Any]) -> int:
    demand(type(n) is int and 0 <= n < len(rows), f"nothing has the number {n} yet")
    return int(n)


MALFORMED = (
    KeyError,
    ValueError,
    TypeError,
    IndexError,
    AttributeError,
    RecursionError,
    ZeroDivisionError,
)


def check(
    lines: Iterable[str], statements: Mapping[str, str] | None = None
) -> dict[str, Checked]:
    """The theorems of a log, every step repeated; ProofError at the first wrong one.

    `statements` maps names to the digests that the theorems must have.
    """
    log = Log()
    for line in lines:
        try:
            log.line(json.loads(line))
        except MALFORMED as e:
            demand(False, f"{type(e).__name__} {e} in {line[:80]}")
    for name, digest in (statements or {}).items():
        found = log.theorems.get(name)
        demand(found is not None, f"{name} is missing")
        demand(found is not None and found.statement == digest, f"{name} states other")
    return log.theorems
