"""Partial rollouts against waiting for the slowest and against discarding the rest.

    python benchmarks/rollouts.py [--samples 200] [--small]

The shipped model writes on an engine of 32 seats, 8 prompts of 4 samples under way.
How long a sample is is drawn from a long tail: log-normal, median 32 tokens, sigma 1.1,
at most 512. After each iteration the weights are new: what goes on is run again under
them. Each way goes on until so many samples have finished. Throughput is tokens of
finished samples, by step of the engine and by second; wasted is the share of tokens
that were written and thrown away; prefilled are tokens of prompts, and of what samples
had written before, that were run to go on, by finished sample.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

import k3
from k3.post.engine import EngineSampler, SamplerOptions
from k3.serve import CacheOptions
from k3.serve.engine import Engine, EngineOptions
from k3.train.rollout import Piece, RolloutOptions, Rollouts
from k3.train.trajectory import Picture, Trajectory

PROMPTS, SAMPLES, LONGEST = 8, 4, 512
WAYS = {"partial": 0.5, "wait": 1.0, "discard": 0.5}
"""The share of samples that ends an iteration."""
PROMPT_TOKENS = 24


class Turn:
    """An episode of one turn, whose prompt is drawn by its number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def begin(self) -> list[int]:
        """A prompt of its own."""
        draw = random.Random(self.number)
        return [draw.randrange(200, 1500) for _ in range(PROMPT_TOKENS)]

    def reply(self, written: Sequence[int]) -> None:
        """One turn is all."""

    def reward(self) -> float:
        """Nothing is learned here."""
        return 0.0


def length(key: str, attempt: int) -> int:
    """Tokens that an attempt at a sample writes, from a long tail."""
    draw = random.Random(f"{key}/{attempt}")
    return max(1, min(LONGEST, int(draw.lognormvariate(3.466, 1.1))))


@dataclass(slots=True)
class Tailed:
    """A sampler whose turns end at their drawn length; counts what it writes."""

    sampler: EngineSampler
    attempts: dict[str, int] = field(default_factory=dict)
    wasted: int = 0

    @property
    def version(self) -> int:
        """As the engine's."""
        return self.sampler.version

    def submit(
        self,
        key: str,
        tokens: Sequence[int],
        max_tokens: int,
        pictures: Sequence[Picture] = (),
    ) -> None:
        """Go on to the drawn length."""
        most = length(key, self.attempts.get(key, 0))
        self.sampler.submit(key, tokens, most - (len(tokens) - PROMPT_TOKENS))

    def step(self) -> list[Piece]:
        """One step of the engine."""
        return self.sampler.step()

    def pause(self, key: str) -> None:
        """Stop a sample."""
        self.sampler.pause(key)

    def room(self) -> int:
        """Free seats."""
        return self.sampler.room()

    def discard(self, one: Trajectory) -> None:
        """Throw a sample away: it begins anew, and its length is drawn again."""
        self.attempts[one.key] = self.attempts.get(one.key, 0) + 1
        self.wasted += one.num_written
        one.restart(one.episode)


def numbers() -> Iterator[int]:
    """0, 1, 2, ..."""
    at = 0
    while True:
        yield at
        at += 1


def run(model: Any, way: str, samples: int) -> dict[str, Any]:
    """One way, until so many samples have finished."""
    cache = CacheOptions(hash_tokens=16, block_tokens=64, chunk_tokens=256)
    options = EngineOptions(max_num_seqs=PROMPTS * SAMPLES, cache=cache)
    engine = Engine(model, options)
    sampler = Tailed(EngineSampler(engine, SamplerOptions(ignore_eos=True)))
    done: list[tuple[Trajectory, float]] = []
    source = numbers()

    def more() -> tuple[str, Any]:
        number = next(source)
        return f"p{number}", lambda: Turn(number)

    rollouts = Rollouts(
        sampler,
        more,
        RolloutOptions(prompts=PROMPTS, samples=SAMPLES, share=WAYS[way]),
        lambda one: done.append((one, one.staleness(sampler.version))),
    )
    began, iterations = time.perf_counter(), 0
    while len(done) < samples:
        rollouts.iterate()
        iterations += 1
        if way == "discard":
            for one in rollouts.unfinished:
                sampler.discard(one)
        sampler.sampler.update()
    return told(engine, sampler, done, iterations, time.perf_counter() - began)


def told(
    engine: Engine,
    sampler: Tailed,
    done: Sequence[tuple[Trajectory, float]],
    iterations: int,
    seconds: float,
) -> dict[str, Any]:
    """The figures of a run."""
    lengths = [one.num_written for one, _ in done]
    kept, counts = sum(lengths), engine.counts
    ages = [age for _, age in done]
    return {
        "samples": len(done),
        "iterations": iterations,
        "steps": counts.steps,
        "tokens": kept,
        "mean_length": round(kept / len(done), 1),
        "tokens_per_step": round(kept / counts.steps, 2),
        "tokens_per_second": round(kept / seconds, 1),
        "wasted": round(sampler.wasted / (sampler.wasted + kept), 3),
        "prefilled": round((counts.prompt_tokens - counts.cached_tokens) / len(done)),
        "staleness_mean": round(sum(ages) / len(ages), 3),
        "staleness_most": round(max(ages), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--small", action="store_true", help="seconds, no figures")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = k3.load("tiny", dtype=torch.float32, experts="dequantized")
    drawn = [length(f"x{i}", 0) for i in range(20_000)]
    print(json.dumps({"mean_length_drawn": round(sum(drawn) / len(drawn), 1)}))
    for way in WAYS:
        found = run(model, way, 8 if args.small else args.samples)
        print(json.dumps({"way": way} | found), flush=True)


if __name__ == "__main__":
    main()
