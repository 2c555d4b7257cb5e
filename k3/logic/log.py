"""The proof log: every term, definition and inference behind some theorems, as text.

One JSON object a line: sorts and terms once each, then declarations, definitions and
steps in order, then the theorems. `check` reads nothing else.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from k3.logic.constants import DECLARED, DEFINED
from k3.logic.kernel import Thm
from k3.logic.sorts import Sort
from k3.logic.terms import BINDERS, Symbol, Term


def sort_tree(s: Sort) -> list[Any]:
    """A sort as nested lists."""
    return [s.head, *([s.name] if s.name else map(sort_tree, s.args))]


def symbol_tree(s: Symbol) -> list[Any]:
    """A symbol: name, argument sorts, result sort."""
    return [s.name, [sort_tree(d) for d in s.domain], sort_tree(s.result)]


def _data(t: Term) -> Any:
    if isinstance(t.data, Symbol):
        return symbol_tree(t.data)
    if t.op in BINDERS:
        assert isinstance(t.data, tuple)
        return [sort_tree(s) for s in t.data]
    if isinstance(t.data, Fraction):
        return str(t.data)
    return list(t.data) if isinstance(t.data, tuple) else t.data


def digest(t: Term) -> str:
    """What a statement is, independent of the run: sha256 of its tree."""
    return _digest(t, {})


def _digest(t: Term, memo: dict[Term, str]) -> str:
    if t not in memo:
        sort = sort_tree(t.sort) if not t.args else None
        tree = [t.op, _data(t), sort, [_digest(a, memo) for a in t.args]]
        memo[t] = hashlib.sha256(json.dumps(tree).encode()).hexdigest()
    return memo[t]


class Writer:
    """Numbers terms and steps in the order in which they are needed."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.terms: dict[Term, int] = {}
        self.steps: dict[Thm, int] = {}
        self.constants: dict[str, None] = {}

    def term(self, t: Term) -> int:
        """The number of a term; writes it when it is new."""
        if t not in self.terms:
            if isinstance(t.data, Symbol):
                self.constant(t.data.name)
            args = [self.term(a) for a in t.args]
            if t in self.terms:  # the law of its constant has written it
                return self.terms[t]
            line: dict[str, Any] = {"term": len(self.terms), "op": t.op, "args": args}
            if t.data is not None:
                line["data"] = _data(t)
            if not t.args and t.op != "const":
                line["sort"] = sort_tree(t.sort)
            self.terms[t] = len(self.terms)
            self.lines.append(line)
        return self.terms[t]

    def constant(self, name: str) -> None:
        """Write the meaning of a constant before its first use."""
        if name in self.constants:
            return
        self.constants[name] = None
        if name in DECLARED:
            self.lines.append({"declare": symbol_tree(DECLARED[name])})
        for th in DEFINED[name][1] if name in DEFINED else ():
            self.step(th)

    def step(self, th: Thm) -> int:
        """The number of a step; writes it and what it needs when it is new."""
        stack = [th]
        while stack:
            now = stack[-1]
            missing = [p for p in now.premises if p not in self.steps]
            if now in self.steps or not missing:
                stack.pop()
                if now not in self.steps:
                    self._write(now)
            else:
                stack += missing
        return self.steps[th]

    def _write(self, th: Thm) -> None:
        line = {
            "rule": th.rule,
            "from": [self.steps[p] for p in th.premises],
            "data": [self._part(d) for d in th.data],
            "hyps": sorted(self.term(h) for h in th.hyps),
            "concl": self.term(th.concl),
            "axioms": sorted([n, self.term(t)] for n, t in th.axioms),
        }
        if th not in self.steps:  # a definition writes itself when it is first named
            self.steps[th] = len(self.steps)
            self.lines.append({"step": self.steps[th], **line})

    def _part(self, d: Any) -> Any:
        if isinstance(d, Term):
            return self.term(d)
        if isinstance(d, Symbol):
            return symbol_tree(d)
        if isinstance(d, Fraction):
            return str(d)
        return [self._part(x) for x in d] if isinstance(d, tuple) else d


def write(theorems: Mapping[str, Thm]) -> Iterator[str]:
    """The log of some named theorems, line by line."""
    writer = Writer()
    for name, th in theorems.items():
        writer.lines.append({"theorem": name, "step": writer.step(th)})
    return (json.dumps(line, ensure_ascii=False) for line in writer.lines)


def level(th: Thm) -> str:
    """K: kernel rules and certificates only; KS: with obligations for two solvers."""
    return "KS" if any(s.rule == "ground" for s in steps(th)) else "K"


def steps(th: Thm) -> Iterator[Thm]:
    """Every inference behind a theorem, each once."""
    seen, stack = {th}, [th]
    while stack:
        now = stack.pop()
        yield now
        for p in now.premises:
            if p not in seen:
                seen.add(p)
                stack.append(p)
