"""`k3 distill`: MOPD, one student of teachers of several domains and efforts."""

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from k3.cli import options, output, settings

if TYPE_CHECKING:
    from k3.post.distillation import Result

Teachers = Annotated[
    list[str],
    typer.Option(
        "--teacher",
        metavar="DOMAIN-EFFORT=DIR[:TASKS]",
        help="A teacher's checkpoint, and its tasks with commas; repeats.",
    ),
]
Out = Annotated[
    str, typer.Option(metavar="DIR", help="Where to write; runs/distill if not given.")
]
Limit = Annotated[float, typer.Option(help="R, the largest reward of a token.")]
Dense = Annotated[
    int,
    typer.Option(
        metavar="K", help="Learn from the teacher's K likeliest tokens instead."
    ),
]
Stream = Annotated[
    bool,
    typer.Option("--stream", help="Hold two layers of each teacher, not all of it."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the run that is in the folder.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a setting of the recipe; repeats."
    ),
]


def distill(
    model: options.Model = "tiny",
    *,
    teacher: Teachers,
    out: Out = "runs/distill",
    limit: Limit = 5.0,
    dense: Dense = 0,
    stream: Stream = False,
    resume: Resume = False,
    values: Set = None,
    json: options.Json = False,
) -> None:
    """Let a student learn from its own tokens, each scored by the matching teacher.

    \b
    k3 distill runs/cold --teacher agentic-low=runs/a --teacher general-max=runs/b
    k3 distill runs/cold --teacher agentic-high=runs/rl:calculator,lookup --stream
    k3 distill runs/cold --teacher agentic-low=runs/a --dense 16
    """
    from k3.post import course, distillation

    chosen = course.Course(
        teachers=tuple(map(course.Taught.read, teacher)),
        recipe=course.RECIPE.set(settings.parse(values or [])),
        limit=limit,
        dense=dense,
    )
    how = {"stream": stream, "resume": resume, "quiet": json}
    result = distillation.distilled(chosen, model, out, **how)
    if json:
        output.json_value(dataclasses.asdict(result))
    else:
        show(result)


def show(result: "Result") -> None:
    """What was kept of each teacher, and where it is."""
    print(
        f"{result.iteration} iterations, {result.sampled_tokens:,} tokens sampled, "
        f"{result.learned_tokens:,} learned from, {result.seconds:.0f} s"
    )
    for name, before in result.before.items():
        line = f"{name}: {before:.1%} before, {result.after[name]:.1%} after"
        if name in result.teachers:
            line += f"; the teacher {result.teachers[name]:.1%}"
            line += f", {result.retention[name]:.0%} of its gain kept"
        print(line)
    print(f"written: {result.directory}")
