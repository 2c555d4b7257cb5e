"""A user's function: errors, first index, and the mistake in words."""

import math

import pytest
import torch

from k3.errors import RequestError
from k3.kernels import kda, mx, norm, situ
from k3.verify.operators import find
from k3.verify.operators.check import check, diagnose, load


def recurrent(q, k, v, g, *, beta, state):
    out, final = kda.recurrent(q, k, v, g, beta, state=state[None], lens=(len(q),))
    return out, final[0]


def other_state(q, k, v, g, *, beta, state):
    out, final = recurrent(q, k, v, g, beta=beta, state=state.mT)
    return out, final.mT


def heads_first(q, k, v, g, *, beta, state):
    q, k, v, g, beta = (x.transpose(0, 1) for x in (q, k, v, g, beta))
    out, final = recurrent(q, k, v, g, beta=beta, state=state)
    return out.transpose(0, 1), final


def takes_alpha(q, k, v, g, *, beta, state):
    return recurrent(q, k, v, g.log(), beta=beta, state=state)


def scales_again(q, k, v, g, *, beta, state):
    return recurrent(q * q.shape[-1] ** -0.5, k, v, g, beta=beta, state=state)


def base_two(q, k, v, g, *, beta, state):
    return recurrent(q, k, v, g * math.log(2), beta=beta, state=state)


def three_mistakes(q, k, v, g, *, beta, state):
    out, final = recurrent(
        q * q.shape[-1] ** -0.5, k, v, g.log(), beta=beta, state=state.mT
    )
    return out, final.mT


WRONG = {
    other_state: "swapping the K and V axes of the state",
    heads_first: "transposing heads and time",
    takes_alpha: "g is read as alpha, not log alpha",
    scales_again: "the query scale is applied twice",
    base_two: "a logarithm to base 2",
}


@pytest.mark.parametrize("function", WRONG)
def test_a_mistake_is_named(function):
    verdict = check(function, find("kda.recurrent"))
    assert not verdict
    assert WRONG[function] in verdict.diagnosis
    assert f"equal after {verdict.diagnosis}" in str(verdict)


def test_three_mistakes_at_once():
    found = diagnose(three_mistakes, find("kda.recurrent"))
    assert found.count(", and ") == 2
    assert "alpha" in found
    assert "axes of the state" in found


def test_what_no_reading_explains_has_no_diagnosis():
    def beta_missing(q, k, v, g, *, beta, state):
        return recurrent(q, k, v, g, beta=beta * 0 + 1, state=state)

    verdict = check(beta_missing, find("kda.recurrent"))
    assert not verdict
    assert verdict.diagnosis == ""


def test_the_first_index_and_the_errors():
    def off_by_one(x, weight, eps):
        y = norm.rms_norm(x, weight, eps)
        y[2, 5] += 0.5
        return y

    (errors,) = check(off_by_one, find("rms_norm")).outputs
    assert errors.first == (2, 5)
    assert errors.got - errors.expected == pytest.approx(0.5, rel=1e-5)
    assert errors.absolute == pytest.approx(0.5, rel=1e-5)
    assert errors.ulps > 1e5
    assert "first at [2, 5]: got" in errors.line()


def test_verdicts_of_fp32_and_bf16_differ():
    def near(gate, up, beta, linear):
        return situ.situ(gate, up, beta, linear) * 1.001

    verdict = check(near, find("situ"))
    assert verdict.passes == {"fp32": False, "bf16": True}
    assert "within the tolerance of fp32 no, of bf16 yes" in str(verdict)
    assert check(near, find("situ"), tolerance=0.01)


def test_exact_sees_what_no_tolerance_does():
    def eps_forgotten(x, weight, eps):
        return norm.rms_norm(x, weight, 1.0000001e-5)

    operator = find("rms_norm")
    assert check(eps_forgotten, operator)
    verdict = check(eps_forgotten, operator, exact=True)
    assert not verdict
    assert verdict.to_dict()["exact"] == "DIFFERENT"


def test_bytes_have_no_exact_meaning():
    operator = find("mx.decode")
    with pytest.raises(RequestError, match="no exact meaning over the reals"):
        check(operator.program, operator, exact=True)


def test_swapped_nibbles():
    def high_first(packed, scale):
        swapped = (packed << 4) | (packed >> 4)
        return mx.decode(swapped, scale, torch.float32)

    assert "reads the high one first" in check(high_first, find("mx.decode")).diagnosis


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (lambda gate: gate[0], "has shape"),
        (lambda gate: "text", "is no array"),
        (lambda gate: gate * math.nan, "differs"),
    ],
)
def test_what_cannot_be_right_is_said(result, said):
    verdict = check(lambda gate, **_: result(gate), find("situ"))
    assert not verdict
    assert said in str(verdict)
    assert verdict.to_dict()["outputs"][0]["ok"] is False


def test_a_function_that_fails_is_reported():
    verdict = check(lambda gate: gate, find("situ"))
    assert verdict.problem.startswith("TypeError")
    assert "the function failed" in str(verdict)


def test_a_function_is_loaded_from_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "my_port_of_situ.py").write_text("def f(**x):\n    return 1\nN = 3\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert load("my_port_of_situ:f")() == 1
    with pytest.raises(RequestError, match="must be a function: got int 3"):
        load("my_port_of_situ:N")
    with pytest.raises(RequestError, match=r"given as module:function.*no_such"):
        load("no_such_module:f")
