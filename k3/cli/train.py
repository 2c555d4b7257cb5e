"""`k3 train`: train a recipe from scratch."""

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from k3.cli import options, output, settings

if TYPE_CHECKING:
    from k3.train.pretrain import Result

RECIPES = ("tiny",)


def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="What to train: tiny.")
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
    """
    settings.one_of("RECIPE", recipe, RECIPES)
    from k3 import recipes

    chosen = getattr(recipes, recipe)().set(settings.parse(values or []))
    folder = out or f"runs/{recipe}"
    from k3.train import pretrain

    typed = command(recipe, out, values)
    try:
        result = pretrain.run(
            chosen,
            folder,
            resume=resume,
            quiet=json,
            command=typed,
            trackers=track or (),
        )
    except KeyboardInterrupt:
        raise output.Interrupted(left(Path(folder), chosen.steps, typed)) from None
    tasks = measure(folder, [name for name, _ in chosen.mixture])
    if json:
        output.json_value(dataclasses.asdict(result) | {"tasks": tasks})
        return
    show(result, tasks, folder)


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
