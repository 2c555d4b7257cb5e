"""A run of reinforcement learning: a folder, its model, its loop, its measures."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from k3.checkpoint import load, locate
from k3.data.tokenizer import Tokenizer
from k3.errors import CheckpointError
from k3.model import Model
from k3.model.mla import MLA
from k3.post import anchor, journal, measure, picture, recover, rl, served
from k3.post.engine import EngineSampler, SamplerOptions
from k3.post.episode import end_id
from k3.post.journal import Journal
from k3.post.policy import Policy
from k3.post.prompts import Prompts
from k3.post.recipes import RESUMABLE, Recipe
from k3.post.rewards import Rewards
from k3.post.rl import Loop, Teach, Updated
from k3.post.tournament import Tournament
from k3.serve.engine import Engine, EngineOptions
from k3.serve.layout import CacheOptions
from k3.train import pretrain, report, sft, snapshot, workers
from k3.train.balance import Balance
from k3.train.masters import Masters
from k3.train.writer import Writer

BASELINE = 32
"""Samples a task whose mean length budgets are relative to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a run did: held-out success at temperature 1 before and after, by task."""

    directory: str
    iteration: int
    seconds: float
    sampled_tokens: int
    learned_tokens: int
    before: dict[str, dict[str, Any]]
    after: dict[str, dict[str, Any]]


def run(
    recipe: Recipe,
    base: str | Path,
    out: str | Path,
    *,
    server: tuple[str, str] | None = None,
    judged: Mapping[str, Tournament] | None = None,
    resume: bool = False,
    quiet: bool = False,
) -> Result:
    """Train the checkpoint `base` by a recipe into the folder `out`.

    `server` is a URL, and the command that pushes weights to it (k3.post.served); else
    an engine of this process samples. In tasks of `judged` the samples of a prompt meet
    in a tournament; scores count in the others. The folder holds the checkpoint,
    metrics.jsonl, curves, every finished sample and the last snapshots.
    Raises: RequestError, CheckpointError.
    """
    folder, directory = locate.locate(base), Path(out)
    tokenizer = Tokenizer.load(folder)
    model = load.load(folder, dtype=torch.float32, experts="dequantized")
    facts = _facts(recipe, model, judged or {})
    known = open_folder(directory, facts, resume=resume)
    policy = prepared(model, recipe)
    sampling: Updated = local(model, recipe, tokenizer)
    if server is not None:
        sampling = served.opened(*server, directory, recipe, tokenizer)(model)
    lengths = recipe.budget is not None or bool(judged)
    parts = sampling, recipe, tokenizer, quiet
    facts |= _begun(directory, facts, known, parts, lengths)
    prompts = Prompts(recipe, tokenizer)
    with anchor.opened(recipe, folder) as teach:
        place = directory, quiet, judged, teach
        at = _train(policy, sampling, prompts, facts, place)
    sft.write(model, folder, directory, None)
    picture.draw(directory)
    with report.stage("success after", quiet=quiet):
        after = _success(sampling, recipe, tokenizer)
    told = {key: value for key, value in at.facts().items() if key != "step"}
    return Result(directory=str(directory), before=facts["before"], after=after, **told)


def _train(
    policy: Policy,
    sampler: Updated,
    prompts: Prompts,
    facts: dict[str, Any],
    place: tuple[Path, bool, Mapping[str, Tournament] | None, Teach],
) -> rl.At:
    """Iterate from the newest snapshot to the recipe's end."""
    recipe, (directory, quiet, judged, teach) = prompts.recipe, place
    rewards = Rewards(
        baselines=facts["baselines"], budget=recipe.budget, judged=judged or {}
    )
    with (
        Journal(directory / journal.FILE_NAME) as log,
        Writer(directory, recipe.keep) as writer,
        workers.pool(recipe.workers) as pool,
        report.reporter(directory, quiet=quiet, say=picture.line) as tell,
    ):
        loop = Loop.of(recipe, policy, sampler, prompts, (rewards, log))
        loop.teach = teach
        recover.restore(loop, prompts, directory)
        try:
            rl.steps(loop, pool, writer, facts, tell)
        finally:
            loop.rollouts.close()
    return loop.at


def _facts(
    recipe: Recipe, model: Model, judged: Mapping[str, Tournament]
) -> dict[str, Any]:
    """What a run that goes on must have in common; any judge may read the rubric."""
    rules = {
        task: [dataclasses.asdict(held.rubric), dataclasses.asdict(held.options)]
        for task, held in judged.items()
    }
    told = recipe.to_dict() | ({"judged": rules} if rules else {})
    return {"recipe": told, "base": model.weight_version}


def prepared(model: Model, recipe: Recipe) -> Policy:
    """The optimizer and balance of a recipe over a model."""
    for module in model.modules():
        if isinstance(module, MLA):
            module.wide_output = True
    masters = Masters(
        model,
        betas=(recipe.beta1, recipe.beta2),
        weight_decay=recipe.weight_decay,
        optimizer=recipe.optimizer,
        adamw_rate=recipe.adamw_rate,
    )
    rule = "quantile" if recipe.move_biases else "none"
    return Policy(model, masters, Balance(model, rule), recipe.update)


def local(model: Model, recipe: Recipe, tokenizer: Tokenizer) -> EngineSampler:
    """An engine in this process; samples of a prompt share what they begin with."""
    cache = CacheOptions(hash_tokens=32, block_tokens=64, chunk_tokens=512)
    engine = Engine(
        model, EngineOptions(cache=cache, routes=recipe.replay), tokenizer=tokenizer
    )
    ends = (end_id(tokenizer),)
    return EngineSampler(engine, SamplerOptions(stop_ids=ends, seed=recipe.seed))


def _begun(
    directory: Path,
    facts: dict[str, Any],
    known: dict[str, Any],
    parts: tuple[Updated, Recipe, Tokenizer, bool],
    measured: bool,
) -> dict[str, Any]:
    """What is measured before the first update, once a run; then the first snapshot.

    `measured` says whether lengths are needed beside success.
    """
    if known:
        return {key: known[key] for key in ("before", "baselines")}
    sampler, recipe, tokenizer, quiet = parts
    lengths: dict[str, float] = {}
    with report.stage("success before", quiet=quiet):
        if measured:
            lengths = measure.baseline(sampler, recipe, tokenizer, BASELINE)
        before = _success(sampler, recipe, tokenizer)
    found = {"before": before, "baselines": lengths}
    snapshot.write(directory, {}, facts | found | rl.At().facts())
    return found


def _success(
    sampler: Updated, recipe: Recipe, tokenizer: Tokenizer
) -> dict[str, dict[str, Any]]:
    if not recipe.heldout:
        return {}
    found = measure.heldout(sampler, recipe, tokenizer, recipe.heldout)
    return {task: success.to_dict() for task, success in found.items()}


def open_folder(
    directory: Path, facts: dict[str, Any], *, resume: bool
) -> dict[str, Any]:
    """What is known of a run that goes on; nothing of one that begins."""
    if not resume:
        return pretrain.open_fresh(directory)
    known = snapshot.read(directory)[1]
    old, new = known.get("recipe") or {}, facts["recipe"]
    new = json.loads(json.dumps(new))
    wrong = [] if known.get("base") == facts["base"] else ["base"]
    asked = (key for key in {**new, **old} if key not in RESUMABLE)
    wrong += [key for key in asked if old.get(key) != new.get(key)]
    if wrong:
        raise CheckpointError(
            f"a resumed run must be the one that began in {directory}: other "
            f"{', '.join(wrong)}; give what it began with"
        )
    report.keep_until(directory / report.FILE_NAME, int(known["step"]))
    return known
