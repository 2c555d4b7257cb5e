"""Ground obligations: one SMT-LIB text, which z3 and cvc5 must both call unsat.

`to_text` is trusted, and so is the claim that two solvers are not wrong on the same
quantifier-free problem. Binders are opaque constants, which only hides facts.
"""

import contextlib
import hashlib
import importlib.metadata
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from k3.errors import ProofError
from k3.logic.sorts import Sort
from k3.logic.terms import BINDERS, Symbol, Term

Verdict = tuple[str, str]
MISSING = (
    "proofs need z3 and cvc5, which are not installed: "
    "pip install z3-solver==5.4.1.0 cvc5==1.4.2"
)
LISTS = (
    "(declare-datatypes ((List_ 1)) ((par (E) ((nil) (cons (hd E) (tl (List_ E)))))))"
)
PAIRS = "(declare-datatypes ((Pair_ 2)) ((par (X Y) ((pair (fst X) (snd Y))))))"


class Printer:
    """Writes one obligation; every name is a number, so no two can be confused."""

    def __init__(self) -> None:
        self.names: dict[object, str] = {}
        self.declarations: list[str] = []

    def name(self, key: object, declare: Callable[[str], str]) -> str:
        """The name of a thing, declared when first met."""
        if key not in self.names:
            self.names[key] = f"n{len(self.names)}"
            self.declarations.append(declare(self.names[key]))
        return self.names[key]

    def sort(self, s: Sort) -> str:
        """A sort; functions and named types are uninterpreted."""
        if s.head in ("Bool", "Int", "Real"):
            return s.head
        if s.head in ("List", "Pair"):
            return f"({s.head}_ {' '.join(map(self.sort, s.args))})"
        return self.name(s, lambda n: f"(declare-sort {n} 0)")

    def function(self, key: object, domain: Sequence[Sort], result: Sort) -> str:
        """A function symbol."""
        ins, out = " ".join(map(self.sort, domain)), self.sort(result)
        return self.name(key, lambda n: f"(declare-fun {n} ({ins}) {out})")

    def term(self, t: Term) -> str:
        """A term."""
        if t.op == "lit":
            return _literal(t)
        if t.op == "free" or t.op in BINDERS:
            return self.function(t, (), t.sort)
        if t.op == "nil":
            return f"(as nil {self.sort(t.sort)})"
        parts = " ".join(map(self.term, t.args))
        if t.op == "call":
            f = t.args[0].sort
            return f"({self.function(('call', f), (f, *f.domain), f.result)} {parts})"
        if t.op == "const":
            assert isinstance(t.data, Symbol)
            f_name = self.function(t.data, t.data.domain, t.data.result)
            return f"({f_name} {parts})" if parts else f_name
        if t.op == "pair":
            return f"((as pair {self.sort(t.sort)}) {parts})"
        return f"({t.op} {parts})"


def _literal(t: Term) -> str:
    if isinstance(t.data, bool):
        return "true" if t.data else "false"
    assert isinstance(t.data, Fraction)
    point = ".0" if t.sort.head == "Real" else ""
    text = f"{abs(t.data.numerator)}{point}"
    if t.data.denominator != 1:
        text = f"(/ {text} {t.data.denominator}.0)"
    return text if t.data >= 0 else f"(- {text})"


def to_text(hypotheses: Sequence[Term], goal: Term) -> str:
    """The SMT-LIB text of `hypotheses and not goal`."""
    if any(t.loose for t in (*hypotheses, goal)):
        raise ProofError("an obligation has no loose bound variables")
    out = Printer()
    lines = [f"(assert {out.term(h)})" for h in hypotheses]
    lines.append(f"(assert (not {out.term(goal)}))")
    return "\n".join([LISTS, PAIRS, *out.declarations, *lines])


@dataclass
class Session:
    """One run of the prover: seeds, the time limit, known verdicts, counts."""

    seed: int = 0
    limit_ms: int = 20_000
    cache: Path | None = None
    known: dict[str, Verdict] = field(default_factory=dict)
    memo: dict[object, Any] = field(default_factory=dict)
    versions: str = ""
    asked: int = 0
    solver_seconds: float = 0.0


_session: ContextVar[Session | None] = ContextVar("session", default=None)
_default = Session()


def current() -> Session:
    """The session in force."""
    return _session.get() or _default


@contextlib.contextmanager
def session(
    *, seed: int = 0, cache: Path | None = None, limit_ms: int = 20_000
) -> Iterator[Session]:
    """A fresh session; without `cache` it starts from nothing and keeps nothing."""
    new = Session(seed=seed, cache=cache, limit_ms=limit_ms)
    if cache is not None and cache.exists():
        for line in cache.read_text().splitlines():
            key, *verdict = json.loads(line)
            new.known[key] = (verdict[0], verdict[1])
    token = _session.set(new)
    try:
        yield new
    finally:
        _session.reset(token)


def versions() -> str:
    """Both solvers with their versions; one line with the command if missing."""
    now = current()
    if not now.versions:
        try:
            found = [importlib.metadata.version(p) for p in ("z3-solver", "cvc5")]
        except importlib.metadata.PackageNotFoundError:
            raise ProofError(MISSING) from None
        now.versions = f"z3 {found[0]} cvc5 {found[1]}"
    return now.versions


def key_of(text: str) -> str:
    """sha256 of the text, the solver versions and the options."""
    now = current()
    options = f"{versions()} seed {now.seed} limit {now.limit_ms}"
    return hashlib.sha256(f"{text}\n{options}".encode()).hexdigest()


def ask(text: str) -> Verdict:
    """What z3 and cvc5 say about a text; only `unsat` twice is a proof."""
    now = current()
    key = key_of(text)
    if key not in now.known:
        began = time.perf_counter()
        verdict = _z3(text, now), _cvc5(text, now)
        now.solver_seconds += time.perf_counter() - began
        now.asked += 1
        now.known[key] = verdict
        if now.cache is not None and verdict == ("unsat", "unsat"):
            now.cache.parent.mkdir(parents=True, exist_ok=True)
            with now.cache.open("a") as f:
                f.write(json.dumps([key, *verdict]) + "\n")
    return now.known[key]


def _z3(text: str, now: Session) -> str:
    import z3

    solver = z3.Solver()
    solver.set("timeout", now.limit_ms)
    solver.set("random_seed", now.seed)
    try:
        solver.from_string(text)
        return str(solver.check())
    except z3.Z3Exception as e:
        return f"error: {e}"


def _cvc5(text: str, now: Session) -> str:
    import cvc5

    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("tlimit-per", str(now.limit_ms))
    solver.setOption("seed", str(now.seed))
    parser = cvc5.InputParser(solver)
    whole = f"(set-logic ALL)\n{text}\n(check-sat)"
    said = ""
    try:
        parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, whole, "obligation")
        while not (command := parser.nextCommand()).isNull():
            said = command.invoke(solver, parser.getSymbolManager()).strip() or said
    except RuntimeError as e:
        return f"error: {e}"
    return said or "unknown"
