"""`k3 draft`: a draft for a checkpoint, from data to a folder that a server reads."""

import dataclasses
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from k3.checkpoint import load, locate
from k3.config import TextConfig
from k3.config.draft import DraftConfig
from k3.data.mixture import Mixture
from k3.errors import RequestError
from k3.model import Model
from k3.model.draft import Draft
from k3.train import draft as training
from k3.train import draft_data, plot, pretrain, report
from k3.train.draft import DraftOptions, Record
from k3.train.plot import Axis, Curve

HELD_ROWS = 8
"""Held-out rows that a draft is judged by, before and after."""

PICTURE = "loss.svg"
SHAPE = ("taps", "taps_of", "taps_at", "layout", "experts", "num_speculative_steps")
OPTIONS = tuple(f.name for f in dataclasses.fields(DraftOptions))
SETTINGS = (*OPTIONS, *SHAPE)


@dataclass(frozen=True, slots=True)
class Result:
    """What a run did, on held-out rows: nats a position, overlap at each position."""

    directory: str
    steps: int
    parameters: int
    loss_before: float
    loss_after: float
    overlap_before: list[float]
    overlap_after: list[float]
    seconds: float


def run(
    base: str | Path,
    out: str | Path,
    data: Sequence[str] = draft_data.DEFAULT,
    *,
    settings: Mapping[str, Any] | None = None,
    quiet: bool = False,
) -> Result:
    """Train a draft for the checkpoint `base` into the new folder `out`.

    `settings` are SETTINGS, `data` what draft_data.mixtures reads. The folder gets
    metrics.jsonl as it comes, then the draft: without config.json it is none.
    Raises: RequestError, ConfigError, CheckpointError.
    """
    began, folder, directory = time.monotonic(), locate.locate(base), Path(out)
    options, shape = _settings(settings or {})
    with report.stage("reading the target and the data", quiet=quiet):
        target = load.load(folder, dtype=torch.float32, experts="dequantized")
        target.requires_grad_(False)
        config = _config(target.config.text, shape)
        mixed = draft_data.mixtures(data, folder, options.tokens, options.seed)
        held = [mixed[1].row(n) for n in range(HELD_ROWS)]
    pretrain.open_fresh(directory)
    draft = Draft(config, torch.float32).start_(target, options.seed)
    with report.stage("overlap before", quiet=quiet):
        loss, rates = training.measure(target, draft, held)
    records = _train(target, draft, mixed[0], options, directory, quiet=quiet)
    with report.stage("overlap after", quiet=quiet):
        after = training.measure(target, draft, held)
    (directory / PICTURE).write_text(picture(records))
    return Result(
        str(directory),
        options.steps,
        parameters=sum(p.numel() for p in draft.parameters()),
        loss_before=loss,
        loss_after=after[0],
        overlap_before=rates,
        overlap_after=after[1],
        seconds=time.monotonic() - began,
    )


def picture(records: Sequence[Record]) -> str:
    """The loss over the steps, as SVG."""
    points = [(record["step"], record["loss"]) for record in records]
    curve = Curve(name="minus log of the overlap, mean of all positions", points=points)
    x, y = Axis(label="step"), Axis(label="nats a position")
    return plot.chart("The loss of a draft", [curve], x=x, y=y)


def line(record: Record, steps: int) -> str:
    """A record as a line of text."""
    rates = [value for name, value in record.items() if name.startswith("overlap_")]
    left = int(record["seconds"] * (steps - record["step"]))
    return (
        f"step {record['step']}/{steps} loss {record['loss']:.3f} overlap "
        f"{rates[0]:.3f} first, {rates[-1]:.3f} last, {record['seconds']:.1f} s a step "
        f"eta {left // 60}:{left % 60:02d}"
    )


def _train(
    target: Model,
    draft: Draft,
    rows: Mixture,
    options: DraftOptions,
    directory: Path,
    *,
    quiet: bool,
) -> list[Record]:
    def tell(record: Record) -> None:
        if not quiet:
            print(line(record, options.steps), file=sys.stderr, flush=True)

    return training.run(
        target,
        draft,
        lambda step: rows.rows(step, options.batch),
        options,
        out=directory,
        report=tell,
    )


def _config(text: TextConfig, shape: Mapping[str, Any]) -> DraftConfig:
    """The draft of a target: routed experts where its MTP layer has them."""
    fused = shape.get("layout") == "fused"
    experts = text.num_nextn_predict_layers > 0 and not fused
    return DraftConfig(text=text, **({"experts": experts} | dict(shape)))


def _settings(given: Mapping[str, Any]) -> tuple[DraftOptions, dict[str, Any]]:
    """Options of training, and fields of the draft's config."""
    for name in given:
        if name not in SETTINGS:
            raise RequestError(
                f"a draft has the settings {', '.join(SETTINGS)}: got {name!r}; "
                "choose among them"
            )
    shape = {name: given[name] for name in SHAPE if name in given}
    if "taps" in shape:
        shape["taps"] = tuple(shape["taps"])
    return DraftOptions(**{n: given[n] for n in OPTIONS if n in given}), shape
