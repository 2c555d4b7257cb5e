"""`k3 draft`: train an EAGLE-3 draft that a server decodes a checkpoint faster with."""

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from k3.cli import options, output, settings

if TYPE_CHECKING:
    from k3.train.draft_run import Result

# k3.train.draft_run.SETTINGS.
KEYS = (
    *("steps", "batch", "tokens", "learning_rate", "warmup", "decay", "clip"),
    *("seed", "log_steps"),
    *("taps", "taps_of", "taps_at", "layout", "experts", "num_speculative_steps"),
)

Data = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DATA",
        help="A JSONL file of conversations, a folder of k3 data, text, or a task; "
        "repeats. Without it: text, chat, tools, recall.",
    ),
]
Out = Annotated[
    str, typer.Option(metavar="DIR", help="Where to write; runs/draft if not given.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help=f"Change a setting; may be repeated. Keys: {', '.join(KEYS)}.",
    ),
]


def draft(
    model: options.Model = "tiny",
    *,
    data: Data = None,
    out: Out = "runs/draft",
    values: Settings = None,
    json: options.Json = False,
) -> None:
    """Train a draft: one layer that proposes what the checkpoint would say.

    \b
    k3 draft tiny --set steps=200
    k3 draft DIR --data talks.jsonl --data text --out runs/draft
    k3 draft DIR --data data/web --set num_speculative_steps=4
    """
    chosen = settings.parse(values or [])
    settings.refuse_unknown(chosen, KEYS)
    from k3.train import draft_data, draft_run

    result = draft_run.run(
        model, out, data or draft_data.DEFAULT, settings=chosen, quiet=json
    )
    if json:
        output.json_value(dataclasses.asdict(result))
    else:
        show(result)


def show(result: "Result") -> None:
    """What was learned, and what to type next."""
    print(
        f"{result.steps} steps, {result.parameters:,} parameters, "
        f"{result.seconds:.0f} s"
    )
    print(
        f"loss a position on held-out rows: {result.loss_before:.3f} before, "
        f"{result.loss_after:.3f} after"
    )
    print(f"overlap with the target: {result.overlap_before[0]:.3f} before, after by")
    print("position " + " ".join(f"{rate:.3f}" for rate in result.overlap_after))
    print(f"written: {result.directory}")
    config = f'{{"method": "eagle3", "model": "{result.directory}"}}'
    print(f"try: k3 serve --speculative-config '{config}'")
