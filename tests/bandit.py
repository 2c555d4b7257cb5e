"""Reinforcement learning of the toy model in seconds: episodes of a few tokens.

An answer ends with a token below 300, half of the vocabulary; two turns are played,
and the first token of the first one is right if it is even.
"""

import multiprocessing
from multiprocessing.process import BaseProcess
from pathlib import Path

import on_ranks
import torch
import toy

from k3.model import Model
from k3.post import journal, recover, rl
from k3.post.engine import EngineSampler, SamplerOptions
from k3.post.journal import Journal
from k3.post.prompts import Prompts
from k3.post.recipes import Recipe
from k3.post.rewards import Rewards
from k3.post.rl import Loop
from k3.post.run import prepared
from k3.serve.engine import Engine, EngineOptions
from k3.serve.layout import CacheOptions
from k3.train import snapshot, workers
from k3.train.writer import Writer


class Even:
    """The environment; `spoiled` says in which of its calls it fails."""

    def __init__(self, number, spoiled=""):
        self.number, self.spoiled, self.heard = number, spoiled, []

    def _maybe(self, what):
        if self.spoiled == what:
            raise OSError(f"the sandbox is gone at {what}")

    def begin(self):
        self._maybe("begin")
        return [400, 401, 402 + self.number % 50]

    def reply(self, written):
        self._maybe("reply")
        self.heard.append(list(written))
        return [410, 411] if len(self.heard) < 2 else None

    def reward(self):
        self._maybe("reward")
        return float(bool(self.heard[0]) and self.heard[0][0] % 2 == 0)


class Numbers(Prompts):
    """Episodes by their number, of one task."""

    def __init__(self, chosen, spoil=lambda number: ""):
        self.recipe, self.number, self.spoil = chosen, 0, spoil

    def __call__(self):
        number = self.number
        self.number += 1
        return f"even:{number}", lambda: Even(number, self.spoil(number))


def recipe(**changes):
    plain = Recipe(
        name="bandit",
        domain="agentic",
        effort="low",
        tasks=("even",),
        iterations=2,
        prompts=3,
        samples=4,
        share=1.0,
        max_tokens=6,
        optimizer="adamw",
        adamw_rate=1.0,
        learning_rate=5e-3,
        pass_tokens=64,
        workers=1,
        checkpoint_minutes=0,
    )
    return plain.set(changes)


def model():
    return Model(toy.config(), dtype=torch.float32).init_weights(3)


def loop(directory, chosen, log, prompts=None, taught=None):
    """A run that goes on from what the folder holds, and its prompts."""
    made = taught or model()
    held = prepared(made, chosen)
    cache = CacheOptions(hash_tokens=16, block_tokens=32, chunk_tokens=32)
    engine = Engine(made, EngineOptions(cache=cache, routes=chosen.replay))
    options = SamplerOptions(stop_ids=tuple(range(300)), seed=chosen.seed)
    prompts = prompts or Numbers(chosen)
    rewards = Rewards(baselines={"even": 4.0}, budget=chosen.budget)
    sampler = EngineSampler(engine, options)
    found = Loop.of(chosen, held, sampler, prompts, (rewards, log))
    recover.restore(found, prompts, directory)
    return found


def run(
    directory: Path,
    chosen=None,
    prompts=None,
    report=lambda record: None,
    teach=rl.reinforced,
):
    """Begin the run in a folder, or go on with it; return the loop at its end."""
    chosen = chosen or recipe()
    torch.set_num_threads(1)
    if not snapshot.kept(directory):
        snapshot.write(directory, {}, rl.At().facts())
    with (
        Journal(directory / journal.FILE_NAME) as log,
        Writer(directory, chosen.keep) as writer,
        workers.pool(1) as pool,
    ):
        found = loop(directory, chosen, log, prompts)
        found.teach = teach
        rl.steps(found, pool, writer, {}, report)
    return found


def weights(found):
    return {n: w.detach().clone() for n, w in found.policy.masters.weights.items()}


def start(directory: Path, iterations: int) -> BaseProcess:
    """The same run in a process of its own, to be killed at any moment."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*on_ranks.PRELOAD, "bandit"])
    process = context.Process(target=_apart, args=(directory, iterations), daemon=True)
    process.start()
    return process


def _apart(directory: Path, iterations: int) -> None:
    run(directory, recipe(iterations=iterations))
