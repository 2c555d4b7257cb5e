"""The rules of RL: advantages, weights of stale tokens, budgets, parity."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from k3.errors import RequestError
from k3.spec import rl as spec
from k3.train import rl

REWARDS = st.lists(st.floats(-1, 1), min_size=1, max_size=9)


@given(REWARDS)
def test_advantages_have_mean_zero_and_deviation_one(rewards):
    found = rl.advantages(rewards)
    assert sum(found) == pytest.approx(0, abs=1e-6)
    square = sum(x * x for x in found) / len(found)
    assert square == pytest.approx(1, abs=1e-6) or found == [0.0] * len(rewards)
    plain = rl.advantages(rewards, normalize=False)
    assert [x + sum(rewards) / len(rewards) for x in plain] == pytest.approx(rewards)


def test_equal_rewards_teach_nothing():
    assert rl.advantages([0.3, 0.3, 0.3]) == [0.0, 0.0, 0.0]
    assert rl.advantages([]) == []


def test_the_gradient_is_weight_times_advantage_plus_the_penalty():
    now = torch.tensor([-1.0, -2.0, -0.5], requires_grad=True)
    then = torch.tensor([-1.0, -4.0, -0.25])
    advantage = torch.tensor([1.0, -1.0, 0.5])
    options = rl.PolicyOptions(most_weight=2.0, penalty=0.1)
    rl.loss(now, then, advantage, options).sum().backward()
    ratio = (now - then).detach()
    want = -ratio.exp().clamp(max=2.0) * advantage + 0.1 * ratio
    assert torch.allclose(now.grad, want)
    assert float(ratio.exp().max()) > 2.0


def test_fresh_tokens_have_the_plain_policy_gradient():
    now = torch.tensor([-1.0, -3.0], requires_grad=True)
    options = rl.PolicyOptions()
    rl.loss(now, now.detach(), torch.tensor([2.0, -1.0]), options).sum().backward()
    assert now.grad.tolist() == [-2.0, 1.0]


@given(
    st.floats(-1, 1),
    st.integers(0, 3000),
    st.integers(1, 1000),
    st.sampled_from([0, 1, 5, 10, 99]),
)
def test_a_budget_is_the_specs_with_a_cap_and_an_annealed_factor(
    reward, used, baseline, iteration
):
    budget = rl.Budget(start=3.0, end=1.0, steps=10, most=2000)
    factor = {0: 3.0, 1: 2.8, 5: 2.0, 10: 1.0, 99: 1.0}[iteration]
    assert budget.factor(iteration) == pytest.approx(factor)
    got = budget.apply(reward, used, float(baseline), iteration)
    exact = budget.factor(iteration)
    want = spec.budgeted(reward, used, baseline, exact)
    assert got == (-1.0 if used > 2000 else want)


@given(st.sampled_from(["first", "second", "tie"]), st.integers(0, 300))
def test_too_long_loses_as_in_the_spec(judged, length):
    assert rl.verbose(judged, length, 200.0, 1.2) == spec.verdict(
        judged, length, 200, 1.2
    )


def test_parity_of_equal_log_probabilities_is_zero_and_grows():
    same = torch.tensor([-1.0, -2.0])
    assert rl.parity(same, same) == {"mean": 0.0, "max": 0.0, "kl": 0.0}
    apart = rl.parity(same, same - torch.tensor([0.5, 0.0]))
    assert apart["mean"] == pytest.approx(0.25)
    assert apart["max"] == pytest.approx(0.5)
    assert apart["kl"] == pytest.approx((2.718281828**0.5 - 1.5) / 2)
    assert rl.parity(same[:0], same[:0])["max"] == 0.0


def test_each_written_token_has_its_samples_advantage():
    found = rl.returns([1.0, 0.0], [2, 3])
    assert found.tolist() == [1.0, 1.0, -1.0, -1.0, -1.0]
    assert rl.returns([], []).tolist() == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"most_weight": 0.5}, "most_weight must be at least 1: got 0.5"),
        ({"penalty": -1.0}, "penalty must be at least 0"),
        ({"penalty": float("nan")}, "penalty must be at least 0"),
        ({"anchor": -0.5}, "anchor must be at least 0: got -0.5"),
    ],
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(RequestError, match=sentence):
        rl.PolicyOptions(**options)


def test_a_divergence_far_away_is_finite_and_rises():
    now = torch.tensor([-0.5, -30.0, -120.0, -1e4], requires_grad=True)
    found = rl.divergence(now, torch.full((4,), -0.5))
    assert found[0] == 0
    assert found.isfinite().all()
    assert (found[1:] > found[:-1]).all()
    found.sum().backward()
    assert now.grad.isfinite().all()
    near = torch.tensor([-3.0])
    assert float(rl.divergence(near, near + 2)) == pytest.approx(math.exp(2) - 3)
