"""k3.kernels.sample: greedy, drawn and cut rows, each on its own."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.errors import RequestError
from k3.kernels import sample as kernel
from k3.kernels.sample import SampleOptions, sample


def seeded(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


def random_logits(rows, width, seed=0):
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed)) * 3


def draws(logits, options, count=4000):
    rows = logits.expand(count, -1)
    return sample(rows, options, seeded(*range(count))).tokens


def test_temperature_zero_is_greedy_and_ties_go_to_the_lower_id():
    logits = torch.tensor([[1.0, 5.0, 5.0], [7.0, -1.0, 7.0]])
    out = sample(logits, SampleOptions(temperature=0.0), seeded(1, 2))
    assert out.tokens.tolist() == [1, 0]


def test_greedy_takes_nothing_from_the_generator():
    generators = seeded(3)
    before = generators[0].get_state()
    sample(random_logits(1, 9), SampleOptions(temperature=0.0), generators)
    assert torch.equal(generators[0].get_state(), before)


def test_a_small_temperature_tends_to_greedy_without_overflow():
    logits = random_logits(5, 63)
    out = sample(logits, SampleOptions(temperature=1e-300), seeded(*range(5)))
    assert torch.equal(out.tokens, logits.argmax(-1))


def test_frequencies_follow_the_tempered_softmax():
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
    tokens = draws(logits, SampleOptions(temperature=2.0), count=20_000)
    seen = torch.bincount(tokens, minlength=4) / 20_000
    expected = torch.softmax(logits[0] / 2, -1)
    assert (seen - expected).abs().sum() / 2 < 0.01


def test_top_k_keeps_the_k_most_likely():
    logits = torch.tensor([[0.0, 0.1, 0.2, 0.3, 0.4]])
    assert set(draws(logits, SampleOptions(top_k=2)).tolist()) == {3, 4}


def test_top_k_one_is_greedy():
    logits = random_logits(7, 100)
    out = sample(logits, SampleOptions(top_k=1), seeded(*range(7)))
    assert torch.equal(out.tokens, logits.argmax(-1))


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.4, {0}), (0.5, {0}), (0.51, {0, 1}), (0.8, {0, 1}), (0.81, {0, 1, 2})],
)
def test_top_p_keeps_the_fewest_that_reach_it(top_p, kept):
    logits = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64).log()
    assert set(draws(logits, SampleOptions(top_p=top_p)).tolist()) == kept


def test_top_p_counts_the_share_of_what_top_k_left():
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]], dtype=torch.float64).log()
    # Of the two that are left the first holds 4/7 = 0.571.
    assert set(draws(logits, SampleOptions(top_k=2, top_p=0.57)).tolist()) == {0}
    assert set(draws(logits, SampleOptions(top_k=2, top_p=0.58)).tolist()) == {0, 1}


def test_min_p_is_relative_to_the_most_likely():
    logits = torch.tensor([[0.5, 0.3, 0.1, 0.1]], dtype=torch.float64).log()
    assert set(draws(logits, SampleOptions(min_p=0.55)).tolist()) == {0, 1}
    assert set(draws(logits, SampleOptions(min_p=0.65)).tolist()) == {0}
    assert set(draws(logits, SampleOptions(min_p=1.0)).tolist()) == {0}


def test_a_token_ruled_out_by_minus_infinity_is_never_drawn():
    logits = torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]])
    assert set(draws(logits, SampleOptions()).tolist()) == {1, 3}


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**40),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 5.0]),
    top_k=st.integers(0, 70),
    top_p=st.floats(0.01, 1.0),
    min_p=st.floats(0.0, 1.0),
)
def test_a_row_does_not_depend_on_the_rows_around_it(
    seed, temperature, top_k, top_p, min_p
):
    mine = SampleOptions(
        temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, logprobs=2
    )
    logits = random_logits(3, 63, seed % 1000)
    alone = sample(logits[1:2], mine, seeded(seed))
    others = SampleOptions(temperature=2.0, top_k=5, top_p=0.5)
    among = sample(logits, [others, mine, others], seeded(1, seed, 2))
    assert alone.tokens[0] == among.tokens[1]
    assert torch.equal(alone.logprobs[0], among.logprobs[1])
    assert torch.equal(alone.top_ids[0], among.top_ids[1])


def test_the_same_seed_draws_the_same_tokens():
    logits = random_logits(1, 100).expand(50, -1)
    first = sample(logits, SampleOptions(), seeded(*range(50)))
    again = sample(logits, SampleOptions(), seeded(*range(50)))
    assert torch.equal(first.tokens, again.tokens)
    assert first.tokens.unique().numel() > 1


def test_log_probabilities_are_those_of_the_logits_as_they_came():
    logits = random_logits(3, 63)
    options = SampleOptions(temperature=0.5, top_k=3, logprobs=4)
    out = sample(logits, options, seeded(1, 2, 3))
    expected = torch.log_softmax(logits.double(), -1)
    assert torch.allclose(
        out.logprobs, expected.gather(-1, out.tokens[:, None])[:, 0], atol=1e-12
    )
    assert out.top_ids.shape == (3, 4)
    assert torch.allclose(out.top_logprobs, expected.topk(4).values, atol=1e-12)


def test_more_alternatives_than_tokens_are_all_of_them():
    out = sample(random_logits(1, 5), SampleOptions(logprobs=9), seeded(0))
    assert sorted(out.top_ids[0].tolist()) == [0, 1, 2, 3, 4]


def test_no_rows_are_no_tokens():
    out = sample(torch.empty(0, 5), SampleOptions(), [])
    assert out.tokens.shape == (0,)


def test_bfloat16_logits_are_accepted():
    out = sample(random_logits(2, 9).bfloat16(), SampleOptions(), seeded(0, 1))
    assert out.tokens.shape == (2,)


@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_logits_that_are_no_numbers_are_refused(poison):
    logits = random_logits(3, 9)
    logits[1, 4] = poison
    with pytest.raises(RequestError, match=r"row 1 holds NaN, \+inf or nothing finite"):
        sample(logits, SampleOptions(temperature=0.0), seeded(0, 1, 2))


def test_a_row_with_every_token_ruled_out_is_refused():
    with pytest.raises(RequestError, match="row 0"):
        sample(torch.full((1, 4), -math.inf), SampleOptions(), seeded(0))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"temperature": -0.1}, "temperature must be at least 0 and finite: got -0.1"),
        ({"temperature": math.nan}, "temperature must be at least 0"),
        ({"temperature": math.inf}, "temperature must be at least 0"),
        ({"top_k": -1}, "top_k must be a whole number"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1: got 0.0"),
        ({"top_p": 1.5}, "top_p must be above 0"),
        ({"min_p": -0.5}, "min_p must be at least 0"),
        ({"logprobs": -1}, "logprobs must be a whole number"),
    ],
)
def test_values_out_of_range_are_refused(option, message):
    with pytest.raises(RequestError, match=message):
        SampleOptions(**option)


def test_all_wrong_values_are_named_at_once():
    with pytest.raises(RequestError, match=r"temperature.*top_p.*min_p"):
        SampleOptions(temperature=-1.0, top_p=2.0, min_p=3.0)


def test_one_generator_and_one_set_of_options_a_row():
    with pytest.raises(RequestError, match="one generator for each row"):
        sample(random_logits(2, 5), SampleOptions(), seeded(0))
    with pytest.raises(RequestError, match="one set of options"):
        sample(random_logits(2, 5), [SampleOptions()], seeded(0, 1))


CUTS = [
    SampleOptions(top_p=0.95),
    SampleOptions(top_p=0.3, top_k=40),
    SampleOptions(top_k=256),
    SampleOptions(top_k=1000, top_p=0.999),
    SampleOptions(top_k=5000),
    SampleOptions(),
]


@pytest.mark.parametrize("width", [130, 1999, 2300])
@pytest.mark.parametrize("scale", [0.1, 3.0, 12.0])
def test_a_cut_by_the_first_tokens_is_the_cut_of_all(width, scale):
    logits = random_logits(len(CUTS), width, seed=width) * scale
    # Every value many times: equal ones are cut by their ids.
    for given_logits in (logits, logits.round()):
        probs = given_logits.double().softmax(-1)
        want = kernel._cut_tail(probs, CUTS)
        found = [
            kernel._cut_head(probs[i : i + 1], [option])
            for i, option in enumerate(CUTS)
        ]
        for i, row in enumerate(found):
            assert row is None or torch.equal(row[0], want[i])
    reaches = width > 500 and scale > 1
    assert reaches == (kernel._cut_head(probs[:1], CUTS[:1]) is not None)


def test_a_cut_by_the_first_tokens_looks_at_all_where_they_do_not_reach():
    flat = torch.full((1, 8192), 1 / 8192, dtype=torch.float64)
    assert kernel._cut_head(flat, [SampleOptions(top_p=0.9)]) is None
    assert kernel._cut_head(flat[:, :100], [SampleOptions(top_p=0.01)]) is None
    kept = kernel._cut_head(flat, [SampleOptions(top_p=0.1875)])
    assert kept is not None
    assert kept.count_nonzero() == 1536
    assert kept[0, 1535] > 0
