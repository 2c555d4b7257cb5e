"""`k3 train`: train a recipe from scratch."""

import dataclasses
import shlex
from typing import Annotated

import typer

from k3.cli import options, output, settings

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
    values: options.Set = None,
    json: options.Json = False,
) -> None:
    """Train on the standard library's text; write a checkpoint with its card.

    \b
    k3 train tiny
    k3 train tiny --out runs/short --set steps=200 --set seed=1
    k3 train tiny --out runs/short --set steps=400 --resume
    """
    settings.one_of("RECIPE", recipe, RECIPES)
    from k3 import recipes
    from k3.train import pretrain

    chosen = getattr(recipes, recipe)().set(settings.parse(values or []))
    folder = out or f"runs/{recipe}"
    result = pretrain.run(
        chosen, folder, resume=resume, quiet=json, command=command(recipe, out, values)
    )
    if json:
        output.json_value(dataclasses.asdict(result))
        return
    print(f"{result.steps} steps, {result.tokens:,} tokens, {result.seconds:.0f} s")
    print(f"held-out text: {result.bits_per_byte:.3f} bits per byte")
    print(f"xz -9 {result.xz:.3f}, order-5 Kneser-Ney {result.kneser_ney:.3f}")
    print(f"written: {folder} (its card is README.md)")
    print(f"try: k3 generate {folder}")


def command(recipe: str, out: str, values: list[str] | None) -> str:
    """The command as it would be typed again, for the card."""
    words = ["k3", "train", recipe, *(["--out", out] if out else [])]
    for value in values or []:
        words += ["--set", value]
    return shlex.join(words)
