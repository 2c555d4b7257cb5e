"""Muon against AdamW, and three ways to balance experts, on the tiny recipe.

    python benchmarks/curves.py [--out docs/pictures] [--steps 100]

Five runs of the tiny model on text, two rows of 512 tokens a step, one thread, the
same rows and the same unbalanced start (biases from -0.5 to 0.5) for all. Writes
curves.json after each run, and at the end optimizers.svg and balancing.svg. Runs in
curves.json are not done again. Loads are those of ten steps together, 10,240 tokens.
"""

import argparse
import dataclasses
import json
import statistics
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch

from k3 import recipes
from k3.data import corpora, packing
from k3.data.corpora import Corpus
from k3.data.mixture import Mixture
from k3.data.packing import Row
from k3.data.tokenizer import Tokenizer
from k3.train import balance, plot, sources, stream, trial
from k3.train.plot import Axis, Curve

ASSETS = Path(__file__).parents[1] / "k3" / "assets" / "tiny"
DOCUMENTS = 300
"""Of the corpus: enough for runs of a few hundred steps, and read in seconds."""

WINDOW = 10

RUNS = {
    "Muon, quantile": {},
    "Muon, none": {"balance": "none"},
    "Muon, sign": {"balance": "sign", "bias_rate": 1e-2},
    "AdamW, quantile": {"optimizer": "adamw"},
    "AdamW at 0.0025, quantile": {"optimizer": "adamw", "learning_rate": 2.5e-3},
}


@cache
def corpus() -> Corpus:
    whole = corpora.stdlib()
    return dataclasses.replace(whole, train=whole.train[:DOCUMENTS])


def text(tokenizer: Tokenizer) -> Callable[[int], Mixture]:
    """The training rows of any length."""
    return sources.mixture((("text", 1.0),), corpus(), tokenizer, 0)


def held_out(tokenizer: Tokenizer, tokens: int, count: int) -> list[Row]:
    """The first rows of the held-out text."""
    ids = stream.tokens(corpus().heldout, tokenizer)
    made = []
    for start in range(0, tokens * count, tokens):
        part = ids[start : start + tokens + 1]
        bounds = part.new_tensor([0, tokens])
        made.append(
            packing.Row(
                ids=part[None, :-1],
                targets=part[None, 1:],
                learned=part[None, 1:] >= 0,
                domains=part[None, :-1].new_zeros(1, tokens).byte(),
                cu_seqlens=bounds,
            )
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    path = args.out / "curves.json"
    held = json.loads(path.read_text()) if path.exists() else {}
    tokenizer = Tokenizer.load(ASSETS)
    data, rows = text(tokenizer), held_out(tokenizer, 512, 12)
    for name, values in RUNS.items():
        if name not in held:
            recipe = dataclasses.replace(base(args.steps), **values)
            model, records = trial.run(recipe, data, trial.unbalance)
            held[name] = {
                "loss": [round(r["loss"], 4) for r in records],
                "load": windows([torch.tensor(r["loads"]) for r in records]),
                "step load": [round(r["expert_max_over_mean"], 3) for r in records],
                "held-out loss": trial.loss(model, rows),
            }
            path.write_text(json.dumps(held))
        one = held[name]
        print(
            f"{name}: held-out loss {one['held-out loss']:.3f}, largest over mean load "
            f"of first, ten and last ten steps {one['step load'][0]:.2f}, "
            f"{one['load'][0]:.2f}, {one['load'][-1]:.2f}",
            flush=True,
        )
    draw(held, args.out)


def base(steps: int) -> recipes.Recipe:
    """The tiny recipe, on text and for one thread."""
    return dataclasses.replace(
        recipes.tiny(),
        mixture=(("text", 1.0),),
        steps=steps,
        batch=2,
        micro_batch=2,
        workers=1,
        optimizer="muon",
        qk_clip=100.0,
        balance="quantile",
        schedule="cosine",
        warmup=0.05,
    )


def draw(held: dict[str, dict[str, list[float]]], out: Path) -> None:
    """Both pictures; losses are means of ten steps."""
    step = Axis(label="step")
    losses = [
        Curve(name=name.split(",")[0], points=_means(held[name]["loss"]))
        for name in held
        if "quantile" in name
    ]
    title = "Training loss of the tiny recipe, nats a token"
    loss = Axis(label="loss")
    (out / "optimizers.svg").write_text(plot.chart(title, losses, x=step, y=loss))
    loads = [
        Curve(
            name=name.partition(", ")[2],
            points=[(WINDOW * (i + 1), load) for i, load in enumerate(one["load"])],
        )
        for name, one in held.items()
        if name.startswith("Muon")
    ]
    title = "Largest over mean expert load, worst layer, from an unbalanced start"
    load = Axis(label="largest / mean", log=True)
    (out / "balancing.svg").write_text(plot.chart(title, loads, x=step, y=load))


def windows(loads: list[torch.Tensor]) -> list[float]:
    """Largest over mean load, worst layer, of each WINDOW steps together."""
    joined = [
        torch.stack(loads[i : i + WINDOW]).sum(0) for i in range(0, len(loads), WINDOW)
    ]
    return [round(balance.imbalance(one), 3) for one in joined]


def _means(values: list[float]) -> list[tuple[float, float]]:
    return [
        (i + 10, statistics.mean(values[i : i + 10])) for i in range(0, len(values), 10)
    ]


if __name__ == "__main__":
    main()
