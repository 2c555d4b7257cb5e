"""Runs: every question once, transcripts that resume, answers read as written."""

import json

import pytest

import k3
from k3 import eval as evaluation
from k3.checkpoint import locate
from k3.data import tasks
from k3.errors import RequestError
from k3.eval import judge
from k3.eval.protocol import Protocol
from k3.model.generate import Completion


@pytest.fixture(scope="module")
def tiny():
    return k3.load("tiny"), k3.tokenizer(locate.locate("tiny"))


def protocol(**changes):
    plain = {
        "name": "recall",
        "task": "recall",
        "count": 5,
        "max_tokens": 1,
        "batch": 2,
    }
    return Protocol(**(plain | changes))


def completion(ids):
    return Completion(ids=ids, logprobs=[], alternatives=[], text="", finish="stop")


@pytest.mark.parametrize("name", evaluation.PROTOCOLS)
def test_the_wanted_answer_scores_one_and_none_does_not(tiny, name):
    _, tokenizer = tiny
    found = evaluation.named(name)
    task = tasks.named(found.task, tokenizer, "heldout")
    for index in range(3):
        example, question = task.example(index), task.question(index)
        rest, learned = (
            x[len(question.ids) :].tolist() for x in (example.ids, example.learned)
        )
        end = (*learned, False).index(False)
        answer, text = rest[:end], tokenizer.decode(rest[:end])
        right = Completion(
            ids=answer, logprobs=[], alternatives=[], text=text, finish="stop"
        )
        scores = judge.JUDGES[found.judge](
            judge.read(right, question, tokenizer), question
        )
        assert set(scores.values()) == {1.0}
        assert found.score in scores
        wrong = judge.read(completion([]), question, tokenizer)
        assert judge.JUDGES[found.judge](wrong, question)["right"] == 0.0


def test_a_transcript_resumes_and_gives_the_same_figures(tiny, tmp_path):
    file, seen = tmp_path / "deep" / "recall.jsonl", []
    whole = evaluation.run(*tiny, protocol(), transcript=file)
    lines = file.read_bytes().splitlines()
    assert len(lines) == 6
    file.write_bytes(b"\n".join(lines[:3]) + b'\n{"index": 2, "sam')
    again = evaluation.run(
        *tiny, protocol(), transcript=file, report=lambda *x: seen.append(x)
    )
    assert again == whole
    assert seen == [(4, 5), (5, 5)]
    assert [json.loads(line) for line in file.read_bytes().splitlines()] == [
        json.loads(line) for line in lines
    ]


def test_a_transcript_of_another_run_is_refused(tiny, tmp_path):
    file = tmp_path / "recall.jsonl"
    evaluation.run(*tiny, protocol(count=1), transcript=file, facts={"model": "a"})
    with pytest.raises(RequestError, match=r"recall\.jsonl is of another protocol"):
        evaluation.run(*tiny, protocol(count=1), transcript=file, facts={"model": "b"})


def test_samples_differ_and_repeat_with_the_seed(tiny):
    hot = protocol(count=2, samples=4, temperature=2.0)
    one, two = (evaluation.run(*tiny, hot) for _ in range(2))
    assert one == two
    assert len({record["answer"] for record in one.records}) > 2
    assert [figure.name for figure in one.figures] == ["right", "right@2", "right@4"]
    assert one.score.count == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": 0, "batch": 0}, "count must be at least 1: got 0; batch must be"),
        ({"samples": 2}, "several samples need a temperature above 0: got samples=2"),
    ],
)
def test_a_protocol_that_means_nothing_is_refused(changes, message):
    with pytest.raises(RequestError, match=message):
        protocol(**changes)


def test_an_unknown_protocol_is_refused():
    with pytest.raises(RequestError, match=r"digits, recall, .*: got 'mmlu'"):
        evaluation.named("mmlu")
