"""`k3 eval`: held-out text, tasks and environments, with counts and intervals."""

import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from k3.cli import loading, measuring, options, output, rating, remote, settings
from k3.errors import RequestError

# The text, then k3.eval.PROTOCOLS.
TASKS = ("text", "digits", "recall", "tools", "chat")
# k3.eval.protocol.SETTABLE, and what environments have besides.
KEYS = (
    *("samples", "temperature", "top_p", "effort", "context", "context_tokens"),
    *("max_tokens", "batch", "seed", "turns"),
)
BELOW = 1

ModelOrUrl = Annotated[
    str, typer.Argument(metavar="[MODEL|URL]", help="A folder, tiny, or a server.")
]
Tasks = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TASK]...",
        help=f"Of {', '.join(TASKS)}; all if none. Or environments, such as "
        "calculator.",
    ),
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
SetCondition = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help=f"Set a condition; may be repeated. Keys: {', '.join(KEYS)}.",
    ),
]
Compare = Annotated[
    bool,
    typer.Option("--compare", help="Rate the runs of folders against each other."),
]
Judge = Annotated[
    str, typer.Option(metavar="URL", help="Let this model compare the answers.")
]
RubricFile = Annotated[
    Path | None, typer.Option("--rubric", metavar="FILE", help="What it judges by.")
]
PricesFile = Annotated[
    Path | None,
    typer.Option("--prices", metavar="FILE", help="Add what a task costs."),
]
PricedAs = Annotated[
    str, typer.Option(metavar="NAME", help="The model's name in the price table.")
]


def evaluate(
    model: ModelOrUrl = "tiny",
    tasks: Tasks = None,
    *,
    count: Count = None,
    out: Out = None,
    at_least: AtLeast = None,
    set_: SetCondition = None,
    compare: Compare = False,
    judge: Judge = "",
    rubric: RubricFile = None,
    prices: PricesFile = None,
    priced_as: PricedAs = "",
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    experts: options.Experts = "packed",
    json: options.Json = False,
) -> int:
    """Measure a model on what it was not trained on, greedily unless told otherwise.

    \b
    k3 eval
    k3 eval tiny digits recall --at-least 0.95
    k3 eval http://127.0.0.1:8000 calculator --set temperature=1 --set samples=4
    k3 eval --compare runs/a runs/b
    """
    if compare:
        return rating.compare([model, *(tasks or ())], judge, rubric, as_json=json)
    if judge or rubric:
        raise RequestError("--judge and --rubric belong to --compare: add it")
    names = _names(model, tasks)
    _check(count, at_least)
    given = settings.parse(set_ or [])
    settings.refuse_unknown(given, KEYS)
    loading.check(dtype, device, experts)
    with closing(_subject(model, dtype, device, experts)) as subject:
        price = _price(prices, priced_as or subject.name)
        wish = measuring.Wish(count=count, given=given, out=out, price=price)
        return _run(names, subject, wish, at_least, as_json=json)


def _names(model: str, tasks: Sequence[str] | None) -> list[str]:
    usual = measuring.TALKED if remote.is_url(model) else TASKS
    names = list(dict.fromkeys(tasks or usual))
    measuring.check_names(names, TASKS)
    return names


def _subject(model: str, dtype: str, device: str, experts: str) -> measuring.Subject:
    if remote.is_url(model):
        return measuring.Remote(model)
    path = loading.find(model)
    return measuring.Local(
        loading.load_frozen(path, dtype=dtype, device=device, experts=experts)
    )


def _price(file: Path | None, name: str) -> Any:
    if file is None:
        return None
    from k3.eval import prices

    return prices.load(file).named(name)


def _run(
    names: Sequence[str],
    subject: measuring.Subject,
    wish: measuring.Wish,
    at_least: float | None,
    *,
    as_json: bool,
) -> int:
    """Measure task by task; the exit code."""
    measuring.check_conditions(names, wish)
    found: list[measuring.Row] = []
    for name in names:
        rows = measuring.rows(name, subject, wish)
        if not as_json:
            _print(rows, not found)
        found += rows
    low = [row for row in found if row["stands"] and row["value"] < (at_least or 0)]
    if as_json:
        said = {"ok": not low, "model": subject.facts["model"], "figures": found}
        output.json_value(said)
    return BELOW if low else 0


def _check(count: int | None, at_least: float | None) -> None:
    """Refuse numbers that mean nothing."""
    if count is not None and count < 1:
        raise RequestError(f"--count must be at least 1: got {count}")
    if at_least is not None and not 0 <= at_least <= 1:
        raise RequestError(f"--at-least is a share from 0 to 1: got {at_least}")


def _print(rows: Sequence[measuring.Row], first: bool) -> None:
    """Rows as a table, with its head before the first."""
    if first:
        print(f"{'task':8} {'figure':14} {'count':>5} {'value':>7}  95 % interval")
    for row in rows:
        # A task of a cent has its figures far behind the point.
        form = ".4f" if row["value"] >= 0.001 or row["value"] == 0 else ".3g"
        assert math.isfinite(row["value"]), "a figure is a number"
        print(
            f"{row['task']:8} {row['figure']:14} {row['count']:5} "
            f"{row['value']:7{form}}  {row['low']:{form}} to {row['high']:{form}}",
            flush=True,
        )
