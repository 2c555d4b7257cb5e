"""k3 compare OP module:function: verdicts, and what every option changes."""

import importlib
import sys

import pytest

PORT = """
from k3.kernels import kda, norm, situ

def right(gate, up, beta, linear):
    return situ.situ(gate, up, beta, linear)

def swapped(gate, up, beta, linear):
    return situ.situ(up, gate, beta, linear)

def near(x, weight, eps):
    return norm.rms_norm(x, weight, 1.0000001e-5)

def theirs(q, k, v, g, beta, initial_state, output_final_state):
    q = q[0] * q.shape[-1] ** -0.5
    state = initial_state.transpose(-1, -2)
    lens = (len(q),)
    out, S = kda.recurrent(q, k[0], v[0], g[0], beta[0], state=state, lens=lens)
    return out[None], S.transpose(-1, -2)
"""


@pytest.fixture(autouse=True)
def port(tmp_path, monkeypatch):
    (tmp_path / "a_port_to_compare.py").write_text(PORT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


def compare(k3, operator, function, *options):
    return k3("compare", operator, f"a_port_to_compare:{function}", *options)


def test_a_right_function(k3):
    found = compare(k3, "situ", "right")
    assert found.code == 0, found.out
    assert found.out.splitlines()[-1] == "agrees"
    assert found.out.startswith("situ in fp32, seed 0")


def test_a_wrong_one_is_exit_1_and_diagnosed(k3):
    found = compare(k3, "situ", "swapped", "--json")
    assert found.code == 1
    assert found.json["diagnosis"] == "exchanging gate and up"


def test_dtype_seed_and_tolerance(k3):
    found = compare(k3, "situ", "right", "--dtype", "bfloat16", "--seed", "3")
    assert found.out.startswith("situ in bf16, seed 3")
    assert compare(k3, "situ", "right", "--tolerance", "0").code == 1


def test_exact(k3):
    assert compare(k3, "rms_norm", "near").code == 0
    found = compare(k3, "rms_norm", "near", "--exact")
    assert found.code == 1
    assert "exact: DIFFERENT" in found.out


def test_another_signature(k3):
    assert compare(k3, "kda.recurrent", "theirs").code == 1
    assert compare(k3, "kda.recurrent", "theirs", "--as", "fla").code == 0
    assert "must be one of k3" in compare(k3, "situ", "right", "--as", "f").err


def test_options_of_other_forms_are_refused(k3):
    found = compare(k3, "situ", "right", "--max-tokens", "3")
    assert (found.code, found.out) == (2, "")
    assert "comparing with a function reads no --max-tokens" in found.err
    found = k3("compare", "-", "x.npz", "--exact")
    assert "comparing with golden numbers reads no --exact" in found.err
    found = k3("compare", "tiny", "http://localhost:1", "--as", "fla")
    assert "comparing with a server reads no --as" in found.err


HOSTILE = """
import torch
from k3.kernels import situ

def mutates(gate, up, beta, linear):
    out = situ.situ(gate.clone(), up, beta, linear)
    gate.mul_(float("nan"))
    return out

def none(gate, up, beta, linear):
    return None

def two(gate, up, beta, linear):
    return gate, up

def nan(gate, up, beta, linear):
    return gate * float("nan")

def short(gate, up, beta, linear):
    return situ.situ(gate, up, beta, linear)[:1]

def noisy(gate, up, beta, linear):
    return situ.situ(gate, up, beta, linear) + 1e-12 * torch.rand_like(gate)

def dropped(gate, up, beta, linear):
    return torch.dropout(situ.situ(gate, up, beta, linear), 0.5, True)

def narrow(gate, up, beta, linear):
    return situ.situ(gate.bfloat16(), up.bfloat16(), beta, linear)

def strided(gate, up, beta, linear):
    return situ.situ(gate.T.contiguous().T, up, beta, linear)

def raises(gate, up, beta, linear):
    raise RuntimeError("on\\ntwo lines")

def exits(gate, up, beta, linear):
    raise SystemExit(7)

class Class:
    pass

value = 3
"""
VERDICTS = [
    ("mutates", 0, "exact: EQUAL"),
    ("strided", 0, "exact: EQUAL"),
    ("none", 1, "returns y: got nothing"),
    ("two", 1, "returns y: got 2 values"),
    ("nan", 1, "about nan, reference about"),
    ("short", 1, "first: out.y (shape (1, 6) against (5, 6))\n"),
    ("noisy", 1, "aten.rand_like.default has no exact meaning"),
    ("dropped", 1, "has no exact meaning"),
    ("narrow", 1, "exact: EQUAL"),
    ("raises", 1, "the function failed: RuntimeError: on two lines"),
    ("exits", 1, "the function failed: SystemExit: 7"),
]


@pytest.mark.parametrize(("name", "code", "said"), VERDICTS)
def test_hostile_functions_get_a_verdict(k3, tmp_path, name, code, said):
    (tmp_path / "a_hostile_port.py").write_text(HOSTILE)
    found = k3("compare", "situ", f"a_hostile_port:{name}", "--exact")
    assert found.code == code, found.out
    assert said in found.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(:", "importing a_broken_module raised SyntaxError"),
        ("raise OSError", "importing a_broken_module raised OSError; mend it"),
        ("raise SystemExit(3)", "raised SystemExit: 3"),
        ("class f:\n    pass", "must be a function: got a class"),
        ("f = 3", "must be a function: got int 3"),
    ],
)
def test_modules_that_cannot_be_used(k3, tmp_path, monkeypatch, text, said):
    (tmp_path / "a_broken_module.py").write_text(text)
    monkeypatch.delitem(sys.modules, "a_broken_module", raising=False)
    importlib.invalidate_caches()
    found = k3("compare", "situ", "a_broken_module:f")
    assert found.code == 2
    assert said in found.err


def test_names_that_are_not_there(k3):
    assert "did you mean" in compare(k3, "situ_", "right").err
    assert "check both names" in compare(k3, "situ", "no_such").err
    found = k3("compare", "a_port_to_compare:right")
    assert "OP module:function" in found.err
