"""`k3 train`: from text to a checkpoint in the released layout, with its card."""

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from k3.checkpoint import load, save
from k3.data import bpe, corpora
from k3.data.corpora import Corpus
from k3.data.mixture import Mixture
from k3.data.tokenizer import Tokenizer
from k3.errors import CheckpointError, RequestError
from k3.model import Model
from k3.model.mtp import MTP
from k3.train import (
    baselines,
    card,
    curves,
    evaluate,
    loop,
    report,
    snapshot,
    sources,
    start,
    track,
)
from k3.train.progress import Progress
from k3.train.recipe import Recipe

RESUMABLE = (
    "checkpoint_minutes",
    "decay",
    "keep",
    "log_steps",
    "max_skipped",
    "parallel",
    "spike",
    "steps",
    "window",
    "workers",
)
"""What may differ when a run is resumed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a finished run is judged by.

    `seconds` are those of all training steps, `total_seconds` those of this call.
    """

    directory: str
    steps: int
    tokens: int
    seconds: float
    bits_per_byte: float
    xz: float
    xz_alone: float
    kneser_ney: float
    total_seconds: float = field(default=0.0, compare=False)


def run(
    recipe: Recipe,
    out: str | Path,
    *,
    resume: bool = False,
    quiet: bool = False,
    command: str = "",
    trackers: Sequence[str] = (),
) -> Result:
    """Train a recipe into the directory `out` and judge the files that were written.

    Leaves config, shards, index, tokenizer, generation config, README.md (the card,
    which quotes `command`), metrics.jsonl, its curves and the last snapshots. Unless
    `quiet`, every stage says on standard error what it is and how long it took.
    `trackers` (k3.train.track) get the records too.
    Raises: RequestError for a directory that holds another run.
    """
    began, directory = time.monotonic(), Path(out)
    sources.check(name for name, _ in recipe.mixture)
    track.check(trackers)
    before = snapshot.read(directory)[1] if resume else open_fresh(directory)
    with report.stage("reading text", quiet=quiet):
        corpus = corpora.stdlib()
    facts = {"recipe": recipe.to_dict(), "corpus": corpus.sha256}
    _begin(directory, before, facts, resume=resume)
    # A run that was cut before its first step may have left half a tokenizer.
    data = open_rows(recipe, corpus, directory, bool(before.get("step")), quiet=quiet)
    model = fresh(recipe)
    with (
        track.opened(trackers, recipe, directory) as also,
        report.reporter(directory, quiet=quiet, also=also) as tell,
    ):
        at = loop.run(
            model, data, recipe, directory, facts=facts, resume=resume, report=tell
        )
    package(model, directory)
    curves.draw(directory)
    result = judge(recipe, corpus, directory, at, quiet=quiet)
    (directory / card.FILE_NAME).write_text(card.text(recipe, corpus, result, command))
    return dataclasses.replace(result, total_seconds=time.monotonic() - began)


def _begin(
    directory: Path, before: dict[str, Any], facts: dict[str, Any], *, resume: bool
) -> None:
    """Make the folder one of this run at the step of its snapshot."""
    if resume:
        check_same(directory, before, facts)
        report.keep_until(directory / report.FILE_NAME, before["step"])
    else:
        loop.begin(directory, facts)


def open_rows(
    recipe: Recipe, corpus: Corpus, directory: Path, known: bool, *, quiet: bool
) -> Callable[[int], Mixture]:
    """Return the rows of any length, under the tokenizer that the run has or gets."""
    stage = "reading the tokenizer" if known else "training the tokenizer"
    with report.stage(stage, quiet=quiet):
        tokenizer = _tokenizer(recipe, corpus, directory, known)
    with report.stage("encoding text", quiet=quiet):
        return sources.mixture(recipe.mixture, corpus, tokenizer, recipe.seed)


