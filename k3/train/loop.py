"""The plain next-token loop: rows, gradients, AdamW, bias update, snapshot."""

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from k3.errors import RequestError
from k3.model import Model
from k3.train import balance, batch, interrupt, schedule, snapshot, stream, workers
from k3.train.masters import Masters
from k3.train.recipe import Recipe

Record = dict[str, float | int]
Report = Callable[[Record], None]
EMA = 0.98


@dataclass(slots=True)
class Progress:
    """Where a run is: steps done, seconds spent, smoothed loss."""

    step: int = 0
    seconds: float = 0.0
    smooth: float = 0.0
    torn: bool = False
    """Whether a step has moved some values and not yet all."""


def run(
    model: Model,
    tokens: Tensor,
    recipe: Recipe,
    directory: Path,
    *,
    facts: dict[str, Any],
    resume: bool = False,
    report: Report = lambda record: None,
) -> Progress:
    """Train to the recipe's last step; the model ends with the values to be saved.

    A snapshot is written every `checkpoint_minutes`, at the end, and on Ctrl-C,
    which waits for the step. It never holds half a step: what cuts one leaves the
    snapshot before. `report` receives a record every `log_steps`. `facts` travel in
    the snapshot.
    Raises: RequestError when loss or gradients stop being finite; CheckpointError
    where the snapshot to resume from is of another model or damaged.
    """
    betas = (recipe.beta1, recipe.beta2)
    masters = Masters(model, betas=betas, weight_decay=recipe.weight_decay)
    if not resume:
        begin(directory, facts)
    at = _restore(model, masters, directory)
    saved = time.monotonic()
    with workers.pool(recipe.workers) as pool:
        try:
            while at.step < recipe.steps:
                with interrupt.held():
                    record = _step(model, masters, tokens, recipe, at, pool=pool)
                    if at.step % recipe.log_steps == 0 or at.step == recipe.steps:
                        report(record)
                if time.monotonic() - saved > 60 * recipe.checkpoint_minutes:
                    _snapshot(model, masters, at, directory, facts)
                    saved = time.monotonic()
        finally:
            if not at.torn:
                _snapshot(model, masters, at, directory, facts)
    return at


def begin(directory: Path, facts: dict[str, Any]) -> None:
    """Write the snapshot of step 0, which is the facts: weights follow from them."""
    here = {"step": 0, "seconds": 0.0, "smooth": 0.0}
    snapshot.write(directory, {}, facts | here)


def _step(
    model: Model,
    masters: Masters,
    tokens: Tensor,
    recipe: Recipe,
    at: Progress,
    *,
    pool: ThreadPoolExecutor,
) -> Record:
    """Do one update and return what there is to say about it."""
    began = time.monotonic()
    rows = stream.rows(tokens, at.step, recipe.batch, recipe.tokens, recipe.seed)
    parameters = list(masters.parameters.values())
    found = batch.run(model, parameters, rows, pool, recipe.workers)
    factor = schedule.trapezoid(at.step, recipe.steps, recipe.warmup, recipe.decay)
    rate = recipe.learning_rate * factor
    at.torn = True
    norm = masters.step(found.gradients, rate, recipe.clip)
    if not (math.isfinite(found.loss) and math.isfinite(norm)):
        raise RequestError(
            f"loss and gradients must be finite: got loss {found.loss} and norm {norm} "
            f"at step {at.step + 1}; lower learning_rate and start again"
        )
    balance.update_(model, found.loads, recipe.bias_rate * factor)
    at.smooth = EMA * at.smooth + (1 - EMA) * found.loss if at.step else found.loss
    at.step += 1
    at.torn = False
    seconds = time.monotonic() - began
    at.seconds += seconds
    return {
        "step": at.step,
        "steps": recipe.steps,
        "loss": found.loss,
        "ema": at.smooth,
        "tokens_per_second": rows[:, 1:].numel() / seconds,
        "learning_rate": rate,
        "gradient_norm": norm,
        "expert_max_over_mean": balance.imbalance(found.loads),
        "seconds": at.seconds,
    }


def _snapshot(
    model: Model,
    masters: Masters,
    at: Progress,
    directory: Path,
    facts: dict[str, Any],
) -> None:
    tensors = masters.state()
    for i, bias in enumerate(balance.biases(model)):
        tensors[f"bias.{i}"] = bias
    here = {"step": at.step, "seconds": at.seconds, "smooth": at.smooth}
    with interrupt.held():
        snapshot.write(directory, tensors, facts | here)


def _restore(model: Model, masters: Masters, directory: Path) -> Progress:
    tensors, facts = snapshot.read(directory)
    try:
        at = Progress(facts["step"], facts["seconds"], facts["smooth"])
        if at.step:
            masters.restore(tensors)
            for i, bias in enumerate(balance.biases(model)):
                bias.copy_(tensors[f"bias.{i}"])
    except (KeyError, RuntimeError) as fault:
        raise snapshot.damaged(directory / snapshot.FILE_NAME, repr(fault)) from fault
    return at
