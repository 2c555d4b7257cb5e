"""k3 verify: checks, theorems, exit codes, and what every option changes."""

import pytest

from k3.cli import options
from k3.errors import ProofError
from k3.model.cache import KDACache


def test_the_claims_are_the_engines():
    from k3.verify import refine

    assert tuple(refine.CLAIMS) == options.CLAIMS


def test_quant_on_the_released_layout(k3, golden):
    found = k3("verify", "quant", golden)
    assert found.code == 0, found.out
    assert found.out.startswith("quant: packed MXFP4 weights")
    assert "mx.e2m1_is_nearest (level KS; all reals" in found.out
    assert found.out.splitlines()[-1] == "  holds"


def test_json_and_the_options(k3, golden):
    common = ("verify", "context", golden, "--json")
    few = k3(*common, "--no-exact", "--tokens", "9", "--seed", "1").json["claims"][0]
    assert few["verdict"] == "holds"
    assert not any(c["kind"] == "exact" for c in few["checks"])
    assert "ranks of 8, 1 tokens" in few["checks"][0]["what"]
    other = k3(*common, "--no-exact", "--tokens", "9", "--seed", "2")
    assert other.json["claims"][0]["checks"] != few["checks"]
    exact = k3(*common, "--tokens", "9").json["claims"][0]
    assert exact["checks"][0]["kind"] == "exact"
    assert "float64" not in str(exact["checks"])


def test_seeds_of_exact_arithmetic(k3, golden):
    common = ("verify", "context", golden, "--tokens", "9")
    usual, one = k3(*common), k3(*common, "--seeds", "1")
    assert usual.out.count("(2 seeds, 50 bits)") == 2
    assert one.out.count("(1 seed, 50 bits)") == 2


def test_a_dtype_has_its_own_bound(k3, golden):
    given = ("verify", "chunk", golden, "--no-exact", "--tokens", "8")
    assert "(at most 1e-04)" in k3(*given).out
    assert "(at most 1e-09)" in k3(*given, "--dtype", "float64").out
    failed = k3(*given, "--tolerance", "1e-13")
    assert failed.code == 1
    assert failed.out.splitlines()[-1] == "  FAILS"
    assert "first: " in failed.out


def test_a_mutant_is_exit_1(k3, golden, monkeypatch):
    original = KDACache.rewind

    def keeps_all(self, n):
        held = self.state, self.window
        original(self, n)
        self.state, self.window = held

    monkeypatch.setattr(KDACache, "rewind", keeps_all)
    found = k3("verify", "cache", golden, "--no-exact", "--tokens", "12")
    assert found.code == 1
    assert "DIFF float   five tokens taken back" in found.out


def test_a_lost_theorem_is_said(k3, golden, monkeypatch):
    from k3.verify.refine import claims

    def lost(names):
        raise ProofError("a claim names theorems that are proved: got x.y")

    monkeypatch.setattr(claims, "theorems", lost)
    found = k3("verify", "quant", golden)
    assert found.code == 1
    assert "not checked: a claim names theorems" in found.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("verify", "streams"), "CLAIM must be one of stream, chunk"),
        (("verify", "stream", "--tokens", "3"), "at least 8 tokens: got 3"),
        (("verify", "chunk", "--seeds", "0"), "at least 1 seed: got 0"),
        (("verify", "chunk", "--seeds", "2", "--no-exact"), "leave one out"),
        (("verify", "enclose", "--seeds", "2"), "enclose takes no --seeds"),
    ],
)
def test_what_cannot_be_is_refused(k3, words, said):
    found = k3(*words)
    assert found.code == 2
    assert said in found.err
