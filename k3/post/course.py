"""What MOPD is told: the teachers, what is played for each, and how much of each."""

import dataclasses
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.post import recipes
from k3.post.episode import EnvironmentEpisode
from k3.post.prompts import Prompts, task_of
from k3.post.recipes import Recipe
from k3.train import distill
from k3.train.distill import Teacher

RECIPE = Recipe(
    name="mopd",
    domain="general",
    effort="max",
    tasks=("calculator",),
    prompts=64,
    samples=1,
    penalty=0.0,
)
"""Of each prompt one sample: the teacher rewards every token by itself."""

IDLE = (
    *("most_weight", "penalty", "anchor"),
    *("budget_start", "budget_end", "budget_steps", "budget_most"),
)
"""Settings of reinforcement learning that would do nothing here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Taught:
    """A teacher, the folder of its checkpoint, its tasks, and its share of prompts."""

    teacher: Teacher
    model: str
    tasks: tuple[str, ...]
    weight: float = 1.0

    @property
    def name(self) -> str:
        """DOMAIN-EFFORT."""
        return f"{self.teacher.domain}-{self.teacher.effort}"

    @staticmethod
    def read(text: str) -> "Taught":
        """A teacher of `DOMAIN-EFFORT=FOLDER`, with `:TASK,TASK` for its own tasks.

        Raises: RequestError.
        """
        name, given, where = text.partition("=")
        folder, _, tasks = where.partition(":")
        domain, _, effort = name.partition("-")
        teacher = Teacher(domain, effort)
        if not given or not folder:
            raise RequestError(
                f"a teacher is DOMAIN-EFFORT=FOLDER, with :TASK,TASK for its tasks: "
                f"got {text!r}"
            )
        named = tuple(tasks.split(",")) if tasks else recipes.TASKS[domain]
        return Taught(teacher=teacher, model=folder, tasks=named)


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """A run of MOPD. `limit` is R of Eq. 15; `dense` learns from so many of the
    teacher's likeliest tokens instead, at every place that the student has written.
    """

    teachers: tuple[Taught, ...]
    recipe: Recipe = RECIPE
    limit: float = 5.0
    dense: int = 0

    def __post_init__(self) -> None:
        """Refuse what nothing could be learned from."""
        names = [taught.name for taught in self.teachers]
        if not names or len({*names}) < len(names):
            raise RequestError(
                f"MOPD takes at least one teacher, one of each name: got {names}"
            )
        if not self.limit > 0 or self.dense < 0:
            raise RequestError(
                f"limit must be above 0 and dense at least 0: got {self.limit} and "
                f"{self.dense}"
            )
        idle = [n for n in IDLE if getattr(self.recipe, n) != getattr(RECIPE, n)]
        if idle:
            raise RequestError(
                f"MOPD rewards each token by its teacher alone: got {', '.join(idle)}; "
                "leave that out"
            )
        _ = self.drawn(0)

    def drawn(self, number: int) -> Taught:
        """The teacher of the prompt of this number; chance depends on it alone."""
        weights = {taught.teacher: taught.weight for taught in self.teachers}
        chance = random.Random(f"{self.recipe.seed}/{number}").random()
        found = distill.pick(weights, chance)
        return next(taught for taught in self.teachers if taught.teacher == found)

    def recipe_of(self, taught: Taught) -> Recipe:
        """How a teacher's tasks are played."""
        return dataclasses.replace(
            self.recipe,
            domain=taught.teacher.domain,
            effort=taught.teacher.effort,
            tasks=taught.tasks,
        )

    def to_dict(self) -> dict[str, Any]:
        """Values as JSON gives them back."""
        told = dataclasses.asdict(self) | {"recipe": None}
        return dict(json.loads(json.dumps(told))) | self.recipe.to_dict()


class Draws:
    """Called for the next prompt, as `Rollouts` does: it draws the teacher first.

    Its name is DOMAIN-EFFORT/TASK:INDEX; `number` says which prompt comes next.
    """

    def __init__(self, course: Course, tokenizer: Tokenizer) -> None:
        self.course, self.number = course, 0
        self.prompts = {
            taught.name: Prompts(course.recipe_of(taught), tokenizer)
            for taught in course.teachers
        }

    def __call__(self) -> tuple[str, Callable[[], EnvironmentEpisode]]:
        """A name, and what makes an episode of it."""
        taught = self.course.drawn(self.number)
        prompts = self.prompts[taught.name]
        prompts.number = self.number
        self.number += 1
        name, make = prompts()
        return f"{taught.name}/{name}", make


def teacher_of(group: str) -> str:
    """The teacher that a group of `Draws` belongs to, as DOMAIN-EFFORT."""
    return task_of(group).partition("/")[0]


def shares(groups: Sequence[str]) -> dict[str, float]:
    """How much of the groups each teacher has."""
    names = [teacher_of(group) for group in groups]
    return {name: names.count(name) / len(names) for name in sorted({*names})}
