"""Laws that the normal form decides, and near misses that it keeps apart."""

from fractions import Fraction

import pytest

from k3.graph import primitives as p
from k3.graph.dims import plus, times
from k3.graph.symbolic import same
from k3.graph.term import Block, constant, spread

x, y, z = (p.real(n, "D") for n in "xyz")
A, B = p.real("A", "D, D"), p.real("B", "D, D")
W = p.real("W", "D, F")
one = constant(1)


def block(term):
    return Block("law", "", {"y": term})


def ones(dim):
    return spread(one, (dim,))


EQUAL = {
    "product of sums": ((x + y) * (x - y), x * x - y * y),
    "matrix product": (
        p.contract("ij,j->i", p.matmul(A, B), x),
        p.contract("ij,j->i", A, p.contract("ij,j->i", B, x)),
    ),
    "order of sums": (
        p.contract("ij,jk,k->", A, B, x),
        p.contract("k,jk,ij->", x, B, A),
    ),
    "names of sums": (
        p.contract("i,j->", x, x),
        p.total(x, 0) * p.total(x, 0),
    ),
    "exp of a sum": (p.exp(x + 2 * y), p.exp(y) * p.exp(x) * p.exp(y)),
    "exp of a difference": (p.exp(x - y), p.exp(x) / p.exp(y)),
    "softmax by hand": (
        p.softmax(x),
        p.exp(x) / spread(p.total(p.exp(x), 0), ("D",)),
    ),
    "softmax shifted": (
        p.softmax(x),
        p.softmax(x + spread(p.total(y, 0), ("D",))),
    ),
    "mean of ones": (p.mean(ones("D"), 0), one),
    "sum of ones": (p.total(ones("D"), 0), p.size("D")),
    "rms by hand": (
        p.unit_rms(x, Fraction(1, 7)),
        x
        / spread(
            p.sqrt(p.contract("d,d->", x, x) / p.size("D") + constant(Fraction(1, 7))),
            ("D",),
        ),
    ),
    "concat and sum": (p.total(p.concat(x, y), 0), p.total(x, 0) + p.total(y, 0)),
    "concat and cut": (p.cut(p.concat(x, y, z), "D", plus("D", "D")), p.concat(y, z)),
    "flip twice": (p.flip(p.flip(x)), x),
    "reshape": (p.reshape(p.flatten(W), "D", "F"), W),
    "transpose of a flat axis": (
        p.total(p.reshape(W, times("D", "F")), 0),
        p.total(p.permute(W, 1, 0), 0, 1),
    ),
    "stack and pick": (p.pick(p.stack(x, y, z), 1), y),
    "two sums of fixed size": (
        p.total(p.stack(x, y), 0),
        x + y,
    ),
}
DIFFERENT = {
    "transpose": (p.contract("ij,j->i", A, x), p.contract("ji,j->i", A, x)),
    "order of matrices": (p.matmul(A, B), p.matmul(B, A)),
    "square of a sum": (p.total(x, 0) * p.total(x, 0), p.contract("i,i->", x, x)),
    "exp of a product": (p.exp(x * y), p.exp(x) * p.exp(y)),
    "eps": (p.unit_rms(x, 1e-5), p.unit_rms(x, 1e-6)),
    "l2 and rms": (p.l2_norm(x, 1), p.unit_rms(x, 1)),
    "flip": (p.flip(x), x),
    "parts exchanged": (p.concat(x, y), p.concat(y, x)),
    "gelu": (p.gelu(x, "tanh"), p.gelu(x, "erf")),
    "sizes": (p.size("D") * x, p.size("F") * x),
    "a half": (x / 2, x / 3),
    "one row": (p.pick(p.stack(x, y), 0), y),
}


@pytest.mark.parametrize("name", EQUAL)
def test_laws(name):
    one, other = EQUAL[name]
    assert same(block(one), block(other)).equal is True


@pytest.mark.parametrize("name", DIFFERENT)
def test_near_misses(name):
    one, other = DIFFERENT[name]
    assert same(block(one), block(other)).equal is False


def test_what_is_not_followed_is_undecided():
    chosen = p.gather(x, p.argsort(x))
    verdict = same(block(chosen), block(chosen))
    assert verdict.equal is None
    assert "argsort" in verdict.why
