"""The rounding model, and whether this machine's library functions keep to it."""

import pytest
import torch
import torch.nn.functional as F

from k3.errors import RequestError
from k3.verify.enclose.rounding import Rounding, gamma

FUNCTIONS = {
    "exp": torch.exp,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 1e-6),
    "silu": F.silu,
    "log_sum_exp": lambda x: torch.logaddexp(x, x + 1).abs() + 50,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_library_keeps_to_its_ulps(name):
    x = torch.linspace(-80, 80, 20011, dtype=torch.float32)
    got, want = FUNCTIONS[name](x).double(), FUNCTIONS[name](x.double())
    allowed = Rounding().library(torch.float32) + 2.0**-24
    assert ((got - want).abs() <= allowed * want.abs() + 2.0**-126).all()


def test_units_by_dtype():
    model = Rounding()
    assert model.unit(torch.bfloat16) == 2.0**-8
    assert model.wide(torch.bfloat16) == 2.0**-24
    assert Rounding(declared=False).unit(torch.bfloat16) == 2.0**-53
    assert Rounding(ulp=8).library(torch.float32) == 2 * model.library(torch.float32)


def test_gamma_ends_where_it_means_nothing():
    assert gamma(2, 0.25) == 1.0
    assert gamma(4, 0.25) == float("inf")


@pytest.mark.parametrize("ulp", [0, -1, 1.5, True, "4"])
def test_a_wrong_accuracy_is_refused(ulp):
    with pytest.raises(RequestError, match="ulp is the accuracy of library functions"):
        Rounding(ulp=ulp)
