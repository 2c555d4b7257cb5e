"""Questions and environments over a speaker: scores, tokens, ends, kills."""

import multiprocessing
import os
import random
import signal
import threading
import time

import pytest

from k3.data.tasks import DRAWS, Lot
from k3.data.xtml import Message, ToolCall
from k3.envs import registry
from k3.errors import RequestError
from k3.eval import figures, talk
from k3.eval.protocol import Play, Protocol
from k3.post.speaker import ContextFull, Spoken, Usage

USAGE = Usage(read=10, cached=4, written=3)
CALCULATOR = Play(name="calculator", environment="calculator", count=5, batch=2)
CHAT = Protocol(name="chat", task="chat", judge="words", count=4)


class Says:
    """A speaker that answers what a function of the messages says."""

    def __init__(self, says):
        self.says, self.seen, self.most, self.now = says, [], 0, 0

    def answer(self, messages, wanted, sampling):
        self.now += 1
        self.most = max(self.most, self.now)
        self.seen.append((len(messages), wanted, sampling))
        try:
            return Spoken(message=self.says(messages), usage=USAGE)
        finally:
            self.now -= 1


def instances(count=90):
    made = (registry.named("calculator")("heldout", i) for i in range(count))
    return {each.text: each for each in made}


def solver(wait=0.0):
    """The perfect agent of every instance, told apart by the question."""
    known = instances()

    def says(messages):
        time.sleep(wait)
        return known[messages[0]["content"]].solve(messages)

    return Says(says)


def test_a_perfect_agent_solves_every_instance():
    speaker, seen = solver(), []
    found = talk.conduct(speaker, CALCULATOR, report=lambda *x: seen.append(x))
    solved, score = found.figures
    assert (solved.name, solved.value, solved.count) == ("solved", 1.0, 5)
    assert (score.name, score.value) == ("score", 1.0)
    assert found.score is solved
    assert seen == [(i, 5) for i in range(1, 6)]
    assert 1 <= speaker.most <= 2
    first = found.records[0]
    assert (first["ended"], first["turns"], first["shortened"]) == ("end", 2, 0)
    assert first["usage"] == {"read": 20, "cached": 8, "written": 6}
    assert [m["role"] for m in first["messages"]] == [
        *("user", "assistant", "tool", "assistant")
    ]
    assert first["question"] in instances()
    assert first["answer"] == first["messages"][-1]["content"]


def full(_):
    raise ContextFull("full")


def called(arguments):
    call = ToolCall("calculator", arguments)
    return Message(None, None, (call,), "tool_calls")


def loop(_):
    return called("{}")


@pytest.mark.parametrize(
    ("says", "turns", "ended", "answers"),
    [
        (lambda _: Message(None, "It is 7.", (), "stop"), 9, "end", 1),
        (lambda _: Message(None, "It is", (), "length"), 9, "length", 1),
        (full, 9, "context", 0),
        (loop, 2, "turns", 2),
        (lambda _: called("[1]"), 9, "format", 1),
    ],
)
def test_each_end_is_told_and_scores_nothing(says, turns, ended, answers):
    play = Play(name="c", environment="calculator", count=1, turns=turns)
    (record,) = talk.conduct(Says(says), play).records
    assert (record["ended"], record["turns"]) == (ended, answers)
    assert record["scores"] == {"solved": 0.0, "score": 0.0}


def test_conditions_reach_the_speaker():
    play = Play(
        name="c",
        environment="calculator",
        count=2,
        samples=2,
        temperature=1,
        top_p=0.9,
        effort="low",
        max_tokens=7,
        context_tokens=99,
        seed=5,
    )
    speaker = solver()
    talk.conduct(speaker, play)
    for _, wanted, sampling in speaker.seen:
        assert (wanted.thinking, wanted.thinking_effort) == (True, "low")
        assert (sampling.temperature, sampling.top_p) == (1.0, 0.9)
        assert (sampling.max_tokens, sampling.context_tokens) == (7, 99)
    first = {s.seed for length, _, s in speaker.seen if length == 1}
    assert len(first) == 4


