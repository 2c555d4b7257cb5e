"""Every operator: ours is the equation, in floats and exactly."""

import numpy as np
import pytest
import torch

from k3.errors import RequestError, ShapeError
from k3.testing import NAMES
from k3.verify.operators import OPERATORS, find
from k3.verify.operators.check import check

SLOW = ("kda.chunk", "moe.experts")


def test_the_plug_ins_names_are_the_tables():
    assert tuple(OPERATORS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_ours_agrees_in_every_dtype(name):
    operator = OPERATORS[name]
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        verdict = check(operator.program, operator, dtype=dtype, seed=3)
        assert verdict, verdict
    assert verdict.passes["bf16"]


EXACT = [n for n, op in OPERATORS.items() if op.exact and n not in SLOW]


@pytest.mark.parametrize("name", EXACT)
def test_ours_is_exactly_the_equation(name):
    operator = OPERATORS[name]
    verdict = check(operator.program, operator, exact=True)
    assert verdict.exact.verdict == "EQUAL"
    assert verdict.exact.bound <= 1e-6


def test_inputs_and_outputs_have_layouts():
    for operator in OPERATORS.values():
        tensors = {n for n, x in operator.inputs().items() if torch.is_tensor(x)}
        described = set(operator.layouts)
        assert set(operator.outputs) <= described | {"y"}, operator.name
        assert tensors <= described, operator.name


def test_a_seed_draws_the_same_inputs_again_and_another_others():
    one, again, other = (find("situ").inputs(s)["gate"] for s in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_an_unknown_operator_is_told_the_nearest():
    with pytest.raises(RequestError, match=r"got 'kda.chunck'; did you mean kda.chunk"):
        find("kda.chunck")


def test_outputs_are_taken_by_place_or_by_name_and_refused_otherwise():
    operator = find("kda.recurrent")
    assert operator.named({"final": 1, "out": 2}) == {"out": 2, "final": 1}
    with pytest.raises(ShapeError, match=r"returns out and final: got 1 values"):
        operator.named([1])
    with pytest.raises(ShapeError, match=r"got out; return them in this order"):
        operator.named(np.zeros(3))
