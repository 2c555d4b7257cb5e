"""Obligations: the text, both verdicts, the cache, missing solvers."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

from k3.errors import ProofError
from k3.logic import auto, kernel, smt
from k3.logic.sorts import INT, REAL, fun, list_of, named, pair_of
from k3.logic.syntax import cons, eq, forall, fst, lam, nil, pair, real, snd, var

x, y = var("x", REAL), var("y", REAL)


def test_the_text_does_not_depend_on_names():
    one = smt.to_text([x < y], x <= y)
    u, v = var("a b) (", REAL), var("assert", REAL)
    assert smt.to_text([u < v], u <= v) == one


def test_every_operation_is_read_by_both_solvers():
    e = named("E")
    xs, p = var("xs", list_of(e)), var("p", pair_of(REAL, list_of(INT)))
    f = var("f", fun(REAL, INT, REAL))
    n = var("n", INT)
    goals = [
        eq(pair(fst(p), snd(p)), p),
        ~eq(cons(var("e", e), xs), nil(e)),
        eq(f(x, n), f(x, n)) | (x < y) | ~(x <= y),
        eq(f(x, n) / 2, f(x, n) * real(1) / 2),
        eq(lam([x], x * y), lam([x], x * y)),
        ~forall([n], n < 0) | forall([n], n < 0),
    ]
    for goal in goals:
        kernel.ground(goal)


def test_a_fresh_session_asks_again_and_other_seeds_are_other_questions():
    with smt.session() as one:
        kernel.ground(x <= x)
        kernel.ground(x <= x)
    assert one.asked == 1
    with smt.session(seed=7) as two:
        kernel.ground(x <= x)
    assert two.asked == 1
    assert not one.known.keys() & two.known.keys()


def test_the_cache_keeps_proofs_only(tmp_path):
    path = tmp_path / "deep" / "obligations.jsonl"
    for asked in (2, 1):  # what was refused is asked again
        with smt.session(cache=path) as now:
            kernel.ground(x <= x)
            with pytest.raises(ProofError, match="sat"):
                kernel.ground(x < x)
        assert now.asked == asked
    (line,) = path.read_text().splitlines()
    assert json.loads(line)[1:] == ["unsat", "unsat"]


def test_without_solvers_a_proof_says_what_to_install(monkeypatch):
    def gone(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", gone)
    wanted = r"^proofs need z3 and cvc5.*pip install z3-solver==\S+ cvc5==\S+$"
    with smt.session(), pytest.raises(ProofError, match=wanted):
        kernel.ground(x <= x)
    with smt.session(), pytest.raises(ProofError, match=wanted):
        auto.exact(x <= x)


def test_importing_the_logic_imports_no_solver():
    code = (
        "import sys, k3.proof, k3.logic.check, k3.logic.falsify;"
        "assert not {'z3', 'cvc5', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
