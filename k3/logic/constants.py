"""Constants and their meaning: declarations, axioms, well-founded definitions.

Trusted. A definition may use only constants that already have a meaning and, when it
is recursive, itself on the smaller argument; so definitions cannot be circular.
"""

from collections.abc import Sequence

from k3.logic.kernel import Thm, conclude, statement
from k3.logic.signature import refuse
from k3.logic.sorts import INT, Sort
from k3.logic.syntax import cons, eq, forall, implies, integer, nil
from k3.logic.terms import Symbol, Term, bind, make

DEFINED: dict[str, tuple[Symbol, tuple[Thm, ...], object]] = {}
DECLARED: dict[str, Symbol] = {}


def declare(name: str, *sorts: Sort) -> Symbol:
    """A constant about which only axioms speak; it can never be defined."""
    symbol = Symbol(name, sorts[:-1], sorts[-1])
    if name in DEFINED or DECLARED.get(name, symbol) != symbol:
        refuse(f"{name} already has a meaning")
    DECLARED[name] = symbol
    return symbol


def axiom(name: str, phi: Term) -> Thm:
    """A closed statement taken as true, and named in everything that uses it."""
    if statement(phi).free:
        refuse("an axiom has no free variables")
    _known_constants(phi, None)
    return conclude("axiom", phi, (), (name, phi))


def define(name: str, params: Sequence[Term], body: Term) -> Symbol:
    """A constant by an explicit equation without recursion."""
    symbol = Symbol(name, tuple(p.sort for p in params), body.sort)
    key = ("define", bind("lam", params, body) if params else body)
    if _again(symbol, key):
        return symbol
    if not body.free <= set(params) or body.loose:
        refuse(f"the body of {name} speaks of more than its parameters")
    _known_constants(body, None)
    law = forall(params, eq(symbol(*params), body))
    th = conclude("define", law, (), (symbol, tuple(params), body))
    DEFINED[name] = (symbol, (th,), key)
    return symbol


def define_recursive(
    symbol: Symbol, params: Sequence[Term], on: int, base: Term, step: Term
) -> Symbol:
    """A constant by structural recursion on its parameter number `on`.

    A list parameter `x` is split as hd/tail variables named by `recursion_variables`;
    the step may call the symbol on the tail only. An integer parameter n has a base
    at 0 and a step for n+1 that may call the symbol at n only.
    """
    x = params[on]
    parts = recursion_variables(x)
    others = [p for p in params if p is not x]
    whole = [*parts, *others]
    key = ("recursive", on, bind("lam", params, base), bind("lam", whole, step))
    if _again(symbol, key):
        return symbol
    if symbol.domain != tuple(p.sort for p in params) or symbol.result != base.sort:
        refuse(f"{symbol.name} is declared with other sorts than it is defined with")
    if (
        not base.free <= set(others)
        or not step.free <= set(whole)
        or len({*params, *parts}) != len(params) + len(parts)
    ):
        refuse(f"{symbol.name} speaks of more than its parameters")
    _known_constants(base, None)
    _known_constants(step, (symbol, on, parts[-1]))
    laws = recursion_laws(symbol, params, on, base, step)
    data = (symbol, tuple(params), on, base, step)
    ths = tuple(
        conclude("define_recursive", law, (), (*data, i)) for i, law in enumerate(laws)
    )
    DEFINED[symbol.name] = (symbol, ths, key)
    return symbol


def recursion_variables(x: Term) -> tuple[Term, ...]:
    """The variables of the step: head and tail of a list, or the predecessor."""
    name = str(x.data)
    if x.sort.head == "List":
        h = make("free", (), f"{name}.hd", x.sort.args[0])
        return h, make("free", (), f"{name}.tl", x.sort)
    if x.sort != INT:
        refuse("recursion is over a list or an integer")
    return (make("free", (), f"{name}.pred", INT),)


def recursion_laws(
    symbol: Symbol, params: Sequence[Term], on: int, base: Term, step: Term
) -> tuple[Term, Term]:
    """The two equations that a recursive definition introduces."""
    x = params[on]
    parts = recursion_variables(x)
    others = [p for p in params if p is not x]
    numeric = x.sort == INT
    zero = integer(0) if numeric else nil(x.sort.args[0])
    next_ = parts[0] + 1 if numeric else cons(*parts)
    at = [[v if p is x else p for p in params] for v in (zero, next_)]
    more = eq(symbol(*at[1]), step)
    if numeric:
        more = implies(integer(0) <= parts[0], more)
    return forall(others, eq(symbol(*at[0]), base)), forall([*parts, *others], more)


def laws(symbol: Symbol) -> tuple[Thm, ...]:
    """The defining equations of a constant."""
    if symbol.name not in DEFINED or DEFINED[symbol.name][0] != symbol:
        refuse(f"{symbol.name} is not defined")
    return DEFINED[symbol.name][1]


def _again(symbol: Symbol, key: object) -> bool:
    if symbol.name in DECLARED:
        refuse(f"{symbol.name} is declared and cannot be defined")
    if symbol.name not in DEFINED:
        return False
    if DEFINED[symbol.name][0] != symbol or DEFINED[symbol.name][2] != key:
        refuse(f"{symbol.name} already has another definition")
    return True


def _known_constants(t: Term, allowed: tuple[Symbol, int, Term] | None) -> None:
    if t.op == "const":
        assert isinstance(t.data, Symbol)
        known = DECLARED.get(t.data.name) or DEFINED.get(t.data.name, (None,))[0]
        recursive = allowed is not None and t.data == allowed[0]
        if recursive and allowed is not None and t.args[allowed[1]] is not allowed[2]:
            refuse(f"{t.data.name} calls itself on something that is not smaller")
        if not recursive and known != t.data:
            refuse(f"{t.data.name} has no meaning yet")
    for a in t.args:
        _known_constants(a, allowed)
