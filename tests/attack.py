"""What attacks on the kernel share: variables, a sum, and how a refusal is seen."""

import contextlib
import re

import pytest

from k3.errors import ProofError
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, fun, list_of
from k3.logic.syntax import real, var
from k3.logic.terms import Symbol

x, y = var("x", INT), var("y", INT)
a, b = var("a", REAL), var("b", REAL)
xs = var("xs", list_of(INT))
f = var("f", fun(INT, REAL))
n = var("n", INT)


@contextlib.contextmanager
def refused(what: str = ""):
    """Refused by the kernel, or already by the run-time type checks of the tests."""
    with pytest.raises((ProofError, TypeError)) as found:
        yield
    if isinstance(found.value, ProofError):
        assert re.search(what, str(found.value)), found.value


def sigma() -> Symbol:
    return recursive(
        "attack.sum", [f, n], REAL, lambda f: real(0), lambda n, rec, f: rec(f) + f(n)
    )
