"""Lessons of teachers: each token has the word of its own, and no gradient is lost."""

import pytest
import torch
from small import ids, model

from k3.post import mopd, policy
from k3.train import distill
from k3.train.trajectory import Trajectory

pytestmark = pytest.mark.usefixtures("unchecked")
NAMES = ("agentic-low", "general-max")


@pytest.fixture(scope="module")
def nets():
    return {name: model(seed=seed) for seed, name in enumerate(NAMES)}


@pytest.fixture(scope="module")
def student():
    return model(seed=7)


class Nowhere:
    """An episode that nobody asks anything."""

    def begin(self):
        raise AssertionError

    def reply(self, written):
        raise AssertionError

    def reward(self):
        return 0.0


def sample(student, number, length, turns):
    """A trajectory whose turns (of the policy) lie at these ranges."""
    tokens = ids(length, seed=number).tolist()
    name = NAMES[number % 2]
    one = Trajectory(f"{number}", f"{number}:{name}/task:{number}", Nowhere())
    at = 0
    for turn in turns:
        one.hear(tokens[at : turn.start])
        with torch.no_grad():
            logits = student(torch.tensor([tokens])).log_softmax(-1)[0]
        own = [float(logits[i - 1, tokens[i]]) for i in turn]
        one.tokens += tokens[turn.start : turn.stop]
        one.written += [True] * len(turn)
        one.logprobs += own
        one.versions += [0] * len(turn)
        at = turn.stop
    one.reward = 0.0
    return one


@pytest.fixture(scope="module")
def samples(student):
    shapes = [(17, [range(5, 17)]), (29, [range(3, 9), range(20, 29)])]
    return [sample(student, n, *shapes[n % 2]) for n in range(4)]


@pytest.mark.parametrize("dense", [0, 3])
@pytest.mark.parametrize("tokens", [1, 40, 10_000])
def test_each_sample_is_scored_by_the_teacher_it_was_drawn_for(
    nets, samples, dense, tokens
):
    scoring = mopd.Scoring(nets, tokens, dense)
    found = scoring([([one], [0.0]) for one in samples])
    assert len(found) == 4
    for lesson in found:
        (one,) = [t for t in samples if t.tokens == lesson.tokens.tolist()]
        net = nets[NAMES[int(one.key) % 2]]
        with torch.no_grad():
            every = net(lesson.tokens[None]).log_softmax(-1)[0]
        places = [at for at, own in enumerate(one.written) if own]
        want = [float(every[at - 1, one.tokens[at]]) for at in places]
        assert lesson.teacher.tolist() == pytest.approx(want, abs=2e-5)
        assert lesson.likely_ids.shape == lesson.likely.shape == (len(places), dense)
        for at, likely in zip(places, lesson.likely, strict=True):
            top = every[at - 1].topk(dense).values.tolist()
            assert likely.tolist() == pytest.approx(top, abs=2e-5)


def gradient(student, objective, lessons):
    each, now = objective(student, lessons, None)
    assert each.shape == now.shape
    parameters = [p for p in student.parameters() if p.requires_grad]
    return now, torch.autograd.grad(each.sum(), parameters, allow_unused=True)


def test_the_gradient_is_reward_times_that_of_the_log_probability(
    nets, student, samples
):
    """Nothing comes through the reward, nor through the weight of stale tokens."""
    lessons = mopd.Scoring(nets, 100)([([one], [0.0]) for one in samples])
    now, found = gradient(student, mopd.objective(0.5), lessons)
    teacher = torch.cat([x.teacher for x in lessons])
    reward = distill.reward(teacher, now.detach(), 0.5)
    then = torch.cat([x.then[x.written] for x in lessons])
    weight = (now - then).detach().exp().clamp(max=2.0)
    assert bool(((teacher - now).abs() > 0.5).any())

    def plain(net, lessons, taps):
        now = policy.logprobs(net, lessons, taps)
        return -(weight * reward) * now, now

    _, want = gradient(student, plain, lessons)
    for a, b in zip(found, want, strict=True):
        assert (a is None) == (b is None)
        assert a is None or torch.allclose(a, b, atol=1e-6)


def test_the_dense_loss_is_that_of_likely_tokens(nets, student, samples):
    lessons = mopd.Scoring(nets, 100, 5)([([one], [0.0]) for one in samples[:2]])
    each, now = mopd.objective(5.0, 5)(student, lessons, None)
    want = policy.logprobs(student, lessons)
    assert torch.allclose(now, want, atol=1e-6)
    logits, _ = policy.predicted(student, lessons)
    parts = (
        torch.cat([getattr(x, n) for x in lessons]) for n in ("likely_ids", "likely")
    )
    assert torch.allclose(each, distill.dense_loss(logits, *parts))
    assert bool((each >= -1e-6).all())


def test_a_student_that_is_its_teacher_learns_nothing(nets, samples):
    net = nets[NAMES[0]]
    lessons = mopd.Scoring(dict.fromkeys(NAMES, net), 100)([(samples, [0.0] * 4)])
    each, _ = mopd.objective(5.0)(net, lessons, None)
    assert float(each.detach().abs().max()) <= 1e-4
