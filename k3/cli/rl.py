"""`k3 rl`: reinforcement learning of a checkpoint in environments, by a recipe."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from k3.cli import options, output, rating, settings
from k3.config import runs
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.post.run import Result

Recipe = Annotated[
    str, typer.Argument(metavar="RECIPE", help=f"One of {', '.join(runs.REINFORCED)}.")
]
Out = Annotated[
    str, typer.Option(metavar="DIR", help="Where to write; runs/rl if not given.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the run that is in the folder.")
]
Server = Annotated[
    str, typer.Option(metavar="URL", help="Sample there, not in this process.")
]
Push = Annotated[
    str,
    typer.Option(
        metavar="COMMAND", help="Makes that server load the weights in {folder}."
    ),
]
Judge = Annotated[
    str,
    typer.Option(
        metavar="URL", help="Samples meet each other; this model judges them."
    ),
]
RubricFile = Annotated[
    Path | None, typer.Option("--rubric", metavar="FILE", help="What it judges by.")
]
Verbose = Annotated[
    float,
    typer.Option(
        metavar="FACTOR",
        help="A judged sample of more than this times the tokens before the run loses "
        "where it stands first; 0 leaves lengths alone.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a setting of the recipe; repeats."
    ),
]


def rl(
    recipe: Recipe,
    model: options.Model = "tiny",
    *,
    out: Out = "runs/rl",
    server: Server = "",
    push: Push = "",
    judge: Judge = "",
    rubric: RubricFile = None,
    verbose: Verbose = 0.0,
    resume: Resume = False,
    values: Set = None,
    json: options.Json = False,
) -> None:
    """Learn from the rewards of environments; what has finished is never lost.

    \b
    k3 rl agentic-low runs/cold --out runs/rl
    k3 rl agentic-high runs/cold --set tasks=calculator --set thinking=False
    k3 rl agentic-low runs/cold --out runs/rl --resume
    """
    settings.one_of("RECIPE", recipe, runs.REINFORCED)
    from k3.post import recipes, run

    chosen = recipes.named(recipe).set(settings.parse(values or []))
    if push and not server:
        raise RequestError("--push needs --server: got no URL; name the server")
    there = (server, push) if server else None
    judged = rating.judged(judge, rubric, chosen, verbose)
    how: dict[str, Any] = {"server": there, "judged": judged, "quiet": json}
    try:
        result = run.run(chosen, model, out, resume=resume, **how)
    except KeyboardInterrupt:
        raise output.Interrupted(left(Path(out), chosen.iterations)) from None
    if json:
        output.json_value(dataclasses.asdict(result))
    else:
        show(result)


def left(folder: Path, iterations: int) -> str:
    """What an interrupted run leaves behind, and how it goes on."""
    from k3.train import snapshot

    if not snapshot.kept(folder):
        return f"no snapshot in {folder} yet; empty the folder and start again"
    step = int(snapshot.read(folder)[1]["step"])
    return (
        f"{folder} holds iteration {step} of {iterations} and every finished sample; "
        "the same command with --resume goes on"
    )


def show(result: "Result") -> None:
    """What was learned, and where it is."""
    print(
        f"{result.iteration} iterations, {result.sampled_tokens:,} tokens sampled, "
        f"{result.learned_tokens:,} learned from, {result.seconds:.0f} s"
    )
    for task, before in result.before.items():
        if (after := result.after.get(task)) is None:
            continue
        print(
            f"{task}: {before['rate']:.1%} of {before['count']} held-out instances "
            f"before ({before['low']:.1%} to {before['high']:.1%}), "
            f"{after['rate']:.1%} after ({after['low']:.1%} to {after['high']:.1%})"
        )
    print(f"written: {result.directory}")
