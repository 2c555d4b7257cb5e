"""Golden numbers: tests/golden/*.json, hand-checkable and each with its source.

An entry names a spec function, its arguments and what it returns. Numbers and "a/b" are
scalars of the carrier and nested lists are arrays; int, ints, bools, fraction, grid,
list, tuple, form and plain mark what is not. `exact` runs on fractions with equality,
`digits` is the accuracy of the source, `plain` compares as it is. kwargs follow these
rules too, but their scalars stay Python numbers.
"""

import importlib
import json
from dataclasses import is_dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from readings import ball, tensor
from readings.carriers import fractions

from k3.spec import mx

PLACE = Path(__file__).parents[1] / "golden"
ENTRIES = [
    (file.stem, entry)
    for file in sorted(PLACE.glob("*.json"))
    for entry in json.loads(file.read_text())
]
MARKS = {
    "int": lambda x: x,
    "ints": lambda x: x,
    "bools": lambda x: x,
    "plain": lambda x: x,
    "fraction": Fraction,
    "grid": tuple,
    "form": lambda x: getattr(mx, x),
}


def value(x):
    return Fraction(str(x)) if isinstance(x, float) else Fraction(x)


def nest(x):
    return [nest(item) for item in x] if isinstance(x, list) else value(x)


def floats(x):
    return np.vectorize(float, otypes=[float])(np.array(x, dtype=object))


def encode(x, carrier):
    if isinstance(x, dict):
        ((mark, inner),) = x.items()
        if mark in ("list", "tuple"):
            items = [encode(item, carrier) for item in inner]
            return items if mark == "list" else tuple(items)
        return MARKS[mark](inner)
    if isinstance(x, list):
        return carrier(np.array(nest(x), dtype=object))
    return carrier(np.array(value(x), dtype=object))[()]


def keyword(x, carrier):
    return encode(x, carrier) if isinstance(x, list) else x


def exactly(x):
    return x


CARRIERS = {
    "float": (floats, floats),
    "ball": (lambda x: ball.ops_entries(ball.rational, x), ball.floats),
    "torch": (lambda x: tensor.array(floats(x)), tensor.floats),
}


def call(entry, carrier):
    module, name = entry["call"].rsplit(".", 1)
    function = getattr(importlib.import_module(f"k3.spec.{module}"), name)
    args = [encode(x, carrier) for x in entry["args"]]
    kwargs = {n: keyword(x, carrier) for n, x in entry.get("kwargs", {}).items()}
    got = function(*args, **kwargs)
    if "of" not in entry:
        return got
    return getattr(got, entry["of"]) if is_dataclass(got) else got[entry["of"]]


def plain(x):
    if isinstance(x, dict):
        return {str(n): plain(item) for n, item in x.items()}
    if isinstance(x, list | tuple):
        return [plain(item) for item in x]
    return x


def wanted(entry):
    return floats(nest(entry["expect"]))


def label(item):
    return f"{item[0]}: {item[1]['name']}"


@pytest.mark.parametrize("item", ENTRIES, ids=label)
def test_number(item):
    _, entry = item
    assert entry["source"]
    if entry.get("plain"):
        expect = entry["expect"]
        expect = value(expect) if isinstance(expect, str) else expect
        assert plain(call(entry, exactly)) == expect
        return
    digits = entry.get("digits", 12)
    for name, (carrier, back) in CARRIERS.items():
        np.testing.assert_allclose(
            np.asarray(back(call(entry, carrier)), dtype=float),
            wanted(entry),
            atol=0.6 * 10**-digits,
            rtol=1e-12,
            err_msg=name,
        )
    if entry.get("exact"):
        got = np.asarray(call(entry, exactly), dtype=object)
        assert (got == np.array(nest(entry["expect"]), dtype=object)).all(), got


def test_every_concept_has_numbers():
    names = {concept for concept, _ in ENTRIES}
    assert len(ENTRIES) > 100
    for concept in ("kda", "mla", "attn_res", "moe", "situ", "balance", "mx", "loss"):
        assert concept in names
    assert fractions(np.array([0.5]))[0] == Fraction(1, 2)


def test_a_wrong_number_is_caught():
    concept, entry = next(
        x for x in ENTRIES if x[1]["name"] == "a scalar memory is corrected"
    )
    with pytest.raises(AssertionError):
        test_number((concept, entry | {"expect": [["38/5"]]}))
