"""Figures: one for every score, samples of a question counted once."""

import pytest

from k3.errors import RequestError
from k3.eval import figures, metrics


def test_one_sample_gives_a_share_with_wilsons_interval():
    (figure,) = figures.summarize([(0, {"right": 1.0}), (1, {"right": 0.0})])
    assert (figure.name, figure.count, figure.value) == ("right", 2, 0.5)
    assert (figure.low, figure.high) == metrics.wilson(1, 2)


def test_samples_count_once_and_give_pass_at_k():
    scores = [(q, {"right": float(s < q)}) for q in range(3) for s in range(4)]
    found = {figure.name: figure for figure in figures.summarize(scores)}
    assert list(found) == ["right", "right@2", "right@4"]
    assert found["right"].value == pytest.approx((0 + 1 / 4 + 2 / 4) / 3)
    assert found["right@2"].value == pytest.approx((0 + 1 / 2 + 5 / 6) / 3)
    assert found["right@4"].value == pytest.approx(2 / 3)
    assert all(figure.count == 3 for figure in found.values())


def test_a_score_between_0_and_1_has_no_pass_at_k():
    scores = [(0, {"f1": 0.5}), (0, {"f1": 1.0})]
    (figure,) = figures.summarize(scores)
    assert figure.value == figure.low == figure.high == 0.75


def test_no_answer_is_no_figure():
    with pytest.raises(RequestError, match="figures need answers"):
        figures.summarize([])
