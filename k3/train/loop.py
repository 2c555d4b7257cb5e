"""The loop: steps, records, snapshots, and how a run ends."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from k3.errors import RequestError
from k3.model import Model
from k3.train import interrupt, progress, snapshot, workers
from k3.train.feed import Feed, Rows
from k3.train.progress import Progress
from k3.train.recipe import Recipe
from k3.train.trainer import Record, Trainer
from k3.train.writer import Writer

Report = Callable[[Record], None]


def run(
    model: Model,
    data: Callable[[int], Rows],
    recipe: Recipe,
    directory: Path,
    *,
    facts: dict[str, Any],
    resume: bool = False,
    report: Report = lambda record: None,
) -> Progress:
    """Train to the recipe's last step; the model ends with the values to be saved.

    `data(tokens)` gives the rows of a length. A snapshot is written every
    `checkpoint_minutes` beside the run, at the end, and on Ctrl-C, which waits for the
    step. It never holds half a step: what cuts one leaves the snapshot before.
    `report` receives a record every `log_steps` and of each skipped step. `facts`
    travel in the snapshot.
    Raises: RequestError when too many steps in a row are skipped; CheckpointError
    where the snapshot to resume from is of another model or damaged, or where none
    can be written.
    """
    if not resume:
        begin(directory, facts)
    with (
        workers.pool(recipe.workers) as pool,
        Feed(data) as feed,
        Writer(directory, recipe.keep) as writer,
    ):
        trainer = Trainer.of(model, recipe, feed, pool)
        held = trainer.masters, trainer.balance
        at = progress.restore(*held, directory, recipe.seed)
        try:
            steps(trainer, at, writer, facts, report)
        finally:
            with interrupt.held():
                if not at.torn:
                    save(trainer, at, writer, facts)
                    writer.wait()
    return at


def begin(directory: Path, facts: dict[str, Any]) -> None:
    """Write the snapshot of step 0, which is the facts: weights follow from them."""
    snapshot.write(directory, {}, facts | progress.facts(Progress()))


def steps(
    trainer: Trainer,
    at: Progress,
    writer: Writer,
    facts: dict[str, Any],
    report: Report,
) -> None:
    """Step to the recipe's last one, with the snapshots that are due on the way."""
    recipe, saved = trainer.recipe, time.monotonic()
    while at.step < recipe.steps:
        with interrupt.held():
            record = trainer.step(at)
            due = at.step % recipe.log_steps == 0 or at.step == recipe.steps
            if due or "skipped" in record:
                report(record | _losses(at))
        if at.skipped_in_a_row >= recipe.max_skipped:
            raise _lost(at, str(record["skipped"]))
        if trainer.agree(time.monotonic() - saved > 60 * recipe.checkpoint_minutes):
            with interrupt.held():
                save(trainer, at, writer, facts)
            saved = time.monotonic()


def _losses(at: Progress) -> Record:
    """The mean loss of each domain since the last record."""
    held, at.domains = at.domains, {}
    losses = {name: total / count for name, (total, count) in sorted(held.items())}
    return {"losses": losses}


def _lost(at: Progress, reason: str) -> RequestError:
    return RequestError(
        f"a run needs steps that can be taken: got {at.skipped_in_a_row} in a row that "
        f"were skipped, up to step {at.step} ({reason}); lower learning_rate and start "
        "again, or resume with a larger max_skipped"
    )


def save(trainer: Trainer, at: Progress, writer: Writer, facts: dict[str, Any]) -> None:
    """Begin to write all of a run."""
    tensors = progress.tensors(trainer.masters, trainer.balance)
    writer.begin(tensors, facts | progress.facts(at))
