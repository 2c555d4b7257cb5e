"""An update: packed samples, log-probabilities, parity, what moves and what not."""

import math

import pytest
import torch
import toy

from k3.errors import RequestError
from k3.model import Model
from k3.post import policy
from k3.post.policy import Lesson, Policy, UpdateOptions
from k3.train import rl, workers
from k3.train.balance import Balance
from k3.train.masters import Masters
from k3.train.trajectory import Piece, Trajectory

LENGTHS = (9, 5, 17, 6, 3)


class Silent:
    """An environment that says nothing."""

    def begin(self):
        return [1]

    def reply(self, written):
        return None

    def reward(self):
        return 0.0


def lesson(model, length, seed=0, advantage=1.0, version=4):
    """Two turns of random tokens with the model's own log-probabilities."""
    generator = torch.Generator().manual_seed(seed * 100 + length)
    tokens = torch.randint(0, 50, (length,), generator=generator)
    written = torch.zeros(length, dtype=torch.bool)
    written[2:4] = True
    written[6:] = True
    made = Lesson(
        tokens=tokens,
        written=written,
        then=torch.zeros(length),
        versions=torch.full((length,), version),
        advantage=advantage,
    )
    with torch.no_grad():
        made.then[written] = policy.logprobs(model, [made])
    return made


def fresh():
    made = Model(toy.config(), dtype=torch.float32).init_weights(3)
    learner(made)  # what its file would hold
    return made


@pytest.fixture
def model():
    return fresh()


def lessons(model):
    return [lesson(model, n, i, (-1.0) ** i * (1 + i)) for i, n in enumerate(LENGTHS)]


def learner(model, **options):
    masters = Masters(model, betas=(0.9, 0.95), weight_decay=0.0)
    rule = "quantile" if options.get("move_biases") else "none"
    return Policy(model, masters, Balance(model, rule), UpdateOptions(**options))


def updated(made, found, version=4):
    with workers.pool(1) as pool:
        return made.update(found, version, pool)


def test_packed_samples_have_the_log_probabilities_of_each_alone(model):
    found = lessons(model)
    together = policy.logprobs(model, found)
    alone = torch.cat([policy.logprobs(model, [one]) for one in found])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-5)
    one = found[2]
    logits = model(one.tokens[None])[0].log_softmax(-1)
    by_hand = [logits[i - 1, one.tokens[i]] for i in range(17) if one.written[i]]
    torch.testing.assert_close(policy.logprobs(model, [one]), torch.stack(by_hand))


def test_packs_hold_so_many_tokens_or_one_longer_sample(model):
    found = lessons(model)
    sizes = [[len(x) for x in pack] for pack in policy.packed(found, 14)]
    assert sizes == [[9, 5], [17], [6, 3]]
    assert list(policy.packed([], 14)) == []


