"""Success on held-out instances before and after reinforcement learning, by seed.

    python benchmarks/rl.py [--tasks calculator lookup] [--seeds 0 1 2] [--small]
        [--out runs/rl] [--iterations N] [--set KEY=VALUE]

For each task: the shipped model's rate; a cold start, which is a short fine-tuning on
few dialogues of a perfect agent, and its rate; then for each seed a run of `k3 rl` from
there, and its rate. Rates are of held-out instances that no dialogue and no sample was
of, at temperature 1 and greedy, with Wilson's intervals. Prints a JSON line a figure,
writes them to OUT/figures.jsonl, and the curves of all runs to OUT/rl-TASK.svg
and .json.
Steps that are there already are not done again.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch

import k3
from k3.cli import settings
from k3.post import cold, measure, picture, recipes, run
from k3.post.engine import EngineSampler, SamplerOptions
from k3.post.recipes import Recipe
from k3.train import curves, report, sft

DIALOGUES = 200
STEPS = {"calculator": 18, "lookup": 10}
"""Of the cold start: so few that it succeeds now and then."""
ITERATIONS = {"calculator": 30, "lookup": 50}
FIRST = 10**9
"""Instances of the cold start, which no seed of a run begins at."""


def recipe(task: str, args: argparse.Namespace) -> Recipe:
    chosen = recipes.named("agentic-high").set(
        {
            "tasks": task,
            "thinking": False,
            "budget_start": 0,
            "max_tokens": 160,
            "learning_rate": 2.5e-3,
            "iterations": args.iterations or ITERATIONS[task],
            "shaped": task == "lookup",
            "heldout": 0,
            "workers": 1,
        }
    )
    small = {"prompts": 4, "samples": 4, "iterations": 2} if args.small else {}
    return chosen.set(small | settings.parse(args.set))


def success(model: str, chosen: Recipe, count: int) -> dict[str, Any]:
    """Rates of a checkpoint on held-out instances, sampled and greedy."""
    loaded = k3.load(model, dtype=torch.float32, experts="dequantized")
    tokenizer = k3.tokenizer(model)
    sampler = run.local(loaded, chosen, tokenizer)
    ends = sampler.options.stop_ids
    greedy = EngineSampler(
        sampler.engine, SamplerOptions(temperature=0.0, stop_ids=ends)
    )
    found = {}
    for name, one in (("sampled", sampler), ("greedy", greedy)):
        (rate,) = measure.heldout(one, chosen, tokenizer, count).values()
        found[name] = rate.to_dict()
    return found


def cold_start(task: str, folder: Path) -> None:
    """Fine-tune the shipped model on few dialogues of a perfect agent."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    data = folder.with_suffix(".jsonl")
    lines = cold.dialogues(task, range(FIRST, FIRST + DIALOGUES))
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    how = {"steps": STEPS[task], "batch": 1, "learning_rate": 2e-3, "workers": 1}
    sft.run("tiny", data, folder, settings=how | {"schedule": "cosine"})


def tell(path: Path, **figure: Any) -> None:
    print(json.dumps(figure), flush=True)
    with path.open("a") as file:
        file.write(json.dumps(figure) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=["calculator", "lookup"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--small", action="store_true", help="seconds, no figures")
    parser.add_argument("--out", type=Path, default=Path("runs/rl"))
    parser.add_argument("--iterations", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    args.count = 8 if args.small else args.count
    torch.set_num_threads(1)
    for task in args.tasks:
        one(task, args)


def one(task: str, args: argparse.Namespace) -> None:
    """All figures of a task."""
    out, chosen = args.out, recipe(task, args)
    start, figures = out / f"{task}-cold", out / "figures.jsonl"
    if not (start / "config.json").exists():
        cold_start(task, start)
        for name, model in (("shipped", "tiny"), ("cold start", str(start))):
            tell(figures, task=task, model=name, **success(model, chosen, args.count))
    runs = {}
    for seed in args.seeds:
        folder = out / f"{task}-{seed}"
        if not (folder / "config.json").exists():
            done = run.run(chosen.set({"seed": seed}), start, folder)
            after = success(str(folder), chosen, args.count)
            told = {"task": task, "model": "trained", "seed": seed, **after}
            tell(figures, **told, seconds=done.seconds, iterations=done.iteration)
        runs[f"seed {seed}"] = curves.read(folder / report.FILE_NAME)
    if runs:
        keep(task, out, runs)


def keep(task: str, out: Path, runs: dict[str, list[dict[str, Any]]]) -> None:
    """Write the picture of a task, and what it shows with its figures as JSON."""
    title = f"{task}: success of an iteration's samples"
    (out / f"rl-{task}.svg").write_text(picture.runs(title, runs, "success"))
    lines = (out / "figures.jsonl").read_text().splitlines()
    figures = [f for f in map(json.loads, lines) if f["task"] == task]
    shown = {
        name: [[r["step"], round(r["success"], 4)] for r in records]
        for name, records in runs.items()
    }
    told = {"figures": figures, "success": shown}
    (out / f"rl-{task}.json").write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
