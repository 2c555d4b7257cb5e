"""What MOPD is told, and which teacher each prompt is drawn for."""

from collections import Counter

import pytest

import k3
from k3.errors import RequestError
from k3.post.course import RECIPE, Course, Draws, Taught, shares, teacher_of
from k3.post.recipes import TASKS
from k3.train.distill import Teacher

A = Taught.read("agentic-low=a:calculator")
B = Taught.read("general-max=b/c:lookup,calculator")


def test_a_teacher_is_read_from_a_line():
    assert A == Taught(
        teacher=Teacher("agentic", "low"), model="a", tasks=("calculator",)
    )
    assert (B.name, B.model, B.tasks) == (
        "general-max",
        "b/c",
        ("lookup", "calculator"),
    )
    assert Taught.read("coding-high=x").tasks == TASKS["coding"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("agentic-low", "a teacher is DOMAIN-EFFORT=FOLDER"),
        ("agentic-low=", "a teacher is DOMAIN-EFFORT=FOLDER"),
        ("chess-low=a", "a teacher is one of general, agentic, coding by"),
        ("=a", "a teacher is one of general, agentic, coding by"),
    ],
)
def test_other_lines_are_refused(line, sentence):
    with pytest.raises(RequestError, match=sentence):
        Taught.read(line)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"teachers": ()}, "at least one teacher, one of each name: got \\[\\]"),
        ({"teachers": (A, A)}, "one of each name: got \\['agentic-low', 'agentic-low"),
        ({"teachers": (A,), "limit": 0.0}, "limit must be above 0"),
        ({"teachers": (A,), "dense": -1}, "dense at least 0: got 5.0 and -1"),
    ],
)
def test_courses_that_teach_nothing_are_refused(given, sentence):
    with pytest.raises(RequestError, match=sentence):
        Course(**given)


def test_prompts_are_drawn_by_weight_and_known_by_their_number():
    heavy = Taught(teacher=B.teacher, model="b", tasks=B.tasks, weight=3.0)
    course = Course(teachers=(A, heavy))
    names = Counter(course.drawn(n).name for n in range(4000))
    assert names["general-max"] == pytest.approx(3000, abs=120)
    draws = Draws(course, k3.tokenizer("tiny"))
    first = [draws()[0] for _ in range(9)]
    draws.number = 4
    assert [draws()[0] for _ in range(5)] == first[4:]
    assert first == [
        f"{t.name}/{t.tasks[n % len(t.tasks)]}:{n // len(t.tasks)}"
        for n, t in enumerate(map(course.drawn, range(9)))
    ]


def test_a_group_tells_its_teacher_and_its_environment():
    course = Course(teachers=(A, B), recipe=RECIPE.set({"thinking": False}))
    name, make = Draws(course, k3.tokenizer("tiny"))()
    assert teacher_of(f"0:{name}") == course.drawn(0).name
    assert make().begin()
    assert shares([f"0:{name}", "1:agentic-low/calculator:0"])["agentic-low"] > 0


@pytest.mark.parametrize("name", ["anchor", "budget_start", "penalty"])
def test_settings_that_would_do_nothing_are_refused(name):
    taught = Taught.read("agentic-low=tiny:calculator")
    with pytest.raises(RequestError, match=f"teacher alone: got {name}; leave"):
        Course(teachers=(taught,), recipe=RECIPE.set({name: 0.5}))
