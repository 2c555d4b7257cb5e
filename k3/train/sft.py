"""Fine-tuning on conversations: loss on what the assistant writes, packed rows."""

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from k3.checkpoint import load, locate
from k3.config import K3Config
from k3.data import conversations, limits, shards, turns
from k3.data.corpora import is_heldout
from k3.data.examples import Example
from k3.data.limits import ImageLimits
from k3.data.listed import Listed
from k3.data.mixture import Mixture
from k3.data.packing import pack
from k3.data.tokenizer import Tokenizer
from k3.errors import CheckpointError, RequestError
from k3.model import Model
from k3.train import adapter_files, loop, lora, pretrain, report, snapshot
from k3.train.recipe import Recipe

MERGED = "merged"
"""The folder of a checkpoint that has its adapter added in."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run did: mean losses in nats a learned token, before and after.

    They are of held-out conversations, of those trained on where none is held out.
    """

    directory: str
    steps: int
    loss_before: float
    loss_after: float
    conversations: int
    heldout: int
    trained: int


def recipe(config: K3Config, tokenizer: Tokenizer, *, adapter: bool = False) -> Recipe:
    """The defaults for a checkpoint: a low rate, no MTP loss, AdamW for an adapter."""
    plain = Recipe(
        name="sft",
        config=config,
        num_ranks=tokenizer.num_ranks,
        steps=200,
        batch=4,
        tokens=1024,
        learning_rate=1e-4,
        warmup=0.05,
        mtp_weight=0.0,
    )
    if not adapter:
        return plain
    # Only adapters move: no biases, and no weights of the base to clip.
    changes: dict[str, Any] = {"optimizer": "adamw", "balance": "none", "qk_clip": 0.0}
    return dataclasses.replace(plain, learning_rate=1e-3, weight_decay=0.0, **changes)


def run(
    base: str | Path,
    data: str | Path,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    adapter: lora.Options | None = None,
    resume: bool = False,
    quiet: bool = False,
) -> Result:
    """Fine-tune the checkpoint `base` on a JSONL file into the new folder `out`.

    Without an adapter `out` is a checkpoint. With one it holds the adapter in peft's
    layout, and the checkpoint with the adapter added in below it, in `merged`.
    Raises: RequestError, CheckpointError.
    """
    folder, directory = locate.locate(base), Path(out)
    tokenizer = Tokenizer.load(folder)
    found = conversations.read(data, tokenizer, ImageLimits.load(folder))
    train, held = _split(found)
    model = load.load(folder, dtype=torch.float32, experts="dequantized")
    plain = recipe(model.config, tokenizer, adapter=adapter is not None)
    chosen = _checked(plain.set(settings or {}), adapter)
    rows = mixture(train, chosen.seed, tokenizer.pad_id)
    rows(chosen.stage(0).tokens)
    facts = _facts(chosen, data, model, adapter)
    _open(directory, facts, resume=resume)
    with report.stage("loss before", quiet=quiet):
        before = mean_loss(model, held or train)
    if adapter is not None:
        lora.attach(model, adapter)
    with report.reporter(directory, quiet=quiet) as tell:
        how: dict[str, Any] = {"facts": facts, "resume": resume, "report": tell}
        at = loop.run(model, rows, chosen, directory, **how)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    with report.stage("writing, loss after", quiet=quiet):
        made = write(model, folder, directory, adapter)
        after = mean_loss(load.load(made, dtype=torch.float32), held or train)
    counts = len(train), len(held), trained
    return Result(str(directory), at.step, before, after, *counts)


def mixture(
    examples: Sequence[Example], seed: int, pad_id: int
) -> Callable[[int], Mixture]:
    """Rows by their length; each effort is a domain with the share it has of tokens."""
    domains = sorted({example.domain for example in examples})
    sources = [
        Listed(name, [e for e in examples if e.domain == name], seed)
        for name in domains
    ]

    def rows(tokens: int) -> Mixture:
        # A row is a turn, so a source's share is that of its rows, or the least one.
        counts = [source.rows_per_epoch(tokens) for source in sources]
        weights = [max(count, sum(counts) / turns.PERIOD) for count in counts]
        return Mixture(
            sources=sources, weights=weights, tokens=tokens, seed=seed, pad_id=pad_id
        )

    return rows


@torch.inference_mode()
def mean_loss(model: Model, examples: Iterable[Example]) -> float:
    """Nats a learned token, each conversation alone."""
    total, count = [], 0
    for example in examples:
        row = pack([example], len(example), 0)
        features = None
        if row.pixels is not None and row.grids is not None:
            features = model.encode_images(row.pixels, row.grids)
        logits = model(row.ids, features=features)
        assert isinstance(logits, torch.Tensor)
        losses = F.cross_entropy(
            logits[row.learned], row.targets[row.learned], reduction="sum"
        )
        total.append(float(losses))
        count += int(row.learned.sum())
    return math.fsum(total) / count


def _split(found: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """To train on, and held out: by a hash of the ids, so that copies stay together."""
    sides: tuple[list[Example], list[Example]] = [], []
    for example in found:
        sides[is_heldout(",".join(map(str, example.ids.tolist())))].append(example)
    if not sides[0]:
        return list(found), []
    return sides


def _facts(
    chosen: Recipe, data: str | Path, model: Model, adapter: lora.Options | None
) -> dict[str, Any]:
    facts = {
        "recipe": chosen.to_dict(),
        "data": conversations.sha256(data),
        "base": model.weight_version,
        "adapter": None if adapter is None else dataclasses.asdict(adapter),
    }
    # As they come back from a snapshot: lists, where there were tuples.
    return dict(json.loads(json.dumps(facts)))


def _open(directory: Path, facts: dict[str, Any], *, resume: bool) -> None:
    if not resume:
        pretrain.open_fresh(directory)
        return
    before = snapshot.read(directory)[1]
    wrong = [
        key for key in ("data", "base", "adapter") if before.get(key) != facts[key]
    ]
    old, new = before.get("recipe") or {}, facts["recipe"]
    wrong += [
        key
        for key, value in new.items()
        if key not in pretrain.RESUMABLE and old.get(key) != value
    ]
    if wrong:
        raise CheckpointError(
            f"a resumed run must be the one that began in {directory}: other "
            f"{', '.join(wrong)}; give what it began with"
        )
    report.keep_until(directory / report.FILE_NAME, int(before["step"]))


def _checked(chosen: Recipe, adapter: lora.Options | None) -> Recipe:
    """With an adapter nothing of the base moves."""
    wanted = {"optimizer": "adamw", "balance": "none", "qk_clip": 0.0}
    for key, value in wanted.items() if adapter is not None else ():
        if getattr(chosen, key) != value:
            raise RequestError(
                f"{key} must be {value} with an adapter, which alone moves: got "
                f"{getattr(chosen, key)}; leave it out"
            )
    return chosen


def write(
    model: Model, base: Path, directory: Path, adapter: lora.Options | None
) -> Path:
    """Write the adapter, and the checkpoint; return where the latter is."""
    made = directory
    if adapter is not None:
        adapter_files.write(model, directory, base=str(base))
        lora.merge_(model)
        made = directory / MERGED
    pretrain.package(model, made)
    Tokenizer.load(base).save(made)
    for name in (limits.FILE_NAME, "generation_config.json"):
        if (base / name).is_file():
            shards.replace(made / name, (base / name).read_bytes())
    return made
