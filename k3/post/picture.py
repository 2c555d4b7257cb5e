"""A run in words and pictures: a line an iteration, curves from metrics.jsonl."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from k3.post.rl import Record
from k3.train import curves, plot, report
from k3.train.plot import Axis, Curve

STEP = Axis(label="iteration")
LINES = {
    "reward": "mean reward of an iteration's samples",
    "success": "share of samples that scored 1",
    "tokens": "tokens written a sample",
}
"""Numbers of a record with a picture each, and what they are."""

WINDOW = 5
"""Records that a smoothed point is the mean of."""


def line(record: Record) -> str:
    """One iteration as a line of text."""
    done, steps = int(record["step"]), int(record["steps"])
    parity = record.get("parity", {}).get("mean", 0.0)
    age = record.get("staleness", {}).get("mean", 0.0)
    left = int(record["seconds"] / done * (steps - done))
    return (
        f"iteration {done}/{steps} reward {record['reward']:.2f} success "
        f"{record['success']:.0%} of {record['samples']} tokens "
        f"{record['tokens']:.0f} kl {record.get('kl', 0.0):.1e} parity {parity:.1e} "
        f"age {age:.2f} eta {left // 60}:{left % 60:02d}"
    )


def draw(directory: Path) -> list[Path]:
    """Write the pictures of a run folder into its folder curves; return them."""
    records = curves.read(directory / report.FILE_NAME)
    folder = directory / curves.FOLDER
    folder.mkdir(exist_ok=True)
    paths = []
    for name, title in LINES.items():
        points = [(r["step"], r[name]) for r in records]
        both = [
            Curve(name="each iteration", points=points, colour=5),
            Curve(name=f"mean of {WINDOW}", points=smoothed(points), colour=0),
        ]
        picture = plot.chart(title, both, x=STEP, y=Axis(label=title))
        paths.append(folder / f"{name}.svg")
        paths[-1].write_text(picture)
    return paths


def runs(title: str, found: Mapping[str, Sequence[Record]], key: str = "reward") -> str:
    """One picture of several runs by their names: a number of their records."""
    lines = [
        Curve(name=name, points=smoothed([(r["step"], r[key]) for r in records]))
        for name, records in found.items()
    ]
    return plot.chart(title, lines, x=STEP, y=Axis(label=LINES[key]))


def efforts(title: str, found: Mapping[str, tuple[float, float]]) -> str:
    """Success against tokens: a point (tokens, success) for each effort."""
    points = sorted(found.values())
    lines = [
        Curve(name="success", points=points, colour=5),
        *(
            Curve(name=name, points=[point], dots=True, colour=i)
            for i, (name, point) in enumerate(found.items())
        ),
    ]
    x = Axis(label="tokens written a sample")
    return plot.chart(title, lines, x=x, y=Axis(label="share that scored 1"))


def smoothed(
    points: Sequence[tuple[float, float]], window: int = WINDOW
) -> list[tuple[float, float]]:
    """Each point as the mean of itself and up to `window` - 1 before it."""
    found = []
    for i, (x, _) in enumerate(points):
        near = [y for _, y in points[max(0, i - window + 1) : i + 1]]
        found.append((x, sum(near) / len(near)))
    return found
