"""Pictures of a run, drawn from its metrics.jsonl: losses, norms, rates, loads."""

import json
from collections.abc import Sequence
from pathlib import Path

from k3.train import plot, report
from k3.train.plot import Axis, Curve
from k3.train.trainer import Record

FOLDER = "curves"
STEP = Axis(label="step")
LINES = {
    "gradient_norm": "gradient norm before clipping",
    "learning_rate": "learning rate",
    "expert_max_over_mean": "largest expert load over the mean, worst layer",
}
"""Numbers of a record with a picture each, and what they are."""


def draw(directory: Path) -> list[Path]:
    """Write the pictures of a run folder into its folder curves; return them."""
    records = read(directory / report.FILE_NAME)
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    pictures = {"loss": _losses(records)} | {
        name: plot.chart(
            title, [_curve(name, name, records)], x=STEP, y=Axis(label=title)
        )
        for name, title in LINES.items()
    }
    paths = []
    for name, picture in pictures.items():
        paths.append(folder / f"{name}.svg")
        paths[-1].write_text(picture)
    return paths


def read(path: Path) -> list[Record]:
    """The records of a run, in their order."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def _losses(records: Sequence[Record]) -> str:
    """The loss of each domain, and of all smoothed."""
    domains = sorted({name for record in records for name in record.get("losses", {})})
    curves = [
        Curve(
            name=name,
            points=[
                (record["step"], record["losses"][name])
                for record in records
                if name in record.get("losses", {})
            ],
        )
        for name in domains
    ]
    together = _curve("ema", "all, smoothed", records)
    label = Axis(label="loss, nats a learned token", log=True)
    return plot.chart("loss", [together, *curves], x=STEP, y=label)


def _curve(key: str, name: str, records: Sequence[Record]) -> Curve:
    points = [(r["step"], r[key]) for r in records if r.get(key) is not None]
    return Curve(name=name, points=points)
