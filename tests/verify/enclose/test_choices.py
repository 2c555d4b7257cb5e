"""Routes in balls: certain, open or impossible; the machine's choices are followed."""

import torch

from k3.kernels import moe
from k3.verify import enclose
from k3.verify.enclose.choices import Choices, Recorder, order_of, ranked
from k3.verify.enclose.module import enclosed
from k3.verify.enclose.rounding import Rounding


def route(m, r, taken, k=2):
    return ranked(torch.tensor([m]), torch.tensor([r]), torch.tensor([taken]), k)


def test_a_route_is_certain_where_its_lowest_end_is_above_all_others():
    found = route([5.0, 4.0, 1.0], [0.5, 0.1, 0.1], [0, 1, 2])
    assert found.certain(1).tolist() == [True]
    assert found.certain(2).tolist() == [True]
    assert not route([5.0, 4.0, 1.0], [0.5, 2.0, 1.5], [0, 1, 2]).certain(2).any()


def test_a_route_that_no_machine_takes_has_no_slack():
    assert float(route([5.0, 4.0, 1.0], [0.1] * 3, [0, 2, 1]).slack[0, 1]) < 0
    assert float(route([5.0, 4.0, 3.9], [0.1] * 3, [0, 2, 1]).slack[0, 1]) > 0


def test_taking_all_leaves_no_other():
    assert route([1.0, 2.0], [9.0, 9.0], [1, 0]).certain(2).tolist() == [True]


def test_order_keeps_what_was_taken_in_front():
    m = torch.tensor([[0.1, 0.9, 0.5, 0.7]])
    assert order_of(m, torch.tensor([[2, 0]])).tolist() == [[2, 0, 1, 3]]


def top(x, k=2):
    index = moe.top_k(x, k)
    return x.gather(-1, index)


def test_the_ball_follows_the_machine_past_a_tie():
    x = torch.tensor([[1.0, 3.0, 3.0, 2.0]])
    with Recorder() as recorder:
        top(x)
    assert [name for name, _ in recorder.choices.recorded] == ["topk", "eq", "sort"]
    balls, choices = enclosed(top, [x], Rounding(), recorder.choices)
    assert choices.impossible == []
    assert balls["out"].m.tolist() == [[3.0, 3.0]]


def test_another_way_than_the_ball_allows_is_impossible():
    recorded = [("topk", (torch.zeros(1, 3), torch.tensor([[0, 1, 2]])))]
    recorded.append(("eq", torch.tensor([[False, False]])))
    x = torch.tensor([[1.0, 3.0, 2.5, 2.0]])
    _, choices = enclosed(top, [x], Rounding(), Choices(recorded, given=True))
    assert float(choices.routes[0].slack.min()) < 0
    _, choices = enclosed(top, [x], Rounding(), Choices([], given=True))
    assert choices.impossible == ["topk: the machine went another way before"]


def test_a_comparison_that_rounding_may_turn_is_counted():
    def program(x):
        return torch.where(x / 3 >= 1 / 3, x, x * 2)

    report = enclose.module(program, torch.tensor([1.0, 2.0]), equation=False)
    assert report
    assert report.open == 1
    assert "comparisons that rounding may turn: 1" in str(report)
