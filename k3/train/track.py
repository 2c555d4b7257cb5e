"""Records for a tracker, beside metrics.jsonl: TensorBoard's files or trackio's."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

from k3.errors import RequestError
from k3.train.loop import Report
from k3.train.recipe import Recipe
from k3.train.trainer import Record


def check(names: Sequence[str]) -> None:
    """Refuse a tracker that is none, or that is not installed."""
    for name in names:
        if name not in TRACKERS:
            raise RequestError(
                f"a tracker is one of {', '.join(TRACKERS)}: got {name!r}; choose one"
            )
        if find_spec(name) is None:
            raise RequestError(
                f"tracking with {name} needs the track extra: pip install 'k3[track]'"
            )


@contextmanager
def opened(
    names: Sequence[str], recipe: Recipe, directory: Path
) -> Iterator[list[Report]]:
    """A report for each tracker, closed at the end. Raises: RequestError."""
    check(names)
    with ExitStack() as stack:
        yield [stack.enter_context(TRACKERS[name](recipe, directory)) for name in names]


def numbers(record: Record) -> dict[str, float]:
    """The numbers of a record by name; those of a domain as losses/DOMAIN."""
    flat = {
        f"{name}/{key}": value
        for name, group in record.items()
        if isinstance(group, dict)
        for key, value in group.items()
    }
    held = {name: value for name, value in record.items() if name not in OF_A_RUN}
    return {
        name: float(value)
        for name, value in (held | flat).items()
        if isinstance(value, (int, float))
    }


OF_A_RUN = ("step", "steps")


@contextmanager
def _tensorboard(recipe: Recipe, directory: Path) -> Iterator[Report]:
    """Event files in the folder tensorboard of the run."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(directory / "tensorboard")) as writer:

        def report(record: Record) -> None:
            for name, value in numbers(record).items():
                writer.add_scalar(name, value, record["step"])

        yield report


@contextmanager
def _trackio(recipe: Recipe, directory: Path) -> Iterator[Report]:
    """A run of the project k3, named as its folder; resumed where there is one."""
    import trackio

    trackio.init(
        project="k3", name=directory.name, config=recipe.to_dict(), resume="allow"
    )
    try:
        yield lambda record: trackio.log(numbers(record), step=record["step"])
    finally:
        trackio.finish()


TRACKERS: dict[str, Callable[[Recipe, Path], AbstractContextManager[Report]]] = {
    "tensorboard": _tensorboard,
    "trackio": _trackio,
}
