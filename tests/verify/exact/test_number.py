"""The two engines against each other, and constants on both."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.spec import ops
from k3.verify.exact.mode import ExactMode
from k3.verify.exact.number import Reference
from k3.verify.exact.pairs import channel, kda, mla
from k3.verify.exact.run import values
from k3.verify.exact.tower import Tower

# Each as (torch, ops): the same function of x and y [2 3]. tanh keeps shadows small:
# one below -1e30 is a mask.
STEPS = {
    "add": (lambda x, y: x + y, lambda x, y: x + y),
    "mul": (lambda x, y: torch.tanh(x) * y, lambda x, y: ops.tanh(x) * y),
    "divide": (
        lambda x, y: x / (torch.tanh(y) + 2),
        lambda x, y: x / (ops.tanh(y) + 2),
    ),
    "exp": (
        lambda x, y: (torch.tanh(x) * 2).exp(),
        lambda x, y: ops.exp(ops.tanh(x) * 2),
    ),
    "tanh": (lambda x, y: torch.tanh(x) - y, lambda x, y: ops.tanh(x) - y),
    "log": (
        # tanh: the reference does not know the exponential of a logarithm.
        lambda x, y: torch.tanh(torch.log(y.exp() + 1) - x),
        lambda x, y: ops.tanh(ops.softplus(y) - x),
    ),
    "softmax": (lambda x, y: x.softmax(-1) * y, lambda x, y: ops.softmax(x) * y),
    "matmul": (
        lambda x, y: torch.tanh(x) @ y.T @ torch.tanh(y),
        lambda x, y: ops.tanh(x) @ y.T @ ops.tanh(y),
    ),
    "flip": (lambda x, y: x[:, [2, 1, 0]] + y[:1], lambda x, y: x[:, ::-1] + y[:1]),
    "mean": (
        lambda x, y: x - y.mean(-1, True),
        lambda x, y: x - ops.mean(y, keep=True),
    ),
}


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=7), st.integers(0, 9)
)
def test_random_programs_agree(names, seed):
    tower = Tower(31, 4, seed)
    mode, reference = ExactMode(tower), Reference(tower)
    shadow = np.linspace(-1, 1, 6).reshape(2, 3)
    x, u = mode.draw("x", torch.tensor(shadow)), reference.draw("x", shadow)
    y, v = mode.draw("y", torch.tensor(shadow)), reference.draw("y", shadow)
    for name in names:
        running, spec = STEPS[name]
        with mode, torch.no_grad(), np.errstate(all="ignore"):
            x, y, u, v = running(x, y), x, spec(u, v), u
    got, want = values(x, tower), values(u, tower)
    assert (got[0] == want[0]).all()
    np.testing.assert_allclose(got[1], want[1], rtol=1e-9, atol=1e-9)


def test_constants_stay_fractions():
    run = Reference(Tower(50, 3, 0))
    third = run.constant([1, 2]) / 3 + Fraction(1, 6)
    assert list(third.q) == [Fraction(1, 2), Fraction(5, 6)]
    assert run.constant(1e-5).q[()] == Fraction(1, 100_000)
    assert ops.sqrt(run.constant(2)).c[0].item() ** 2 % run.tower.primes[0] == 2


def test_depth_is_spent_by_exp_and_noted_when_none_is_left():
    run = Reference(Tower(50, 2, 0))
    x = run.draw("x", np.zeros(3))
    assert [x.depth, x.exp().depth] == [2, 1]
    again = x.exp().exp()
    assert list(run.notes) == ["exp of a value without levels left: uninterpreted here"]
    assert again.depth == 1


SMALL = {
    "kda": lambda: kda.memory("chunk", (5,), K=3, V=2),
    "mla": lambda: mla.absorbed(2, 4),
    "depth": channel.mix,
    "situ": channel.situ_pair,
}


@pytest.mark.parametrize("name", SMALL)
def test_no_false_alarm_in_fifty_seeds(name):
    report = SMALL[name]().check(seeds=50, bits=31, order="hash", covering=False)
    assert report, report