def test_questions_are_asked_with_their_tools_and_judged():
    def right(messages):
        for index in range(CHAT.count):
            item = DRAWS["chat"](Lot.of("chat", "heldout", index))
            if item.messages[0] == messages[0]:
                return Message(None, item.messages[1]["content"], (), "stop")
        raise AssertionError("a question that was not drawn")

    found = talk.conduct(Says(right), CHAT)
    assert [f.value for f in found.figures] == [1.0, 1.0]
    assert found.records[0]["usage"] == {"read": 10, "cached": 4, "written": 3}
    none = talk.conduct(Says(full), CHAT)
    assert none.score.value == 0
    assert none.records[0]["ended"] == "context"


def test_texts_and_pictures_need_the_model_here():
    for task in ("recall", "digits"):
        protocol = Protocol(name=task, task=task, count=1)
        with pytest.raises(RequestError, match=f"{task} asks for the continuation"):
            talk.conduct(Says(full), protocol)


def test_a_failure_ends_the_run_and_keeps_what_had_ended(tmp_path):
    known, lock, count = solver(), threading.Lock(), [0]

    def fails(messages):
        with lock:
            count[0] += 1
            if count[0] == 7:
                raise RequestError("the server is gone")
        return known.says(messages)

    file = tmp_path / "c.jsonl"
    with pytest.raises(RequestError, match="the server is gone"):
        talk.conduct(Says(fails), CALCULATOR, transcript=file)
    kept = len(file.read_text().splitlines()) - 1
    assert kept >= 2
    again = solver()
    found = talk.conduct(again, CALCULATOR, transcript=file)
    assert found.score.value == 1.0
    assert len(again.seen) == 2 * (5 - kept)


def _run(file, count):
    play = Play(name="c", environment="calculator", count=count, batch=3)
    talk.conduct(solver(0.002), play, transcript=file)
    os._exit(0)


def whole(file):
    """Answers whose lines are complete."""
    lines = file.read_bytes().splitlines(True) if file.exists() else []
    return max(0, sum(line.endswith(b"\n") for line in lines) - 1)


def kills(file, count, times, rng):
    """Kill a run so often as it writes; what it had kept is there afterwards."""
    context = multiprocessing.get_context("fork")
    for _ in range(times):
        before = whole(file)
        process = context.Process(target=_run, args=(file, count))
        process.start()
        while whole(file) == before and process.is_alive():
            time.sleep(rng.uniform(0.0, 0.004))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert whole(file) >= before


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("count", "times"), [(12, 3), pytest.param(90, 30, marks=pytest.mark.slow)]
)
def test_a_killed_run_loses_nothing_that_had_ended(tmp_path, count, times):
    file = tmp_path / "c.jsonl"
    kills(file, count, times, random.Random(times))
    play = Play(name="c", environment="calculator", count=count, batch=3)
    found = talk.conduct(solver(), play, transcript=file)
    assert (found.score.count, found.score.value) == (count, 1.0)
    assert [r["index"] for r in found.records] == list(range(count))


def test_samples_give_pass_at_k():
    turn = {"count": 0}

    def sometimes(messages):
        turn["count"] += 1
        return Message(None, "no", (), "stop")

    play = Play(name="c", environment="calculator", count=2, samples=4, temperature=1.0)
    found = talk.conduct(Says(sometimes), play)
    names = [figure.name for figure in found.figures]
    assert names[:3] == ["solved", "solved@2", "solved@4"]
    assert found.figures == figures.summarize(
        [(r["index"], r["scores"]) for r in found.records]
    )


@pytest.mark.parametrize("preset", ["assistant", "react"])
def test_a_harness_is_played_by_its_own_rules(preset):
    name = f"arithmetic@{preset}"
    played = Play(name=name, environment=name, count=1)
    perfect = Says(registry.named(name)("heldout", 0).solve)
    (record,) = talk.conduct(perfect, played).records
    assert record["scores"] == {"solved": 1.0, "score": 1.0}