def fresh(recipe: Recipe) -> Model:
    """Return the model before its first step, fp32 with dense experts."""
    model = Model(recipe.config, dtype=torch.float32).init_weights(recipe.seed)
    start.from_embedding_(model)
    language = model.language_model
    for layer in language.model.layers:
        if isinstance(layer, MTP):
            # One vocabulary, as in DeepSeek-V3; the file holds it twice.
            layer.embed_tokens.weight = language.model.embed_tokens.weight
            layer.shared_head.head.weight = language.lm_head.weight
    return model


def package(model: Model, directory: Path) -> None:
    """Write the weights with MXFP4 experts, and how to generate from them."""
    save.save(model, directory, experts="packed")
    config = model.config
    values = {
        "bos_token_id": config.bos_token_id,
        "do_sample": False,
        "eos_token_id": config.eos_token_id,
        "pad_token_id": config.pad_token_id,
    }
    path = directory / "generation_config.json"
    path.write_text(json.dumps(values, indent=2) + "\n")


def judge(
    recipe: Recipe,
    corpus: Corpus,
    directory: Path,
    at: Progress,
    *,
    quiet: bool,
) -> Result:
    """Score the files on the held-out text, as a user loads them."""
    with report.stage("scoring held-out text", quiet=quiet):
        model = load.load(directory)
        tokenizer = Tokenizer.load(directory)
        bits = evaluate.bits_per_byte(
            model, tokenizer, corpus.heldout, recipe.window, recipe.workers
        )
    with report.stage("baselines: xz, Kneser-Ney", quiet=quiet):
        train, heldout = corpora.join(corpus.train), corpora.join(corpus.heldout)
        xz, alone = baselines.xz_bits_per_byte(train, heldout)
        smoothed = baselines.KneserNey.fit(train, baselines.ORDER)
        kneser_ney = smoothed.bits_per_byte(heldout, train)
    return Result(
        directory=str(directory),
        steps=at.step,
        tokens=at.tokens,
        seconds=at.seconds,
        bits_per_byte=bits,
        xz=xz,
        xz_alone=alone,
        kneser_ney=kneser_ney,
    )


def open_fresh(directory: Path) -> dict[str, Any]:
    """Make the directory of a fresh run, of which nothing is known yet."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        held = {path.name for path in directory.iterdir()}
    except OSError as fault:
        raise RequestError(
            f"a run needs a directory to write: got {directory} ({fault.strerror}); "
            "choose another one"
        ) from fault
    # A kill in the first moment leaves the snapshot of step 0 half written.
    if held - {snapshot.WRITING}:
        raise RequestError(
            f"a run starts in an empty directory: got {directory} with files in "
            "it; choose another one, or resume"
        )
    return {}


def check_same(directory: Path, before: dict[str, Any], facts: dict[str, Any]) -> None:
    """Refuse to go on with a run that is not the one in the directory."""
    old, new = before.get("recipe"), facts["recipe"]
    if not isinstance(old, dict) or not isinstance(before.get("step"), int):
        path = snapshot.kept(directory)[0]
        raise snapshot.damaged(path, "it names no run")
    wrong = [
        f"{key} was {old.get(key)} and is {value}"
        for key, value in new.items()
        if key not in RESUMABLE and old.get(key) != value
    ]
    if before.get("corpus") != facts["corpus"]:
        wrong.append("the corpus has another hash, as under another Python")
    if wrong:
        raise CheckpointError(
            f"a resumed run must be the one that began in {directory}: "
            + "; ".join(wrong)
        )


def _tokenizer(
    recipe: Recipe, corpus: Corpus, directory: Path, known: bool
) -> Tokenizer:
    """Learn the vocabulary from the training text, or read it back."""
    if not known:
        names = [name for name, _ in recipe.mixture]
        texts = sources.texts(names, corpus)
        Tokenizer(bpe.train(texts, recipe.num_ranks)).save(directory)
    return Tokenizer.load(directory)
