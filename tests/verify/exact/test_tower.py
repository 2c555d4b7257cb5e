"""Field, tower and hash against Python's integers."""

import random
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.errors import RequestError
from k3.verify.exact.field import Field
from k3.verify.exact.tower import CHAINS, Tower

PRIMES = [CHAINS[31][0], CHAINS[31][3], CHAINS[50][0], CHAINS[50][5]]
words = st.integers(0, (1 << 62) - 1)


def is_prime(n):
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for a in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        x = pow(a, d, n)
        if x in (1, n - 1):
            continue
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def test_chains_are_prime_and_halve():
    for chain in CHAINS.values():
        assert all(is_prime(p) for p in chain)
        assert all(2 * q + 1 == p for p, q in pairwise(chain))


@pytest.mark.parametrize("p", PRIMES)
@settings(deadline=None, max_examples=20)
@given(a=words, b=words)
def test_field_is_arithmetic_modulo_p(p, a, b):
    field, x, y = Field(p), a % p, b % p
    s, t = torch.tensor([x]), torch.tensor([y])
    assert field.add(s, t).item() == (x + y) % p
    assert field.sub(s, t).item() == (x - y) % p
    assert field.neg(s).item() == -x % p
    assert field.mul(s, t).item() == x * y % p
    assert field.pow(s, 5).item() == pow(x, 5, p)
    if x:
        assert field.inv(s).item() == pow(x, -1, p)


@pytest.mark.parametrize("p", PRIMES)
def test_matmul_and_sums(p):
    field, rng = Field(p), random.Random(p)
    a = [[rng.randrange(p) for _ in range(70)] for _ in range(3)]
    b = [[rng.randrange(p) for _ in range(2)] for _ in range(70)]
    got = field.matmul(torch.tensor(a), torch.tensor(b)).tolist()
    want = [
        [sum(x * y[j] for x, y in zip(r, b, strict=True)) % p for j in (0, 1)]
        for r in a
    ]
    assert got == want
    long = torch.full((9001,), p - 1)
    assert field.sum(long, 0).item() == -9001 % p
    assert field.cumsum(long, 0)[-1].item() == -9001 % p
    assert field.cumprod(long, 0)[-1].item() == p - 1


@pytest.mark.parametrize("bits", [31, 50])
def test_exp_turns_sums_into_products(bits):
    tower = Tower(bits, 3, seed=4)
    p, q = tower.primes[:2]
    a, b = torch.tensor([3, q - 1, 12345]), torch.tensor([q - 2, 5, 67890])
    both = tower.power(0, tower.fields[1].add(a, b))
    assert both.equal(tower.fields[0].mul(tower.power(0, a), tower.power(0, b)))
    assert tower.power(0, a).tolist() == [pow(tower.base[0], x, p) for x in a.tolist()]


def test_hash_is_one_function_on_both_engines():
    tower, x = Tower(50, 3, 1), torch.tensor([0, 1, 947627122041598])
    rows = zip(*(c.tolist() for c in tower.oracle("f", x)), strict=True)
    assert list(rows) == [tower.oracle_int("f", v) for v in x.tolist()]
    assert tower.oracle_int("f", 1) != tower.oracle_int("g", 1)


def test_roots_square_back():
    from fractions import Fraction

    tower = Tower(50, 3, 0)
    for f in (Fraction(192), Fraction(1, 18), Fraction(3, 7)):
        root, value = tower.root(f), tower.rational(f)
        squares = [r * r % p for r, p in zip(root, tower.primes, strict=True)]
        assert squares == list(value)


def test_unknown_towers_are_refused():
    with pytest.raises(RequestError, match="bits=31 with 2"):
        Tower(64)
    with pytest.raises(RequestError, match="levels=1"):
        Tower(50, 1)
