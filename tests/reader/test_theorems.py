"""The theorem pane: statement, what it rests on, and variants with both values."""

import pytest

from k3.errors import ConfigError
from k3.reader import theorems


def test_a_pane_says_all_that_a_receipt_has():
    shown = theorems.show("situ.output_bound")
    assert "<b>Given</b> 0 ≤ gate_cap, 0 ≤ up_cap" in shown
    assert "<b>Then</b> |situ(gate_cap, up_cap, <i>g</i>, <i>u</i>)|" in shown
    assert "kernel, and ground steps on which z3 and cvc5 agree" in shown
    assert "exp_add, exp_tangent" in shown
    assert "<code>k3/proof/situ.py</code>" in shown
    assert "k3 prove situ.output_bound" in shown


def test_every_variant_stands_with_its_counterexample():
    for name, each in theorems.receipts().items():
        shown = theorems.show(name)
        assert shown.count("<li><b>") == len(each["mutants"]) > 0, name


def test_a_variant_says_where_it_fails_and_both_values():
    shown = theorems.show("situ.output_bound")
    assert "half the product" in shown
    assert "fails at gate_cap = 3/2, up_cap = 3/2, g = 3/2, u = -4: 1.3875221" in shown
    assert "S[0, 0, 0]: graph -18, reference -34" in theorems.show("graph.kda_update")


def test_receipts_are_of_the_statements_that_are_proved_now():
    assert theorems.receipts().keys() == theorems.proved().keys()
    assert all(map(theorems.fresh, theorems.receipts()))


def test_an_unknown_theorem_is_refused():
    with pytest.raises(ConfigError, match="a theorem must be one of k3 prove"):
        theorems.show("none.at_all")