def test_gradients_are_those_of_the_mean_loss_over_written_tokens(model):
    found = lessons(model)
    made = learner(model, tokens=14)
    seen = []
    made.masters.step = lambda gradients, *rest, **more: seen.append(gradients) or 1.0
    record = updated(made, found)
    now = [policy.logprobs(model, [one]) for one in found]
    losses = torch.cat(
        [
            rl.loss(
                x, x.detach(), torch.full_like(x, one.advantage), UpdateOptions().policy
            )
            for x, one in zip(now, found, strict=True)
        ]
    )
    parameters = list(made.masters.parameters.values())
    wanted = torch.autograd.grad(losses.mean(), parameters, allow_unused=True)
    for a, b in zip(seen[0], wanted, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert record["loss"] == pytest.approx(float(losses.detach().mean()), rel=1e-4)
    assert record["learned_tokens"] == len(losses)


def test_workers_change_no_bit(model):
    after = []
    for count in (1, 3):
        made_anew = fresh()
        made = learner(made_anew, tokens=14)
        with workers.pool(count) as pool:
            made.update(lessons(made_anew), 4, pool)
        after.append({n: p.clone() for n, p in made_anew.named_parameters()})
    for name, value in after[0].items():
        assert torch.equal(value, after[1][name]), name


def test_parity_is_of_the_tokens_of_these_weights(model):
    found = [lesson(model, 9, version=4), lesson(model, 17, 1, -1.0, version=2)]
    found[1].then.sub_(0.5)
    record = updated(learner(model), found)
    assert record["parity"]["max"] < 1e-5
    assert record["parity"]["tokens"] == 5
    assert record["staleness"] == {"mean": 2 * 13 / 18, "max": 2}
    assert record["kl"] > 0.01


def test_a_good_answer_becomes_likelier_and_a_bad_one_less(model):
    good, bad = lesson(model, 9, 1, 1.0), lesson(model, 9, 2, -1.0)
    made = learner(model, learning_rate=1e-2)
    for version in range(4, 8):
        updated(made, [good, bad], version)
    now = [policy.logprobs(model, [x]).detach() for x in (good, bad)]
    assert float(now[0].sum()) > float(good.then[good.written].sum()) + 0.1
    assert float(now[1].sum()) < float(bad.then[bad.written].sum()) - 0.1


def test_steps_share_the_samples(model):
    made = learner(model, steps=2)
    calls = []
    step = made.masters.step
    made.masters.step = lambda *a, **k: calls.append(1) or step(*a, **k)
    record = updated(made, lessons(model))
    assert len(calls) == 2
    assert record["learned_tokens"] == sum(int(x.written.sum()) for x in lessons(model))
    assert record["parity"]["max"] < 1e-5


def test_a_later_step_that_is_skipped_is_told(model):
    made = learner(model, steps=2)
    norms = iter([1.0, math.nan])
    made.masters.step = lambda *a, **k: next(norms)
    record = updated(made, lessons(model))
    assert record["skipped"] == policy.NOT_FINITE
    assert record["gradient_norm"] == 0.5


def test_nothing_to_learn_moves_nothing(model):
    made = learner(model)
    before = {n: p.clone() for n, p in model.named_parameters()}
    assert updated(made, []) == {"learned_tokens": 0}
    for name, value in model.named_parameters():
        assert torch.equal(value, before[name])


def test_biases_move_only_where_it_is_asked(model):
    for moves in (False, True):
        made = learner(model, move_biases=moves)
        before = [b.clone() for b in made.balance.biases]
        updated(made, lessons(model))
        same = [
            torch.equal(a, b) for a, b in zip(before, made.balance.biases, strict=True)
        ]
        assert all(same) != moves


def trajectory(reward, written=3, lost=""):
    one = Trajectory("k", "g", Silent(), reward=reward, lost=lost)
    one.hear([1, 2])
    one.write(Piece("k", (3,) * written, (-1.0,) * written, True), 1)
    return one


def test_equal_rewards_teach_nothing_and_lost_samples_are_left_out():
    equal = [trajectory(1.0), trajectory(1.0)]
    assert policy.lessons(equal, [1.0, 1.0]) == []
    group = [trajectory(1.0), trajectory(0.0), trajectory(0.0, lost="gone")]
    found = policy.lessons(group, [1.0, 0.0, 0.0])
    assert [x.advantage for x in found] == [1.0, -1.0]
    silent = [trajectory(1.0), trajectory(0.0, written=0)]
    assert len(policy.lessons(silent, [1.0, 0.0])) == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tokens": 0}, "tokens must be at least 1: got 0"),
        ({"steps": 0}, "steps must be at least 1: got 0"),
        ({"learning_rate": math.inf}, "learning_rate must be above 0 and finite"),
        ({"clip": math.nan}, "clip must be above 0 and finite: got nan"),
    ],
)
def test_what_could_not_be_learned_with_is_refused(wrong, said):
    with pytest.raises(RequestError, match=said):
        UpdateOptions(**wrong)


def test_a_gradient_that_is_not_finite_moves_nothing(model):
    found = lessons(model)
    found[0].then.fill_(-math.inf)
    made = learner(model)
    before = {n: p.clone() for n, p in model.named_parameters()}
    record = updated(made, found)
    assert record["skipped"] == policy.NOT_FINITE
    assert (record["loss"], record["gradient_norm"]) == (0.0, 0.0)
    for name, value in model.named_parameters():
        assert torch.equal(value, before[name])
