"""Statements as mathematics: nothing is lost, and sums and indices read as such."""

import html
import re

import pytest

from k3.reader import statement, theorems

TEXT = """for all n : ℤ, alpha : (ℤ → ℝ), S : (ℤ × ℤ → ℝ), f : (A × B → (A × C))
  if 0 ≤ n
  Σ((λm. alpha(m)·S(m, n)), n) ≤ 1 ∧ (0 < n ∧ n < 2)"""


def test_parts():
    found = statement.parse(TEXT)
    assert found.variables[0] == ("n", "ℤ")
    assert found.hypotheses == ("0 ≤ n",)
    assert found.conclusion.startswith("Σ((λm.")


def test_sums_indices_and_greek_letters():
    shown = statement.show(TEXT)
    low = "<sub><i>m</i>&lt;<i>n</i></sub>"
    entries = "<i>α</i><sub><i>m</i></sub>·<i>S</i><sub><i>m</i>, <i>n</i></sub>"
    assert f"∑{low}({entries}) ≤ 1 ∧<br>(0 &lt; <i>n</i> ∧ <i>n</i> &lt; 2)" in shown
    assert "<i>n</i> ∈ ℤ" in shown
    assert "<i>f</i> : A × B → (A × C)" in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("total((λx. x·x), xs)", "∑<sub><i>x</i>∈xs</sub>(<i>x</i>·<i>x</i>)"),
        ("sqrt(x + eps)", "√(<i>x</i> + <i>ε</i>)"),
        ("head(1, y)", "head(1, <i>y</i>)"),
        ("a < b", "<i>a</i> &lt; <i>b</i>"),
        ("k(i)", "<i>k</i>(<i>i</i>)"),
    ],
)
def test_formulas(text, shown):
    assert statement.formula(text, ()) == shown


def test_every_statement_is_whole():
    """Letters and signs are those of the receipt; tags are balanced."""
    for name, each in theorems.receipts().items():
        shown = statement.show(each["statement"])
        for tag in ("sub", "i", "p", "b"):
            assert shown.count(f"<{tag}>") == shown.count(f"</{tag}>"), name
        text = html.unescape(re.sub("<[^>]*>", "", shown))
        last = each["statement"].splitlines()[-1]
        for sign in "≤⇔=·+−":
            assert text.count(sign) >= last.count(sign), (name, sign)
