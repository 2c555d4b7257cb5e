"""A run of MOPD: a folder, its teachers, its student, its loop, and what was kept."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from k3.checkpoint import load, locate
from k3.data.tokenizer import Tokenizer
from k3.model import Model
from k3.post import journal, measure, mopd, picture, recover, rl, run
from k3.post.course import Course, Draws, Taught
from k3.post.journal import Journal
from k3.post.rewards import Rewards
from k3.post.rl import Loop, Updated
from k3.train import distill, reference, report, sft, snapshot, workers
from k3.train.writer import Writer

Rates = dict[str, float]
"""Held-out success by teacher, the mean over its tasks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a run did: rates of the student before and after, of the teachers, and the
    share of each teacher's gain that the student has after.
    """

    directory: str
    iteration: int
    seconds: float
    sampled_tokens: int
    learned_tokens: int
    before: Rates
    teachers: Rates
    after: Rates
    retention: Rates


def distilled(
    course: Course,
    base: str | Path,
    out: str | Path,
    *,
    stream: bool = False,
    resume: bool = False,
    quiet: bool = False,
) -> Result:
    """Train the checkpoint `base` by its teachers into the folder `out`.

    With `stream` two layers of each teacher are in memory, and no teacher is measured.
    Raises: RequestError, CheckpointError.
    """
    folder, directory = locate.locate(base), Path(out)
    tokenizer = Tokenizer.load(folder)
    model = load.load(folder, dtype=torch.float32, experts="dequantized")
    facts: dict[str, Any] = {"recipe": course.to_dict(), "base": model.weight_version}
    known = run.open_folder(directory, facts, resume=resume)
    with ExitStack() as stack:
        log = stack.enter_context(Journal(directory / journal.FILE_NAME))
        loop, prompts = _student(course, model, tokenizer, log)
        teachers = _opened(course, stack, stream=stream)
        loop.teach = mopd.Scoring(teachers, course.recipe.pass_tokens, course.dense)
        if not known:
            with report.stage("success before", quiet=quiet):
                measured = {} if stream else teachers
                known = _measured(course, loop.sampler, measured, tokenizer)
            snapshot.write(directory, {}, facts | known | rl.At().facts())
        facts |= {key: known[key] for key in ("before", "teachers")}
        recover.restore(loop, prompts, directory)
        _train(loop, facts, directory, quiet=quiet)
    sft.write(model, folder, directory, None)
    picture.draw(directory)
    with report.stage("success after", quiet=quiet):
        after = rates(course, loop.sampler, tokenizer)
    told = {key: value for key, value in loop.at.facts().items() if key != "step"}
    found = {"before": facts["before"], "teachers": facts["teachers"], "after": after}
    kept = retained(*found.values())
    return Result(directory=str(directory), retention=kept, **found, **told)


def rates(course: Course, sampler: Updated, tokenizer: Tokenizer) -> Rates:
    """Held-out success of what samples, in the tasks of each teacher."""
    return {
        taught.name: _rate(course, taught, sampler, tokenizer)
        for taught in (course.teachers if course.recipe.heldout else ())
    }


def retained(before: Rates, teachers: Rates, after: Rates) -> Rates:
    """The share of each teacher's gain over the start that the student has."""
    names = [name for name in teachers if name in after]
    columns = (torch.tensor([x[n] for n in names]) for x in (after, teachers, before))
    return dict(zip(names, distill.retention(*columns).tolist(), strict=True))


def _rate(
    course: Course, taught: Taught, sampler: Updated, tokenizer: Tokenizer
) -> float:
    recipe = course.recipe_of(taught)
    found = measure.heldout(sampler, recipe, tokenizer, recipe.heldout)
    return sum(success.rate for success in found.values()) / len(found)


def _student(
    course: Course, model: Model, tokenizer: Tokenizer, log: Journal
) -> tuple[Loop, Draws]:
    """The student's loop at its start, and what it plays."""
    policy = run.prepared(model, course.recipe)
    policy.objective = mopd.objective(course.limit, course.dense)
    sampler, prompts = (
        run.local(model, course.recipe, tokenizer),
        Draws(course, tokenizer),
    )
    parts = Rewards(baselines={}), log
    return Loop.of(course.recipe, policy, sampler, prompts, parts), prompts


def _opened(course: Course, stack: ExitStack, *, stream: bool) -> dict[str, Model]:
    """The teachers by name, whole or two layers at a time."""
    found = {}
    for taught in course.teachers:
        folder = locate.locate(taught.model)
        if stream:
            opened = reference.streamed(folder, dtype=torch.float32)
            found[taught.name] = stack.enter_context(opened)
        else:
            found[taught.name] = load.load(
                folder, dtype=torch.float32, experts="dequantized"
            )
    return found


def _measured(
    course: Course, student: Updated, teachers: dict[str, Model], tokenizer: Tokenizer
) -> dict[str, Rates]:
    """Rates of the student, and of each teacher in its own tasks."""
    theirs: Rates = {}
    for taught in course.teachers if course.recipe.heldout else ():
        if taught.name in teachers:
            recipe = course.recipe_of(taught)
            sampler = run.local(teachers[taught.name], recipe, tokenizer)
            theirs[taught.name] = _rate(course, taught, sampler, tokenizer)
    return {"before": rates(course, student, tokenizer), "teachers": theirs}


def _train(loop: Loop, facts: dict[str, Any], directory: Path, *, quiet: bool) -> None:
    """Iterate to the recipe's end."""
    with (
        Writer(directory, loop.recipe.keep) as writer,
        workers.pool(loop.recipe.workers) as pool,
        report.reporter(directory, quiet=quiet, say=picture.line) as tell,
    ):
        try:
            rl.steps(loop, pool, writer, facts, tell)
        finally:
            loop.rollouts.close()
