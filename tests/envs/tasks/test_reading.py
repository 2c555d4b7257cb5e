"""Questions over documents: answered by search, right only with what was opened."""

import pytest

from k3.data.tasks import lot
from k3.envs import harness
from k3.envs.documents import citation
from k3.envs.environment import play
from k3.envs.harness import PRESETS, Harnessed
from k3.envs.tasks import inheritance, research, retrieval
from k3.errors import RequestError

MAKERS = (retrieval.make, research.make, inheritance.make)


def played_by(task, steps, name="assistant"):
    played = Harnessed(task, harness.preset(name))
    return play(played, harness.agent(played, steps))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("split", lot.SPLITS)
def test_every_question_is_answered_from_the_documents(make, split):
    for index in range(10):
        task = make(split, index)
        assert played_by(task, task.solve(), PRESETS[index % len(PRESETS)]) == 1.0


def only(answer):
    yield from ()
    return answer


def opened(task, change):
    """The perfect agent's reading, and its answer changed."""
    answer = yield from task.solve()
    return change(answer)


def unopened(task):
    """The right quotes, without opening what they are of."""
    cited = citation.read(task.answer)
    for name, _ in cited.citations:
        yield "search", {"query": name}
    return task.answer


def drop_last(answer):
    return "\n".join(answer.splitlines()[:-1])


def invent(answer):
    return answer.replace("\n[", "\n[not-", 1)


def hedge(answer):
    first, _, rest = answer.partition("\n")
    return f"{first}, or another\n{rest}"


def quote_nothing(answer):
    first, *rest = answer.splitlines()
    return "\n".join([first, *(f"{line.split(']')[0]}] {first}" for line in rest)])


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("index", range(4))
def test_cheaters_and_the_empty_get_nothing(make, index):
    whole = make("train", index)
    assert played_by(whole, whole.solve()) == 1.0
    for change in (drop_last, invent, hedge, quote_nothing):
        task = make("train", index)
        assert played_by(task, opened(task, change)) == 0.0, change
    assert played_by(make("train", index), unopened(whole)) == 0.0
    for answer in ("", whole.right, f"{whole.right}\n[x] {whole.right}", whole.answer):
        assert played_by(make("train", index), only(answer)) == 0.0


@pytest.mark.parametrize("make", MAKERS)
def test_the_splits_have_no_question_in_common(make):
    train, held = ({make(s, i).question for i in range(25)} for s in lot.SPLITS)
    assert not train & held


def test_difficulty_is_depth_and_every_fifth_question_has_two_paths():
    counts = [len(research.make("train", index).passages) for index in range(4)]
    assert counts == [1, 2, 3, 4]
    assert ", " in research.make("train", 4).right
    assert [len(inheritance.make("train", i).passages) for i in range(3)] == [1, 2, 3]


def test_without_the_sources_of_python_there_is_a_sentence(monkeypatch, tmp_path):
    inheritance._shelf.cache_clear()
    monkeypatch.setattr(inheritance.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(RequestError, match=r"needs the source files .*: got 0 of them"):
        inheritance.make("train", 0)
    inheritance._shelf.cache_clear()
