"""Proving by name, what a record says, and what is refused."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from k3 import proof
from k3.errors import ProofError
from k3.logic import constants, kernel
from k3.logic.sorts import REAL
from k3.logic.syntax import FALSE, forall, var
from k3.proof import graphs, listing
from k3.proof.theorem import Theorem

module = importlib.import_module("k3.proof.prove")  # the package exports the function
x = var("x", REAL)
ALL = """
import json, sys
from k3 import proof
records = proof.prove_all(seed=int(sys.argv[1]))
print(json.dumps([[r.name, r.level, r.digest, list(r.axioms)] for r in records]))
"""


def square() -> object:
    """Squares are not negative, over all reals."""
    return forall([x], x * x >= 0)


def proved():
    from k3.proof.reals import square_nonneg

    return square_nonneg()


def record(monkeypatch, **changes):
    base = {"statement": square, "proof": proved, "scope": "all reals"}
    theorem = Theorem(**{**base, **changes})
    monkeypatch.setattr(module, "theorems", lambda: {"test.square": theorem})
    return proof.prove("test.square")


def test_a_record_says_everything(monkeypatch):
    found = record(monkeypatch, mutants=lambda: {"strict": forall([x], x * x > 0)})
    assert found.words == "Squares are not negative, over all reals."
    assert found.statement == "for all x : ℝ\n  0 ≤ x·x"
    assert (found.level, found.axioms, found.scope) == ("K", (), "all reals")
    assert found.mutants == {"strict": "x = 0: 0 < x·x is false: 0 against 0"}
    assert found.steps > 1


def test_levels_and_axioms_are_reported():
    found = proof.prove("kda.retention_between")
    assert found.level == "KS"
    assert found.axioms == ("exp_add", "exp_tangent")
    assert proof.prove("scan.append_carries_state").level == "K"


def test_a_false_statement_is_refuted_before_it_is_tried(monkeypatch):
    def never():
        raise AssertionError

    with pytest.raises(ProofError, match=r"test\.square is false: x = "):
        record(monkeypatch, statement=lambda: forall([x], x >= 0), proof=never)


def test_a_proof_of_something_else_is_refused(monkeypatch):
    with pytest.raises(ProofError, match="its proof shows"):
        record(monkeypatch, proof=lambda: kernel.refl(x))
    with pytest.raises(ProofError, match="its proof shows"):
        record(monkeypatch, proof=lambda: kernel.assume(square()))


def test_a_wrong_variant_must_be_refuted(monkeypatch):
    with pytest.raises(ProofError, match="not refuted: the same"):
        record(monkeypatch, mutants=lambda: {"the same": square()})


def test_another_axiom_is_refused(monkeypatch):
    def cheat():
        false = constants.axiom("cheat", FALSE)
        th = kernel.ground(x * x >= 0, [false])
        return kernel.generalize([x], th)

    with pytest.raises(ProofError, match="axioms that are not those of analysis"):
        record(monkeypatch, proof=cheat)


def false_entries():
    """A false theorem, a true one, and one whose proof shows something else."""
    cube = Theorem(
        statement=lambda: forall([x], x * x * x >= 0), proof=proved, scope="all reals"
    )
    fine = Theorem(statement=square, proof=proved, scope="all reals")
    other = Theorem(statement=square, proof=lambda: kernel.refl(x), scope="all reals")
    return {"test.cube": cube, "test.square": fine, "test.other": other}


def test_every_failing_theorem_is_named_after_all_were_tried(monkeypatch):
    monkeypatch.setattr(module, "theorems", false_entries)
    seen = []
    with pytest.raises(ProofError) as caught:
        proof.prove_all(progress=lambda record: seen.append(record.name))
    assert seen == ["test.square"]
    first, cube, other = str(caught.value).splitlines()
    assert first == "2 theorems are not proved"
    assert cube.startswith("  test.cube is false: x = -")
    assert "test.other states" in other
    assert "its proof shows" in other


def test_failures_are_handed_out_where_they_are_asked_for(monkeypatch):
    monkeypatch.setattr(module, "theorems", false_entries)
    failures = {}
    records = proof.prove_all(failures=failures)
    assert [record.name for record in records] == ["test.square"]
    assert list(failures) == ["test.cube", "test.other"]


def test_every_theorem_has_wrong_variants():
    assert not [entry.name for entry in listing.entries() if not entry.mutants]


def test_an_unknown_name_is_answered_with_near_ones():
    with pytest.raises(ProofError, match=r"no theorem is called append.*scan\.append"):
        proof.prove("append")


def test_every_file_with_theorems_is_listed():
    folder = Path(module.__file__).parent
    found = {p.stem for p in folder.glob("*.py") if "\nTHEOREMS" in p.read_text()}
    assert set(module.CONCEPTS) <= found


def test_article_maps_to_theorems_or_to_reasons():
    ours = {*proof.theorems(), *graphs.names()}
    for name, answer in proof.article().items():
        ((kind, what),) = answer.items()
        assert kind in ("ours", "generalized_by", "limit"), name
        assert kind == "limit" or what in ours, (name, what)


def prove_all(seed):
    command = [sys.executable, "-c", ALL, str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_everything_is_proved_and_the_second_checker_agrees():
    """As the command does in the default run, here with its parts called one by one."""
    found = prove_all(seed=0)
    assert [name for name, *_ in found] == list(proof.theorems())
    assert {level for _, level, *_ in found} == {"K", "KS"}
    names = {a for *_, axioms in found for a in axioms}
    assert names == {"exp_add", "exp_tangent", "exp_log", "sqrt_square"}


@pytest.mark.slow
def test_other_seeds_give_the_same_result():
    assert prove_all(seed=1) == prove_all(seed=2)
