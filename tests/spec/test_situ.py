import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from readings.carriers import same

from k3.spec import situ


def test_reads_alike(rng):
    gate, up = rng.normal(size=5) * 20, rng.normal(size=5) * 100
    same(situ.situ, gate, up)
    same(situ.soft_cap, gate, 4)
    weights = {f"{n}_proj.weight": rng.normal(size=(5, 3)) for n in ("gate", "up")}
    weights["down_proj.weight"] = rng.normal(size=(3, 5))
    same(situ.mlp, weights, rng.normal(size=3), beta=2.5, linear=7)
    inputs = [torch.tensor(x, requires_grad=True) for x in (gate, up)]
    assert torch.autograd.gradcheck(situ.situ, inputs)


def test_expert_output_bound(rng):
    down = rng.normal(size=(4, 5))
    big = rng.normal(size=(2, 5, 3)) * 100
    y = situ.expert(big[0], big[1], down, rng.normal(size=3))
    assert (abs(y) <= situ.bound() * abs(down).sum(1)).all()


@settings(deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_bound_holds(gate, up):
    assert abs(situ.situ(gate, up)) <= situ.bound() == 100


@settings(deadline=None)
@given(st.floats(-30, 30))
def test_cap_is_near_the_identity(z):
    gap = abs(situ.soft_cap(z, 4) - z)
    assert gap <= situ.cap_error(z, 4) * (1 + 1e-9) + 1e-15


def test_cap_error_is_exact_on_fractions():
    same(situ.cap_error, np.array([-2.0, 0.5, 3.0]), 4, exact=True)
