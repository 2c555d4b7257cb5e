"""Pictures: well-formed, in the frame, and honest about what cannot be drawn."""

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.train import plot
from k3.train.plot import Axis, Curve

X, Y = Axis(label="step"), Axis(label="loss < 1 & more")
NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=32)


def drawn(points, x=X, y=Y):
    """The places of the curve's points in pixels."""
    text = plot.chart("a", [Curve(name="c", points=points, dots=True)], x=x, y=y)
    found = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="4"', text)
    return [(float(a), float(b)) for a, b in found[:-1]]


@settings(max_examples=40)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=5), st.booleans())
def test_any_points_make_a_picture(points, log):
    axis = Axis(label="v", log=log)
    curves = [Curve(name="<a>", points=points), Curve(name="b", points=(), dots=True)]
    root = ET.fromstring(plot.chart("t", curves, x=axis, y=axis))
    texts = [e.text for e in root.iter() if e.tag.endswith("text")]
    assert "<a>" in texts
    assert not re.search(r"nan|inf", " ".join(filter(None, texts)))


def test_points_lie_in_the_frame_and_in_their_order():
    places = drawn([(0, 3), (1, 1), (2, 2)])
    xs, ys = [p[0] for p in places], [p[1] for p in places]
    assert xs == sorted(xs)
    assert all(plot.LEFT < x < plot.WIDTH - plot.RIGHT for x in xs)
    assert ys[0] < ys[2] < ys[1]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)


def test_equal_factors_are_equal_steps_of_a_log_axis():
    (a, _), (b, _), (c, _) = drawn(
        [(1e3, 1), (1e5, 2), (1e7, 3)], Axis(label="", log=True)
    )
    assert b - a == pytest.approx(c - b, abs=0.2)


def test_what_has_no_place_is_left_out():
    assert len(drawn([(1, math.nan), (2, 1), (3, math.inf), (4, 2)])) == 2
    assert len(drawn([(1, 0), (2, -1), (3, 5)], y=Axis(label="", log=True))) == 1


def test_long_curves_are_thinned():
    points = [(i, i % 7) for i in range(10_000)]
    assert 700 < len(drawn(points)) <= plot.MOST_POINTS


def test_ticks_are_round():
    text = plot.chart("t", [Curve(name="c", points=[(0, 0), (97, 1)])], x=X, y=Y)
    labels = re.findall(r'fill="#444">([^<]+)<', text)
    assert labels[:5] == ["0", "20", "40", "60", "80"]
    assert plot._said(3e8) == "3e8"
    assert plot._said(2e-5) == "2e-5"
