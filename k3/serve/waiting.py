"""Waiting times as a picture for a terminal: bars over a scale of seconds."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from k3.serve.simulate import Done, summary
from k3.serve.traffic import Kind

EDGES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
WIDTH = 30


def picture(results: Mapping[str, Sequence[Done]], kinds: Sequence[Kind]) -> Any:
    """A table of every policy's numbers, then its times to the first token as bars."""
    table = Table(box=None, header_style="bold")
    for name in ("policy", "class", "requests", "first p50", "p90", "p99"):
        table.add_column(
            name, justify="left" if name in ("policy", "class") else "right"
        )
    for name in ("total p50", "p99", "cached", "rerouted"):
        table.add_column(name, justify="right")
    parts: list[Any] = [table]
    for policy, done in results.items():
        for kind, found in summary(done, kinds).items():
            table.add_row(policy, kind, *_row(found))
        parts.append(Text(f"\n{policy}: seconds to the first token", style="bold"))
        parts += [bars(done, kind.name) for kind in kinds]
    return Group(*parts)


def _row(found: Mapping[str, Any]) -> list[str]:
    first, total = found["first"], found["total"]
    seconds = [*first.values(), total["p50"], total["p99"]]
    numbers = [f"{value:.2f}" for value in seconds]
    ends = [f"{found['cached']:.0%}", str(found["rerouted"])]
    return [str(found["requests"]), *numbers, *ends]


def bars(done: Sequence[Done], kind: str) -> Text:
    """The share of a class's requests in each interval of seconds."""
    counts = histogram([each.first for each in done if each.kind == kind])
    whole, lines = max(sum(counts), 1), [f"  {kind}"]
    labels = [f"<= {edge:g} s" for edge in EDGES] + [f"> {EDGES[-1]:g} s"]
    for label, count in zip(labels, counts, strict=True):
        if count:
            bar = "█" * max(1, round(WIDTH * count / whole))
            lines.append(f"  {label:>10} {bar} {count / whole:.1%}")
    return Text("\n".join(lines))


def histogram(values: Sequence[float]) -> list[int]:
    """How many values lie in each interval; the last holds what is above all edges."""
    places = [sum(value > edge for edge in EDGES) for value in values]
    return [places.count(place) for place in range(len(EDGES) + 1)]
