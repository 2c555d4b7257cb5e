"""The anchor: a policy that learns is held near a frozen one."""

import bandit
import pytest
import torch

from k3.post import anchor, policy, rl
from k3.post.lesson import Lesson
from k3.post.run import prepared
from k3.train.rl import PolicyOptions
from k3.train.trajectory import Trajectory

pytestmark = pytest.mark.usefixtures("unchecked")


def lesson(ids, written, advantage=0.0):
    tokens = torch.tensor(ids)
    own = torch.zeros(len(ids), dtype=torch.bool)
    own[list(written)] = True
    nothing = torch.zeros(len(ids))
    return Lesson(tokens, own, nothing, nothing.long(), advantage)


def sample(number, reward):
    one = Trajectory(f"{number}", "0:even", bandit.Even(number))
    one.hear([400, 401, 402 + number])
    one.tokens += [7 + number, 8]
    one.written += [True, True]
    one.logprobs += [-1.0, -2.0]
    one.versions += [0, 0]
    one.reward = reward
    return one


def test_each_lesson_has_the_word_of_the_frozen_policy():
    frozen = bandit.model()
    group = [sample(n, float(n % 2)) for n in range(5)]
    made = anchor.Anchor(frozen, tokens=12)([(group, [t.reward for t in group])])
    plain = rl.reinforced([(group, [t.reward for t in group])])
    assert [x.advantage for x in made] == [x.advantage for x in plain]
    for one in made:
        with torch.no_grad():
            logits = frozen(one.tokens[None]).log_softmax(-1)[0]
        want = [float(logits[at - 1, one.tokens[at]]) for at in (3, 4)]
        assert one.frozen.tolist() == pytest.approx(want, abs=2e-5)


def test_its_gradient_is_zero_at_the_frozen_policy_and_leads_back_to_it_elsewhere():
    model, other = bandit.model(), bandit.model()
    with torch.no_grad():
        other.language_model.lm_head.weight.mul_(1.5)
    plain = lesson([400, 401, 402, 9, 11, 300], (3, 4, 5))
    options = PolicyOptions(penalty=0.0, anchor=1.0)
    weight = model.language_model.lm_head.weight

    def step(frozen):
        with torch.no_grad():
            said = policy.logprobs(frozen, [plain])
        (held,) = [Lesson(*_values(plain), frozen=said)]
        each, now = policy.reinforced(options)(model, [held], None)
        (gradient,) = torch.autograd.grad(each.sum(), weight)
        return each.detach(), gradient, (said - now).detach()

    # A pass without a gradient rounds a little otherwise.
    losses, still, _ = step(model)
    assert losses.abs().max() < 1e-9
    losses, gradient, gap = step(other)
    assert still.abs().max() < 1e-4 * gradient.abs().max()
    torch.testing.assert_close(losses, gap.exp() - 1 - gap)
    with torch.no_grad():
        weight -= 1e-2 * gradient
    assert step(other)[0].sum() < losses.sum()


def _values(one):
    return one.tokens, one.written, one.then, one.versions, one.advantage


def test_a_run_is_held_near_where_it_began(tmp_path):
    """The first update knows no distance; later ones less of it than without."""
    moved = {}
    for weight in (1e-9, 30.0):
        chosen, records = bandit.recipe(anchor=weight, iterations=4), []
        frozen = bandit.model()
        # As in a checkpoint: experts have the values of four bits.
        prepared(frozen, chosen)
        held = anchor.Anchor(frozen, chosen.pass_tokens)
        folder = tmp_path / str(weight)
        folder.mkdir()
        bandit.run(folder, chosen, report=records.append, teach=held)
        told = [r["anchor"] for r in records if "anchor" in r]
        assert told[0] == pytest.approx(0, abs=1e-7)
        moved[weight] = told[-1]
    assert 0 <= moved[30.0] < moved[1e-9]


def test_without_a_weight_nothing_is_opened(tmp_path):
    with anchor.opened(bandit.recipe(), tmp_path / "none") as teach:
        assert teach is rl.reinforced
