"""Transcripts beside each other: by score, by a judge, and what does not fit."""

import json
from dataclasses import asdict

import pytest

from k3.errors import RequestError
from k3.eval import compare
from k3.eval.protocol import Protocol
from k3.post.judge import ProgramJudge
from k3.post.rubric import Line, Rubric

CHAT = Protocol(name="chat", task="chat", judge="words")


def write(folder, rights, protocol=CHAT, name="chat.jsonl"):
    folder.mkdir(exist_ok=True)
    lines = [{"protocol": asdict(protocol), "facts": {}}]
    lines += [
        {
            "index": index,
            "sample": sample,
            "question": "q",
            "answer": "x" * int(right + index),
            "scores": {"right": right},
        }
        for index, samples in enumerate(rights)
        for sample, right in enumerate(samples)
    ]
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_runs_are_rated_on_the_questions_that_they_share(tmp_path):
    a = write(tmp_path / "a", [[1.0], [1.0], [0.0], [1.0]])
    b = write(tmp_path / "b", [[0.0], [1.0], [0.0]])
    (found,) = compare.compare([a, b])
    assert (found.name, found.questions, found.differs) == ("chat", 3, ())
    one, two = found.ratings
    assert (one.name, two.name) == ("a", "b")
    # One won, two ties.
    assert one.wins == pytest.approx(2 / 3)
    assert one.elo > 1000 > two.elo


def test_samples_meet_each_other(tmp_path):
    runs = [
        [
            {"index": 0, "sample": i, "scores": {"right": r}}
            for i, r in enumerate(rights)
        ]
        for rights in ([1.0, 0.0], [1.0, 0.0, 0.0])
    ]
    found = compare.table(runs, compare.by_score("right"))
    # Of six pairs two are won, one is lost, three are ties.
    assert found[0, 0, 1] == pytest.approx(3.5 / 6)
    assert found[0, 1, 0] == pytest.approx(2.5 / 6)


def test_conditions_that_differ_are_named(tmp_path):
    a = write(tmp_path / "a", [[1.0]])
    hot = Protocol(name="chat", task="chat", judge="words", temperature=1.0, batch=3)
    b = write(tmp_path / "b", [[1.0]], hot)
    (found,) = compare.compare([a, b])
    assert found.differs == ("temperature",)


def test_a_judge_decides_in_both_orders(tmp_path):
    a = write(tmp_path / "a", [[1.0], [1.0]])
    b = write(tmp_path / "b", [[0.0], [2.0]])
    judge = ProgramJudge(lambda task, text: {"long": float(len(text))})
    rubric = Rubric(lines=(Line(name="long", text="Longer."),))
    (found,) = compare.compare([a, b], compare.by_judge(judge, rubric))
    assert found.ratings[0].wins == 0.5


def test_what_cannot_be_compared_is_refused(tmp_path):
    a, b = write(tmp_path / "a", [[1.0]]), write(tmp_path / "b", [[1.0]])
    with pytest.raises(RequestError, match="needs two folders of transcripts: got 1"):
        compare.compare([a])
    with pytest.raises(RequestError, match=r"no such folder: .*c"):
        compare.compare([a, tmp_path / "c"])
    with pytest.raises(RequestError, match="a folder is compared with others"):
        compare.compare([a, a])
    other = write(tmp_path / "d", [[1.0]], Protocol(name="chat", task="recall"))
    with pytest.raises(RequestError, match="one task in all folders: got chat, recall"):
        compare.compare([a, other])
    (b / "chat.jsonl").rename(b / "recall.jsonl")
    with pytest.raises(RequestError, match="share no transcript"):
        compare.compare([a, b])
    write(b, [])
    with pytest.raises(RequestError, match=r"a question that they share: got 2 .* 0"):
        compare.compare([a, b])
