"""The operations and their typing rules, over sorts alone. Trusted."""

from collections.abc import Callable
from fractions import Fraction
from typing import NoReturn

from k3.errors import ProofError
from k3.logic.sorts import BOOL, INT, REAL, Sort, list_of, pair_of

Sorts = tuple[Sort, ...]
LEAVES = ("free", "bound", "lit", "nil")


def refuse(why: str) -> NoReturn:
    """Raise ProofError."""
    raise ProofError(why)


def _alike(args: Sorts, count: int, among: Sorts) -> Sort:
    sort = args[0] if args else BOOL
    if len(args) != count or sort not in among or any(a != sort for a in args):
        refuse(f"sorts do not fit: {', '.join(map(str, args))}")
    return sort


def logical(args: Sorts) -> Sort:
    """Statements in, a statement out."""
    if not args or any(a != BOOL for a in args):
        refuse("a connective joins statements only")
    return BOOL


def _equal(args: Sorts) -> Sort:
    _alike(args, 2, args[:1])
    return BOOL


def _compare(args: Sorts) -> Sort:
    _alike(args, 2, (INT, REAL))
    return BOOL


def _ite(args: Sorts) -> Sort:
    if len(args) != 3 or args[0] != BOOL:
        refuse("ite takes a statement and two values")
    return _alike(args[1:], 2, args[1:2])


def _cons(args: Sorts) -> Sort:
    if len(args) != 2 or args[1] != list_of(args[0]):
        refuse("cons takes an element and a list of the same sort")
    return args[1]


def _pair(args: Sorts) -> Sort:
    if len(args) != 2:
        refuse("pair takes two values")
    return pair_of(args[0], args[1])


def _to_real(args: Sorts) -> Sort:
    _alike(args, 1, (INT,))
    return REAL


def _call(args: Sorts) -> Sort:
    f = args[0] if args else BOOL
    if f.head != "Fun" or f.domain != args[1:]:
        refuse(f"a {f} is not applied to {[str(a) for a in args[1:]]}")
    return f.result


def _part(head: str, pick: Callable[[Sort], Sort]) -> Callable[[Sorts], Sort]:
    def rule(args: Sorts) -> Sort:
        if len(args) != 1 or args[0].head != head:
            refuse(f"a part of a {head} was taken from {[str(a) for a in args]}")
        return pick(args[0])

    return rule


RULES: dict[str, Callable[[Sorts], Sort]] = {
    "=": _equal,
    "<=": _compare,
    "<": _compare,
    "+": lambda args: _alike(args, 2, (INT, REAL)),
    "-": lambda args: _alike(args, 2, (INT, REAL)),
    "*": lambda args: _alike(args, 2, (INT, REAL)),
    "/": lambda args: _alike(args, 2, (REAL,)),
    "not": lambda args: _alike(args, 1, (BOOL,)),
    "and": logical,
    "or": logical,
    "=>": lambda args: _alike(args, 2, (BOOL,)),
    "ite": _ite,
    "cons": _cons,
    "hd": _part("List", lambda s: s.args[0]),
    "tl": _part("List", lambda s: s),
    "pair": _pair,
    "fst": _part("Pair", lambda s: s.args[0]),
    "snd": _part("Pair", lambda s: s.args[1]),
    "to_real": _to_real,
    "call": _call,
}


def leaf(op: str, parts: int, data: object, sort: Sort | None) -> Sort:
    """The sort of a leaf: a variable, a literal or the empty list."""
    if parts or type(sort) is not Sort:
        refuse(f"{op} is a leaf with a sort")
    if op == "free" and not (type(data) is str and data):
        refuse("a free variable has a name")
    if op == "nil" and (sort.head != "List" or data is not None):
        refuse("nil has a list sort")
    if op == "bound":
        whole = isinstance(data, tuple) and len(data) == 2
        if not whole or any(type(k) is not int or k < 0 for k in data):  # type: ignore[attr-defined]
            refuse("a bound variable is a level and a position")
    if op == "lit":
        exact = type(data) is bool if sort == BOOL else type(data) is Fraction
        if not exact or sort not in (BOOL, INT, REAL):
            refuse(f"{data} is not a {sort}")
        if sort == INT and isinstance(data, Fraction) and data.denominator != 1:
            refuse(f"{data} is not an integer")
    return sort
