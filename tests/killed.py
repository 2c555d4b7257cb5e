"""A run in a process of its own, to be killed at any moment."""

import dataclasses
import multiprocessing
from multiprocessing.process import BaseProcess
from pathlib import Path

import on_ranks
import toy


def start(directory: Path, steps: int) -> BaseProcess:
    """Begin the run in `directory`, or go on with it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(on_ranks.PRELOAD))
    process = context.Process(target=train, args=(directory, steps), daemon=True)
    process.start()
    return process


def train(directory: Path, steps: int) -> None:
    """Train the toy on text and sums, with a snapshot after every step."""
    from k3.data import corpora
    from k3.train import card, pretrain, snapshot

    unscored = dict.fromkeys(f.name for f in dataclasses.fields(pretrain.Result))
    corpora.stdlib = toy.corpus
    pretrain._judge = lambda *given, **options: pretrain.Result(**unscored)
    card.text = lambda *given: ""
    recipe = dataclasses.replace(
        toy.recipe(),
        steps=steps,
        log_steps=1,
        checkpoint_minutes=1e-9,
        mixture=(("text", 0.5), ("sums", 0.5)),
        optimizer="muon",
        balance="quantile",
        tokens=160,
        micro_batch=1,
    )
    resume = bool(snapshot.kept(directory))
    pretrain.run(recipe, directory, resume=resume, quiet=True)
