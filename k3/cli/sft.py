"""`k3 sft`: fine-tune a checkpoint on conversations, whole or by an adapter."""

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from k3.cli import options, output, settings

if TYPE_CHECKING:
    from k3.train.lora import Options
    from k3.train.sft import Result

Data = Annotated[
    str, typer.Option(metavar="FILE", help="Conversations, a JSON object a line.")
]
Out = Annotated[
    str, typer.Option(metavar="DIR", help="Where to write; runs/sft if not given.")
]
Lora = Annotated[
    str,
    typer.Option(
        metavar="LAYERS",
        help="Train an adapter: all-linear, names with commas, or a pattern.",
    ),
]
Rank = Annotated[int, typer.Option(help="Rank of the adapter.")]
Alpha = Annotated[float, typer.Option(help="Its scale is alpha over rank.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the run that is in the folder.")
]


def sft(
    model: options.Model = "tiny",
    *,
    data: Data,
    out: Out = "runs/sft",
    lora: Lora = "",
    rank: Rank = 8,
    alpha: Alpha = 16.0,
    resume: Resume = False,
    values: options.SetRecipe = None,
    json: options.Json = False,
) -> None:
    """Fine-tune on conversations; only what the assistant writes is learned.

    \b
    k3 sft tiny --data talks.jsonl --out runs/sft
    k3 sft tiny --data talks.jsonl --lora all-linear --rank 4
    k3 sft tiny --data talks.jsonl --lora q_b_proj,kv_b_proj --set steps=50
    """
    from k3.train import sft as training

    adapter = adapted(lora, rank, alpha) if lora else None
    chosen = settings.parse(values or [])
    result = training.run(
        *(model, data, out),
        settings=chosen,
        adapter=adapter,
        resume=resume,
        quiet=json,
    )
    if json:
        output.json_value(dataclasses.asdict(result))
    else:
        show(result)


def adapted(layers: str, rank: int, alpha: float) -> "Options":
    """An adapter on all linear layers, on those with these names, or of a pattern."""
    from k3.train.lora import Options

    names = tuple(layers.split(","))
    plain = all(name.replace(".", "").isidentifier() for name in names)
    return Options(targets=names if plain else layers, rank=rank, alpha=alpha)


def show(result: "Result") -> None:
    """What was learned, and what to type next."""
    held = f"{result.heldout} held out" if result.heldout else "none held out"
    print(
        f"{result.steps} steps on {result.conversations} conversations ({held}), "
        f"{result.trained:,} weights trained"
    )
    print(
        f"loss of the assistant's tokens: {result.loss_before:.3f} before, "
        f"{result.loss_after:.3f} after"
    )
    print(f"written: {result.directory}")
