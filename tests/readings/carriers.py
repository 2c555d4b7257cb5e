"""One call, every carrier: floats, fractions, balls and torch must say the same."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction

import numpy as np
from readings import ball, tensor


def fractions(x):
    return ball.ops_entries(lambda v: Fraction(float(v)), x)


def _fraction_floats(x):
    return np.vectorize(float, otypes=[float])(x)


CARRIERS = {
    "fraction": (fractions, _fraction_floats),
    "ball": (ball.array, ball.floats),
    "torch": (tensor.array, tensor.floats),
}


def convert(value, to_array):
    """Float arrays and numpy floats inside a nest, on another carrier."""
    if isinstance(value, np.ndarray) and value.dtype == float:
        return to_array(value)
    if isinstance(value, np.floating):
        return to_array(np.asarray(value))[()]
    if is_dataclass(value):
        changed = {
            f.name: convert(getattr(value, f.name), to_array) for f in fields(value)
        }
        return replace(value, **changed)
    if isinstance(value, Mapping):
        return {name: convert(item, to_array) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(convert(item, to_array) for item in value)
    return value


def leaves(value):
    """The arrays and numbers of an answer, in order."""
    if value is None:
        return
    if is_dataclass(value):
        value = [getattr(value, f.name) for f in fields(value)]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def same(function, *args, exact=False, tolerance=1e-11, **kwargs):
    """Run on floats and on the other carriers; compare all; return the float answer."""
    expected = function(*args, **kwargs)
    wanted = [np.asarray(x, dtype=float) for x in leaves(expected)]
    assert wanted
    for name, (to_array, to_floats) in CARRIERS.items():
        if name == "fraction" and not exact:
            continue
        answer = function(*convert(args, to_array), **convert(kwargs, to_array))
        got = [to_floats(x) for x in leaves(answer)]
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            assert np.shape(one) == other.shape, name
            np.testing.assert_allclose(
                one, other, rtol=tolerance, atol=tolerance, err_msg=name
            )
        if name == "fraction":
            for x in leaves(answer):
                kinds = {type(v) for v in np.asarray(x, dtype=object).flat}
                assert kinds <= {Fraction, int, bool}, kinds
        if name == "ball":
            assert all(ball.radius(x) < 1e-30 for x in leaves(answer))
    return expected
