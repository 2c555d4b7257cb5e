"""The spec over symbols: formulas that hold for every input at these sizes."""

import sympy
from readings import symbol

from k3.spec import context, kda, mla, norm, situ


def test_update_is_equation_1():
    S, k, v = symbol.array("S", 2, 2), symbol.array("k", 2), symbol.array("v", 2)
    alpha, beta = symbol.array("a", 2), sympy.Symbol("b")
    M = sympy.eye(2) - beta * sympy.Matrix(k) * sympy.Matrix(k).T
    wanted = M * sympy.diag(*alpha) * sympy.Matrix(S)
    wanted += beta * sympy.Matrix(k) * sympy.Matrix(v).T
    got = sympy.Matrix(kda.update(S, k, v, alpha, beta))
    assert symbol.zero(got - wanted)
    summary = context.token(k, v, alpha, beta)
    assert symbol.zero(context.act(summary, S) - kda.update(S, k, v, alpha, beta))


def test_two_tokens_by_chunk():
    S, q, k = (
        symbol.array(n, *s)
        for n, s in zip("Sqk", [(2, 1), (2, 2), (2, 2)], strict=True)
    )
    v, alpha, beta = (
        symbol.array("v", 2, 1),
        symbol.array("a", 2, 2),
        symbol.array("b", 2),
    )
    one = kda.recurrent(S, q, k, v, alpha=alpha, beta=beta)
    two = kda.chunk(S, q, k, v, alpha=alpha, beta=beta)
    assert symbol.zero(one[0] - two[0])
    assert symbol.zero(one[1] - two[1])


def test_absorbed_is_expanded():
    args = [
        symbol.array(n, *s)
        for n, s in {"q": (2,), "W": (2, 1), "l": (2, 1), "s": (2, 1)}.items()
    ]
    gap = mla.expanded(*args) - mla.absorbed(*args)
    assert all(sympy.simplify(x) == 0 for x in gap)


def test_soft_cap_series_is_equation_18():
    z, c = sympy.symbols("z c", positive=True)
    series = sympy.series(c * sympy.tanh(z / c), z, 0, 5).removeO()
    assert sympy.expand(series - (z - situ.cap_error(z, 1) / c**2)) == 0
    half = sympy.Rational(1, 2)
    assert situ.situ(sympy.Integer(0), z).subs(z, half) == 0


def test_norm_of_a_scaled_vector():
    x = symbol.array("x", 3)
    scale = sympy.Symbol("s", positive=True)
    gap = norm.unit_rms(x * scale, 0) - norm.unit_rms(x, 0)
    assert all(sympy.simplify(entry) == 0 for entry in gap)
