"""Counterexamples: a statement evaluated in random finite models, exactly.

Runs before every proof and whenever one fails. Values are Python integers,
fractions, tuples and finite function tables; exp, log and sqrt are enclosed by
rational intervals, so that what is reported false is false.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from k3.logic import constants, interval
from k3.logic.interval import Interval, Undecided
from k3.logic.match import opened
from k3.logic.models import NAMED_SIZE as NAMED_SIZE
from k3.logic.models import Given, plain
from k3.logic.models import Table as Table
from k3.logic.models import value as value
from k3.logic.show import text
from k3.logic.sorts import Sort
from k3.logic.terms import Symbol, Term

MEANINGS: dict[str, Callable[..., Any]] = {
    "exp": interval.exp,
    "log": interval.log,
    "sqrt": interval.sqrt,
}
Env = Mapping[Term, Any]


@dataclass(frozen=True)
class Counterexample:
    """Inputs at which the statement is false, and what both sides are there."""

    inputs: dict[str, str]
    left: str
    right: str
    conclusion: str

    def __str__(self) -> str:
        given = ", ".join(f"{k} = {v}" for k, v in self.inputs.items())
        sides = f": {self.left} against {self.right}" if self.right else ""
        at = f"{given}: " if given else ""
        return f"{at}{self.conclusion} is false{sides}"


def falsify(
    phi: Term,
    *,
    tries: int = 300,
    seed: int = 0,
    given: Mapping[str, Any] | None = None,
) -> Counterexample | None:
    """A counterexample to a closed statement, or None; `given` fixes inputs by name."""
    for n in range(tries):
        rng = random.Random(f"{seed} {n}")
        found = _attempt(phi, rng, 1 + n // 60, dict(given or {}))
        if found is not None:
            return found
    return None


def _attempt(
    phi: Term, rng: random.Random, size: int, given: dict[str, Any]
) -> Counterexample | None:
    env: dict[Term, Any] = {}
    fixed = {k: Given(x) if callable(x) else x for k, x in given.items()}
    try:
        while phi.op in ("forall", "=>"):
            if phi.op == "=>":
                if not evaluate(phi.args[0], env):
                    return None
                phi = phi.args[1]
                continue
            vs, phi = opened(phi)
            for v in vs:
                made_up = value(v.sort, rng, size)
                env[v] = fixed.get(str(v.data).split("#")[0], made_up)
        for part in phi.args if phi.op == "and" else (phi,):
            if not evaluate(part, env):
                return _report(part, env)
    except (Undecided, RecursionError):
        pass
    return None


def _report(part: Term, env: Env) -> Counterexample:
    sides = ["", ""]
    if part.op in ("=", "<=", "<"):
        sides = [plain(evaluate(a, env)) for a in part.args]
    inputs = {str(v.data).split("#")[0]: plain(x) for v, x in env.items()}
    return Counterexample(inputs, sides[0], sides[1], text(part))


def evaluate(t: Term, env: Env, stack: tuple[tuple[Any, ...], ...] = ()) -> Any:
    """The value of a term in a model."""
    return _value(t, env, stack, {})


def _value(
    t: Term, env: Env, stack: tuple[tuple[Any, ...], ...], memo: dict[Term, Any]
) -> Any:
    """Shared parts once: otherwise a recursion used twice is exponential."""
    if t not in memo:
        memo[t] = _fresh_value(t, env, stack, memo)
    return memo[t]


def _fresh_value(
    t: Term, env: Env, stack: tuple[tuple[Any, ...], ...], memo: dict[Term, Any]
) -> Any:
    if t.op in ("free", "lit", "nil", "bound"):
        return _leaf(t, env, stack)
    if t.op == "lam":
        return lambda *xs: evaluate(t.args[0], env, (xs, *stack))
    if t.op == "forall":
        return _for_all(t, env, stack)
    if t.op in ("ite", "and", "or", "=>"):
        return _lazy(t, lambda a: _value(a, env, stack, memo))
    values = [_value(a, env, stack, memo) for a in t.args]
    if t.op == "const":
        assert isinstance(t.data, Symbol)
        return call(t.data, values)
    return OPERATIONS[t.op](*values)


def _leaf(t: Term, env: Env, stack: tuple[tuple[Any, ...], ...]) -> Any:
    if t.op == "nil":
        return ()
    if t.op == "free":
        return env[t]
    if t.op == "bound":
        assert isinstance(t.data, tuple)
        return stack[t.data[0]][t.data[1]]
    return int(t.data) if t.sort.head == "Int" else t.data  # type: ignore[call-overload]


def _lazy(t: Term, at: Callable[[Term], Any]) -> Any:
    if t.op == "ite":
        return at(t.args[1] if at(t.args[0]) else t.args[2])
    if t.op == "=>":
        return not at(t.args[0]) or at(t.args[1])
    return (all if t.op == "and" else any)(at(a) for a in t.args)


def _for_all(t: Term, env: Env, stack: tuple[tuple[Any, ...], ...]) -> bool:
    """Exact over named sorts; over infinite ones only a violation is certain."""
    assert isinstance(t.data, tuple)
    finite = all(s.head in ("Named", "Bool") for s in t.data)
    for xs in product(*(_samples(s) for s in t.data)):
        if not evaluate(t.args[0], env, (xs, *stack)):
            return False
    if not finite:
        raise Undecided
    return True


def _samples(s: Sort) -> Iterator[Any]:
    if s.head == "Named":
        return iter([f"{s.name}{i}" for i in range(NAMED_SIZE)])
    if s.head == "Bool":
        return iter([False, True])
    rng = random.Random(0)
    return iter([value(s, rng, 2) for _ in range(8)])


def call(symbol: Symbol, values: list[Any]) -> Any:
    """A constant at values, by its meaning or its definition."""
    if symbol.name in MEANINGS:
        return MEANINGS[symbol.name](*values)
    laws = constants.laws(symbol)
    if laws[0].rule == "define":
        _, params, body = laws[0].data
        return evaluate(body, dict(zip(params, values, strict=True)))
    _, params, on, base, step, _ = laws[0].data
    x = values[on]
    env = dict(zip(params, values, strict=True))
    if isinstance(x, int) and x < 0:
        raise Undecided
    if not x:
        return evaluate(base, env)
    smaller = constants.recursion_variables(params[on])
    env.update(
        zip(smaller, [x[0], x[1:]] if isinstance(x, tuple) else [x - 1], strict=True)
    )
    return evaluate(step, env)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Interval) or isinstance(b, Interval):
        x, y = interval.enclose(a), interval.enclose(b)
        if x.high < y.low or y.high < x.low:
            return False
        raise Undecided
    if callable(a) or callable(b):
        raise Undecided
    return bool(a == b)


def _less(a: Any, b: Any, *, or_equal: bool) -> bool:
    if not isinstance(a, Interval) and not isinstance(b, Interval):
        return bool(a <= b if or_equal else a < b)
    x, y = interval.enclose(a), interval.enclose(b)
    if x.high < y.low:
        return True
    if y.high < x.low:
        return False
    raise Undecided


def _arithmetic(op: str) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        if isinstance(b, Interval) and not isinstance(a, Interval):
            a = interval.enclose(a)
        if op == "/":
            if isinstance(b, Fraction) and not b:
                raise Undecided
            return a / b
        return a + b if op == "+" else a - b if op == "-" else a * b

    return apply


def _first(xs: tuple[Any, ...]) -> Any:
    if not xs:
        raise Undecided
    return xs[0]


def _rest(xs: tuple[Any, ...]) -> Any:
    if not xs:
        raise Undecided
    return xs[1:]


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{op: _arithmetic(op) for op in "+-*/"},
    "=": _equal,
    "<=": lambda a, b: _less(a, b, or_equal=True),
    "<": lambda a, b: _less(a, b, or_equal=False),
    "not": lambda a: not a,
    "cons": lambda h, t: (h, *t),
    "hd": _first,
    "tl": _rest,
    "pair": lambda a, b: (a, b),
    "fst": lambda p: p[0],
    "snd": lambda p: p[1],
    "to_real": Fraction,
    "call": lambda f, *xs: f(*xs),
}
