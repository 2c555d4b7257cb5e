"""Success against tokens by effort: three runs from one cold start, a budget for each.

    python benchmarks/efforts.py [--out runs/efforts] [--small] [--set KEY=VALUE]

Addition through a calculator, with a think channel. The dialogues of the cold start
restate the numbers there none to six times, whatever the effort: nothing but the budget
of its effort tells a run how much to think. Prints held-out success and tokens of the
cold start and of each run, and draws OUT/efforts.svg.
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rl
import torch

import k3
from k3.cli import settings
from k3.config.runs import EFFORTS
from k3.post import cold, measure, picture, recipes, run
from k3.post.recipes import Recipe
from k3.train import sft

MOST = 6
DIALOGUES, STEPS = 400, 120
BUDGETS = {"low": (1.0, 0.85), "high": (1.2, 1.05), "max": (4.0, 4.0)}
"""First and last budget of an effort, in lengths of the cold start."""


def recipe(effort: str, args: argparse.Namespace) -> Recipe:
    start, end = BUDGETS[effort]
    chosen = recipes.named(f"agentic-{effort}").set(
        {
            "tasks": "calculator",
            "iterations": 14,
            "prompts": 8,
            "budget_start": start,
            "budget_end": end,
            "budget_steps": 6,
            "max_tokens": 280,
            "learning_rate": 2e-3,
            "heldout": 0,
            "workers": 1,
        }
    )
    small = {"prompts": 2, "samples": 2, "iterations": 1} if args.small else {}
    return chosen.set(small | settings.parse(args.set))


def dialogues() -> Iterator[dict[str, Any]]:
    """Perfect dialogues that restate the numbers so many times before the call."""
    rng = random.Random(0)
    first = rl.FIRST
    for line in cold.dialogues("calculator", range(first, first + DIALOGUES)):
        messages = [dict(message) for message in line["messages"]]
        call = messages[1]["tool_calls"][0]["function"]["arguments"]
        given = json.loads(call)
        again = f"{given['a']} plus {given['b']}. "
        messages[1]["reasoning_content"] = again * rng.randint(0, MOST)
        effort = rng.choice(EFFORTS)
        yield line | {
            "messages": messages,
            "thinking": True,
            "thinking_effort": effort,
        }


def success(model: str, chosen: Recipe, count: int) -> measure.Success:
    """The rate of a checkpoint on held-out instances under a recipe's effort."""
    loaded = k3.load(model, dtype=torch.float32, experts="dequantized")
    tokenizer = k3.tokenizer(model)
    sampler = run.local(loaded, chosen, tokenizer)
    (found,) = measure.heldout(sampler, chosen, tokenizer, count).values()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/efforts"))
    parser.add_argument("--small", action="store_true", help="seconds, no figures")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    args.count = 8 if args.small else args.count
    torch.set_num_threads(1)
    start, figures = args.out / "cold", args.out / "figures.jsonl"
    if not (start / "config.json").exists():
        args.out.mkdir(parents=True, exist_ok=True)
        data = args.out / "cold.jsonl"
        data.write_text("".join(json.dumps(line) + "\n" for line in dialogues()))
        how = {"steps": STEPS, "batch": 1, "learning_rate": 2e-3, "workers": 1}
        sft.run("tiny", data, start, settings=how)
    points = {}
    for effort in EFFORTS:
        chosen, folder = recipe(effort, args), args.out / effort
        if not (folder / "config.json").exists():
            before = success(str(start), chosen, args.count).to_dict()
            rl.tell(figures, effort=effort, model="cold start", **before)
            run.run(chosen, start, folder)
            after = success(str(folder), chosen, args.count).to_dict()
            rl.tell(figures, effort=effort, model="trained", **after)
    lines = [json.loads(line) for line in figures.read_text().splitlines()]
    for line in lines:
        if line["model"] == "trained":
            points[line["effort"]] = line["tokens"], line["rate"]
    drawn = picture.efforts("calculator: success against tokens by effort", points)
    (args.out / "efforts.svg").write_text(drawn)


if __name__ == "__main__":
    main()
