"""k3.verify.report: the error measure and what is printed."""

import json

import numpy as np
import pytest

from k3.verify.report import Report, measure


def test_the_error_is_relative_to_the_largest_expected_value():
    entry = measure("x", np.array([1.0, -7.0]), np.array([1.0, -8.0]), 0.1)
    assert entry.error == 1 / 8
    assert (entry.at, entry.got, entry.expected) == ((1,), -7.0, -8.0)
    assert not entry.ok


def test_all_zero_is_compared_absolutely():
    assert measure("x", np.array([0.5]), np.zeros(1), 0.1).error == 0.5
    assert measure("x", np.zeros(1), np.zeros(1), 0.0).ok


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_never_passes(bad):
    fine = np.array([1.0, 2.0])
    wrong = np.array([1.0, bad])
    assert not measure("x", wrong, fine, 1e9).ok
    assert not measure("x", fine, wrong, 1e9).ok


def test_whole_numbers_must_be_equal():
    entry = measure("t", np.array([4, 5, 6, 7]), np.array([4, 9, 6, 7]), 0.5)
    assert (entry.error, entry.tolerance, entry.at) == (0.25, 0.0, (1,))


def test_empty_tensors_agree():
    assert measure("x", np.zeros((0, 3)), np.zeros((0, 3)), 0.0).ok


def test_the_line_says_where_and_by_how_much():
    entry = measure("logits", np.array([[1.0, 2.0]]), np.array([[1.0, 4.0]]), 1e-5)
    assert entry.line().startswith("DIFF logits")
    assert "5.00e-01" in entry.line()
    assert "at [0, 1]: got 2, expected 4" in entry.line()


def test_the_report_is_json_also_with_nan():
    bad = measure("b", np.array([np.nan]), np.array([1.0]), 0.1)
    report = Report(entries=[measure("a", np.ones(2), np.ones(2), 0.1), bad])
    value = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert value["first"] == "b"
    assert [entry["ok"] for entry in value["entries"]] == [True, False]
