"""Experts on ranks = one process: losses, gradients, weights; and what it costs."""

import experts_on_ranks as work
import pytest
import small
import torch

from k3.model import Model
from k3.parallel import Mesh

STEPS = 5


def alone(ranks, steps=STEPS):
    """The same training in this process, over the rows of all ranks."""
    batches = [
        (work.rows(s, ranks), work.rows(s, ranks)[:, 1:].numel()) for s in range(steps)
    ]
    return work.train(work.made(5), batches)


def same_training(told, want, ranks):
    losses, gradients, weights = want
    for rank, (got_losses, got_gradients, got_weights, _) in enumerate(told):
        assert small.gap(got_losses, losses) < 1e-9
        per = 12 // ranks
        for name, g in gradients.items():
            part = g[rank * per : rank * per + per] if ".experts.w" in name else g
            assert small.gap(got_gradients[name], part) < 1e-7, name
        for name, w in got_weights.items():
            assert small.gap(w, weights[name]) < 1e-5, name
    names = [set(weights) for _, _, weights, _ in told]
    assert set.union(*names) == set(weights)


@pytest.mark.parametrize("balanced", [False, True])
def test_two_ranks_train_as_one_process(two, balanced):
    told = two(Mesh(expert=2), work.trained, balanced, STEPS)
    same_training(told, alone(2), 2)


@pytest.mark.slow
@pytest.mark.parametrize("balanced", [False, True])
def test_four_ranks_train_as_one_process(four, balanced):
    told = four(Mesh(expert=4), work.trained, balanced, STEPS)
    same_training(told, alone(4), 4)


def test_balanced_ranks_hold_exactly_their_slots(two):
    """All tokens choose three experts of rank 1: plain gives it all 2 S K slots."""
    S, K = 9, 3
    plain = two(Mesh(expert=2), work.trained, False, 1)
    balanced = two(Mesh(expert=2), work.trained, True, 1)
    assert {layer[0] for told in balanced for layer in told[3]} == {S * K}
    assert [layer[0] for layer in plain[1][3]] == [2 * S * K] * len(plain[1][3])
    assert [layer[0] for layer in plain[0][3]] == [0] * len(plain[0][3])
    copies = [layer[1] for layer in balanced[0][3]]
    assert max(copies) <= 12 // 2
    assert min(copies) >= 1
    assert all("weights" not in layer[2] for told in plain for layer in told[3])


def test_bytes_on_the_wire_are_what_the_plan_says(two):
    """Rank 0's 27 slots all go to rank 1 and come back, forward and backward."""
    first, second = two(Mesh(expert=2), work.trained, False, 1)
    row, L = 8, 18
    for near, far in zip(first[3], second[3], strict=True):
        assert near[2] == {"counts": 12 * 4, "rows": 2 * 27 * L * row}
        assert far[2] == near[2]


@pytest.mark.parametrize("balanced", [False, True])
def test_packed_experts_travel_as_bytes(two, balanced):
    made = work.config(moe_intermediate_size=32, routed_expert_hidden_size=64)
    model = Model(made, dtype=torch.float32, experts="packed")
    model.load_state_dict(work.packed_weights(model))
    work.one_sided(model)
    want = model(work.rows(0, 2)[:, :-1])
    want.square().sum().backward()
    told = two(Mesh(expert=2), work.packed, made.to_dict(), balanced)
    for rank, (logits, gradient, _) in enumerate(told):
        assert small.gap(logits[0], want[rank]) < 1e-5
        wanted = model.language_model.model.embed_tokens.weight.grad
        assert small.gap(gradient, wanted) < 1e-5
    assert {n for told_ in told for n in told_[2]} == set(model.state_dict())


def test_report_85_an_idle_step_of_no_tokens_works(two):
    assert two(Mesh(expert=2), work.idle) == [((1, 0, 26), (1, 0, 26))] * 2


def test_ranks_with_other_numbers_of_tokens_are_refused_where_balanced(two):
    told = two(Mesh(expert=2), work.uneven)
    for rank, (said, logits) in enumerate(told):
        assert "got 39 slots for 2 ranks; give each rank a row of the same" in said
        want = work.made(5)(small.ids(1, 5 + 3 * rank))
        assert small.gap(logits, want) < 1e-9
