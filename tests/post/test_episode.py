"""Messages on one side, tokens on the other; every prompt begins with all before."""

import pytest

import k3
from k3.data import examples, xtml
from k3.data.xtml import RenderOptions
from k3.envs import calculator, environment, lookup
from k3.errors import RequestError
from k3.post import episode
from k3.post.episode import EnvironmentEpisode
from k3.train.rollout import Episode

TASKS = {"calculator": calculator, "lookup": lookup}


@pytest.fixture(scope="module")
def tokenizer():
    return k3.tokenizer("tiny")


def drawn(name):
    return TASKS[name].make("train", 3)


def played(question):
    """All messages of the perfect agent."""
    messages = list(question.begin())
    while True:
        answer = question.solve(messages)
        messages.append(environment.said(answer, question.turns))
        heard = question.reply(answer)
        if heard is None:
            return messages
        messages += heard


def spoken(ids, learned):
    """The turns that the model writes, as runs of ids."""
    runs, before = [], False
    for token, own in zip(ids.tolist(), learned.tolist(), strict=True):
        if own and not before:
            runs.append([])
        if own:
            runs[-1].append(token)
        before = own
    return runs


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("effort", [None, "low"])
def test_a_perfect_dialogue_is_what_the_renderer_makes_of_it(tokenizer, name, effort):
    one = EnvironmentEpisode(drawn(name), tokenizer, effort=effort)
    whole = examples.of_conversation(
        played(drawn(name)), tokenizer, "d", wanted=one.wanted
    )
    assert isinstance(one, Episode)
    tokens = one.begin()
    for turn in spoken(whole.ids, whole.learned):
        tokens += turn
        heard = one.reply(turn)
        tokens += heard or []
    assert heard is None
    assert tokens == whole.ids.tolist()
    assert one.reward() == 1.0


def test_an_answer_cut_by_the_limit_ends_the_episode(tokenizer):
    question = drawn("calculator")
    one = EnvironmentEpisode(question, tokenizer)
    one.begin()
    assert one.reply(tokenizer.encode("It is")) is None
    assert (one.reward(), question.turns) == (0.0, 0)


def test_nothing_written_is_an_answer_that_was_cut(tokenizer):
    one = EnvironmentEpisode(drawn("lookup"), tokenizer)
    one.begin()
    assert one.reply([]) is None
    assert one.reward() == 0.0


class Stubborn:
    """Goes on whatever is said, with messages that may be none; counts its closing."""

    def __init__(self, heard=None):
        self.closed, self.wanted = 0, RenderOptions(thinking=False)
        self.heard = heard or [{"role": "user", "content": "go on"}]

    def begin(self):
        return [{"role": "user", "content": "go"}]

    def reply(self, message):
        return self.heard

    def score(self):
        return 0.75

    def close(self):
        self.closed += 1


def answered(tokenizer, text="yes"):
    closing = [
        *xtml.segments.closing("response"),
        *xtml.segments.closing("message"),
        xtml.Segment(xtml.segments.END, special=True),
    ]
    return tokenizer.encode(text) + xtml.segments.encode(closing, tokenizer)


def test_what_a_user_says_next_is_rendered_behind(tokenizer):
    world = Stubborn()
    one = EnvironmentEpisode(world, tokenizer)
    tokens = one.begin()
    for _ in range(3):
        turn = answered(tokenizer)
        tokens += [*turn, *one.reply(turn)]
    assert tokens == xtml.render(one.messages, world.wanted).encode(tokenizer)
    assert world.closed == 0
    assert one.reward() == 0.75
    assert one.reward() == 0.75
    assert world.closed == 1


def test_what_cannot_be_rendered_ends_the_episode(tokenizer):
    one = EnvironmentEpisode(Stubborn([{"role": "nobody"}]), tokenizer)
    one.begin()
    assert one.reply(answered(tokenizer)) is None
    assert one.reward() == 0.75


def test_a_shape_makes_the_reward(tokenizer):
    one = EnvironmentEpisode(
        Stubborn(), tokenizer, shape=lambda world: 2 * world.score() - 1
    )
    one.begin()
    assert one.reward() == 0.5


def test_an_environment_is_closed_where_scoring_fails(tokenizer):
    world = Stubborn()

    def broken():
        raise RequestError("a score is a number: got none; mend it")

    world.score = broken
    one = EnvironmentEpisode(world, tokenizer)
    one.begin()
    with pytest.raises(RequestError, match="a score is a number"):
        one.reward()
    assert world.closed == 1


def test_bytes_that_are_no_text_are_read(tokenizer):
    ids = [*range(40), episode.end_id(tokenizer)]
    message = episode.read(ids, tokenizer, "response")
    assert message.finish_reason == "stop"
    assert message.content
