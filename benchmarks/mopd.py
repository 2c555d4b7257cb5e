"""One student of three teachers: how much of each one's gain it keeps (Eq. 15).

    python benchmarks/mopd.py [--out runs/mopd] [--small] [--iterations 36]

The start is the shipped model after a short fine-tuning on dialogues of all three
tasks. Each teacher is the start, fine-tuned further on one task. The student begins as
the start: once with the on-policy loss of Eq. 15, once with the dense one. Rates are of
held-out instances at temperature 1. Prints a JSON line a figure, writes them to
OUT/figures.jsonl. Steps that are there already are not done again.
"""

import argparse
import dataclasses
import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

import k3
from k3.data.tasks.lot import Lot, Split
from k3.data.xtml import Message, RenderOptions
from k3.envs import registry
from k3.envs.environment import Chat
from k3.post import cold, course, distillation, journal, measure, picture, recipes, run
from k3.post.course import Course, Taught
from k3.post.recipes import Recipe
from k3.train import sft

TASKS = {"general-low": "last", "agentic-high": "second", "coding-max": "first"}
"""What each teacher is for, and the task that stands for it."""
PLACES = {"first": 0, "second": 1, "last": 3}
START_STEPS, TEACHER_STEPS = 50, 60
DIALOGUES = 300
FIRST = 10**9
"""Instances of the dialogues, which no rollout begins at."""


@dataclass(slots=True)
class Which:
    """An environment: which of four numbers it is, in one answer without tools."""

    asked: str
    right: int
    answer: str | None = None

    @property
    def wanted(self) -> RenderOptions:
        """No tools, no thinking."""
        return RenderOptions(thinking=False)

    def begin(self) -> list[Chat]:
        """The question."""
        return [{"role": "user", "content": self.asked}]

    def reply(self, message: Message) -> list[Chat] | None:
        """Nothing follows the answer."""
        self.answer = message.content or ""
        return None

    def score(self) -> float:
        """1 for an answer that ends with the number, and says little else."""
        words = re.findall(r"\w+", self.answer or "")
        return float(len(words) <= 5 and words[-1:] == [str(self.right)])

    def close(self) -> None:
        """It holds nothing."""

    def solve(self, messages: Sequence[Chat]) -> Message:
        """The right answer."""
        return Message(None, f"It is {self.right}.", (), "stop")


def which(task: str, split: Split, index: int) -> Which:
    """The instance of this index of a task."""
    lot = Lot.of(task, split, index)
    while True:
        numbers = [lot.rng.randint(100, 999) for _ in range(4)]
        if lot.keeps(f"which:{numbers}"):
            break
    said = ", ".join(map(str, numbers))
    return Which(f"Which is the {task} of {said}?", numbers[PLACES[task]])


registry.PLAIN.update({task: partial(which, task) for task in TASKS.values()})


def recipe(name: str, args: argparse.Namespace) -> Recipe:
    """How a task is played."""
    chosen = {"tasks": TASKS[name], "thinking": False, "budget_start": 0}
    return recipes.named(name).set(chosen | {"max_tokens": 24, "workers": 1})


def rates(model: str, args: argparse.Namespace) -> dict[str, Any]:
    """Success of a checkpoint on held-out instances of every task, by teacher."""
    loaded = k3.load(model, dtype=torch.float32, experts="dequantized")
    tokenizer, found = k3.tokenizer(model), {}
    for name in TASKS:
        sampler = run.local(loaded, recipe(name, args), tokenizer)
        told = measure.heldout(sampler, recipe(name, args), tokenizer, args.count)
        found[name] = told[TASKS[name]].to_dict()
    return found


def tuned(base: str, tasks: Sequence[str], steps: int, folder: Path) -> None:
    """Fine-tune a checkpoint on dialogues of a perfect agent, of each task in turn."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    data = folder.with_suffix(".jsonl")
    instances = range(FIRST, FIRST + DIALOGUES)
    each = [cold.dialogues(task, instances) for task in tasks]
    lines = itertools.chain.from_iterable(zip(*each, strict=True))
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    how = {"steps": steps, "batch": 1, "tokens": 512, "workers": 1}
    how["learning_rate"] = 2e-3
    sft.run(base, data, folder, settings=how | {"schedule": "cosine"})


def tell(out: Path, **figure: Any) -> None:
    """Print a figure, and keep it."""
    print(json.dumps(figure), flush=True)
    with (out / "figures.jsonl").open("a") as file:
        file.write(json.dumps(figure) + "\n")


def models(args: argparse.Namespace) -> None:
    """The start and the teachers, with their rates."""
    out, steps = args.out, (3, 3) if args.small else (START_STEPS, TEACHER_STEPS)
    start = out / "start"
    if not (start / "config.json").exists():
        tuned("tiny", list(TASKS.values()), steps[0], start)
        tell(out, model="start", rates=rates(str(start), args))
    for name, task in TASKS.items():
        if not (out / name / "config.json").exists():
            tuned(str(start), [task], steps[1], out / name)
            tell(out, model=name, rates=rates(str(out / name), args))


def student(args: argparse.Namespace, dense: int) -> str:
    """Train a student, on-policy or from so many likely tokens; return its name."""
    settings = {
        "iterations": 2 if args.small else args.iterations,
        "prompts": 6 if args.small else 128,
        "max_tokens": 24,
        "thinking": False,
        "learning_rate": args.rate,
        "heldout": args.count,
        "workers": 1,
    }
    teachers = tuple(
        Taught.read(f"{name}={args.out / name}:{task}") for name, task in TASKS.items()
    )
    chosen = Course(teachers=teachers, recipe=course.RECIPE.set(settings), dense=dense)
    name = f"dense-{dense}" if dense else "on-policy"
    folder = args.out / name
    if not (folder / "config.json").exists():
        found = distillation.distilled(chosen, args.out / "start", folder)
        tell(args.out, model=name, **dataclasses.asdict(found))
    return name


def by_teacher(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The success of each update's samples, by the teacher they were drawn for."""
    lines = list(journal.read(folder / journal.FILE_NAME))
    reward = {x["group"]: x["reward"] for x in lines if x["kind"] == "finished"}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in TASKS}
    for line in (x for x in lines if x["kind"] == "learned"):
        for name, records in found.items():
            theirs = [g for g in line["groups"] if course.teacher_of(g) == name]
            if theirs:
                mean = sum(reward[g] == 1.0 for g in theirs) / len(theirs)
                records.append({"step": line["iteration"] + 1, "success": mean})
    return found


def draw(out: Path, names: Sequence[str]) -> None:
    """A picture of the students: success by teacher and iteration."""
    runs = {
        f"{task}, {name}": by_teacher(out / name)[teacher]
        for name in names
        for teacher, task in TASKS.items()
    }
    title = "Students of three teachers: success of an iteration's samples"
    (out / "mopd.svg").write_text(picture.runs(title, runs, "success"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/mopd"))
    parser.add_argument("--small", action="store_true", help="seconds, no figures")
    parser.add_argument("--iterations", type=int, default=36)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--dense", type=int, nargs="*", default=[0, 16])
    args = parser.parse_args()
    args.count = 6 if args.small else args.count
    torch.set_num_threads(1)
    models(args)
    draw(args.out, [student(args, dense) for dense in args.dense])


if __name__ == "__main__":
    main()
