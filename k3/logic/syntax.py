"""Constructors for terms: the vocabulary in which statements are written."""

from collections.abc import Iterable

from k3.logic import terms
from k3.logic.sorts import BOOL, INT, REAL, Sort, list_of
from k3.logic.terms import Number, Term, bind, lift, make


def real(x: Number) -> Term:
    """A real literal."""
    return lift(x, REAL)


def integer(x: int) -> Term:
    """An integer literal."""
    return lift(x, INT)


def var(name: str, sort: Sort) -> Term:
    """A free variable."""
    return make("free", (), name, sort)


def fresh(name: str, sort: Sort) -> Term:
    """A free variable that nothing else uses."""
    return var(f"{name.split('#')[0]}#{next(terms._counter)}", sort)


def eq(a: Term, b: "Term | Number") -> Term:
    """The equation a = b (of statements: a if and only if b)."""
    return make("=", (a, lift(b, a.sort)))


def conj(*parts: Term) -> Term:
    """All of the parts; one part is itself."""
    return parts[0] if len(parts) == 1 else make("and", parts)


def implies(*parts: Term) -> Term:
    """The last part under all the others as premises."""
    out = parts[-1]
    for p in reversed(parts[:-1]):
        out = make("=>", (p, out))
    return out


def ite(c: Term, a: Term, b: "Term | Number") -> Term:
    """a where c holds, else b."""
    return make("ite", (c, a, lift(b, a.sort)))


def forall(variables: Iterable[Term], body: Term) -> Term:
    """For all values of the variables; no variables is the body."""
    vs = tuple(variables)
    return bind("forall", vs, body) if vs else body


def lam(variables: Iterable[Term], body: Term) -> Term:
    """The function of the variables."""
    return bind("lam", variables, body)


def nil(element: Sort) -> Term:
    """The empty list."""
    return make("nil", (), None, list_of(element))


def cons(head: Term, tail: Term) -> Term:
    """A list with one more element in front."""
    return make("cons", (head, tail))


def pair(a: Term, b: Term) -> Term:
    """A pair."""
    return make("pair", (a, b))


def fst(p: Term) -> Term:
    """First of a pair."""
    return make("fst", (p,))


def snd(p: Term) -> Term:
    """Second of a pair."""
    return make("snd", (p,))


def to_real(n: Term) -> Term:
    """An integer as a real."""
    return make("to_real", (n,))


def maximum(a: Term, b: "Term | Number") -> Term:
    """The larger."""
    b = lift(b, a.sort)
    return ite(a <= b, b, a)


def minimum(a: Term, b: "Term | Number") -> Term:
    """The smaller."""
    b = lift(b, a.sort)
    return ite(a <= b, a, b)


def absolute(a: Term) -> Term:
    """The absolute value."""
    return ite(lift(0, a.sort) <= a, a, -a)


TRUE, FALSE = make("lit", (), True, BOOL), make("lit", (), False, BOOL)
