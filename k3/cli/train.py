"""`k3 train`: train a recipe from scratch."""

import dataclasses
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from k3.cli import options, output, settings
from k3.config import runs

if TYPE_CHECKING:
    from k3.train.pretrain import Result
    from k3.train.recipe import Recipe


def train(
    recipe: Annotated[
        str,
        typer.Argument(metavar="RECIPE", help=f"One of {', '.join(runs.TRAINED)}."),
    ] = "tiny",
    *,
    out: Annotated[
        str,
        typer.Option(metavar="DIR", help="Where to write; runs/RECIPE if not given."),
    ] = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run that is in the folder.")
    ] = False,
    track: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRACKER",
            help="Send the records to tensorboard or trackio too; repeats.",
        ),
    ] = None,
    values: options.SetRecipe = None,
    json: options.Json = False,
) -> None:
    """Train on the standard library's text and on tasks; write a checkpoint and card.

    \b
    k3 train tiny
    k3 train tiny --out runs/short --set steps=200 --set seed=1
    k3 train tiny --out runs/short --set steps=400 --resume
    torchrun --nproc-per-node 2 -m k3 train tiny --set parallel=data=2
    """
    settings.one_of("RECIPE", recipe, runs.TRAINED)
    from k3 import recipes

    chosen = getattr(recipes, recipe)().set(settings.parse(values or []))
    folder = out or f"runs/{recipe}"
    how = {"resume": resume, "quiet": json, "trackers": track or ()}
    result = _train(chosen, folder, command=command(recipe, out, values), **how)
    if result is not None:
        _tell(result, chosen, folder, json)


def _train(chosen: "Recipe", folder: str, **how: Any) -> "Result | None":
    """Train; None where another rank has the files and says so."""
    try:
        return _runner(chosen.parallel)(chosen, folder, **how)
    except KeyboardInterrupt:
        said = left(Path(folder), chosen.steps, how["command"])
        raise output.Interrupted(said) from None


def _tell(result: "Result", chosen: "Recipe", folder: str, json: bool) -> None:
    tasks = measure(folder, [name for name, _ in chosen.mixture])
    if json:
        output.json_value(dataclasses.asdict(result) | {"tasks": tasks})
        return
    show(result, tasks, folder)


def _runner(parallel: str) -> "Callable[..., Result | None]":
    """What trains: one process, or this one of many that torchrun has started."""
    if parallel or "TORCHELASTIC_RUN_ID" in os.environ:
        from k3.train import distributed

        return distributed.run
    from k3.train import pretrain

    return pretrain.run


def measure(folder: str, names: list[str]) -> list[dict[str, Any]]:
    """The figures of what was trained on beside text, put into the card too."""
    from k3.eval import card

    return [
        {"task": result.protocol.name, **dataclasses.asdict(figure)}
        for result in card.complete(Path(folder), names)
        for figure in result.figures
    ]


def show(result: "Result", tasks: list[dict[str, Any]], folder: str) -> None:
    """What the run was and gave, and what to type next."""
    print(
        f"{result.steps} steps, {result.tokens:,} tokens, {result.seconds:.0f} s "
        f"of steps, {result.total_seconds:.0f} s in all"
    )
    print(f"held-out text: {result.bits_per_byte:.3f} bits per byte")
    print(f"xz -9 {result.xz:.3f}, order-5 Kneser-Ney {result.kneser_ney:.3f}")
    for task in tasks:
        print(f"{task['task']}, {task['name']}: {task['value']:.3f} of {task['count']}")
    print(f"written: {folder} (its card is README.md)")
    print(f'try: k3 generate {folder} -p "Return True if" --temperature 0.7')


def left(folder: Path, steps: int, typed: str) -> str:
    """What an interrupted run leaves behind, and the command that goes on."""
    from k3.train import snapshot

    if not snapshot.kept(folder):
        return f"no snapshot in {folder} yet; empty the folder and start again"
    step = int(snapshot.read(folder)[1]["step"])
    missing = "the scores" if step >= steps else f"{steps - step} steps and the scores"
    there = f"{folder} holds the snapshot of step {step} of {steps}"
    if step >= steps and (folder / "model.safetensors.index.json").is_file():
        there += " and the checkpoint, which k3 generate reads"
    return f"{there}; {missing} are missing, this goes on: {typed} --resume"


def command(recipe: str, out: str, values: list[str] | None) -> str:
    """The command as it would be typed again, for the card."""
    words = ["k3", "train", recipe, *(["--out", out] if out else [])]
    for value in values or []:
        words += ["--set", value]
    return shlex.join(words)
