"""`k3 eval`: held-out text and tasks, each with its count, score and interval."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from k3.cli import loading, options, output, settings
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.eval import Figure

# The text, then k3.eval.PROTOCOLS.
TASKS = ("text", "digits", "recall", "tools", "chat")
BELOW = 1

Tasks = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TASK]...", help=f"Of {', '.join(TASKS)}; all if none."),
]
Count = Annotated[
    int | None, typer.Option(help="Questions a task, documents of the text.")
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Keep every answer there; go on where it ends."),
]
AtLeast = Annotated[
    float | None,
    typer.Option(metavar="SHARE", help="Exit 1 where a task's score is below it."),
]


def evaluate(
    model: options.ModelOrTiny = "tiny",
    tasks: Tasks = None,
    *,
    count: Count = None,
    out: Out = None,
    at_least: AtLeast = None,
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    experts: options.Experts = "packed",
    json: options.Json = False,
) -> int:
    """Measure a model on what it was not trained on, by greedy answers.

    \b
    k3 eval
    k3 eval tiny digits recall --at-least 0.95
    k3 eval runs/tiny text --json
    """
    names = list(dict.fromkeys(tasks or TASKS))
    for name in names:
        settings.one_of("TASK", name, TASKS)
    _check(count, at_least)
    loading.check(dtype, device, experts)
    path = loading.find(model)
    loaded = loading.load(path, dtype=dtype, device=device, experts=experts)
    rows: list[dict[str, Any]] = []
    for name in names:
        rows += (
            _text(loaded, count) if name == "text" else _task(name, loaded, count, out)
        )
        if not json:
            _print([row for row in rows if row["task"] == name], name == names[0])
    low = [row for row in rows if row["stands"] and row["value"] < (at_least or 0)]
    if json:
        output.json_value({"ok": not low, "model": str(path), "figures": rows})
    return BELOW if low else 0


def _check(count: int | None, at_least: float | None) -> None:
    """Refuse numbers that mean nothing."""
    if count is not None and count < 1:
        raise RequestError(f"--count must be at least 1: got {count}")
    if at_least is not None and not 0 <= at_least <= 1:
        raise RequestError(f"--at-least is a share from 0 to 1: got {at_least}")


def _task(
    name: str, loaded: loading.Loaded, count: int | None, out: Path | None
) -> list[dict[str, Any]]:
    """The figures of a protocol."""
    import dataclasses

    from k3 import eval as evaluation

    protocol = evaluation.named(name)
    if count is not None:
        protocol = dataclasses.replace(protocol, count=count)
    found = evaluation.run(
        loaded.model,
        loaded.needed_tokenizer(),
        protocol,
        transcript=None if out is None else out / f"{name}.jsonl",
        facts={"model": str(loaded.path), "weights": _stamp(loaded.path)},
    )
    return [_row(name, f, stands=f is found.score) for f in found.figures]


def _stamp(path: Path) -> list[list[Any]]:
    """Names, sizes and times of the weights: whether a transcript is of these."""
    files = sorted(path.glob("*.safetensors"))
    return [[f.name, f.stat().st_size, f.stat().st_mtime_ns] for f in files]


def _text(loaded: loading.Loaded, count: int | None) -> list[dict[str, Any]]:
    """Bits per byte of the held-out text of the standard library."""
    from k3 import eval as evaluation
    from k3.data import corpora

    documents = corpora.stdlib().heldout[:count]
    figure = evaluation.bits_per_byte(
        loaded.model, loaded.needed_tokenizer(), documents
    )
    return [_row("text", figure, stands=False)]


def _row(task: str, figure: "Figure", *, stands: bool) -> dict[str, Any]:
    """A figure as plain values; `stands` for those that --at-least looks at."""
    return {
        "task": task,
        "figure": figure.name,
        "count": figure.count,
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "stands": stands,
    }


def _print(rows: list[dict[str, Any]], first: bool) -> None:
    """Rows as a table, with its head before the first."""
    if first:
        print(f"{'task':8} {'figure':14} {'count':>5} {'value':>7}  95 % interval")
    for row in rows:
        print(
            f"{row['task']:8} {row['figure']:14} {row['count']:5} {row['value']:7.4f}  "
            f"{row['low']:.4f} to {row['high']:.4f}",
            flush=True,
        )
