"""Runs of reinforcement learning as data: three domains by three efforts."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from k3.errors import RequestError
from k3.post.policy import UpdateOptions
from k3.train.distill import DOMAINS, EFFORTS
from k3.train.rl import Budget, PolicyOptions
from k3.train.rollout import RolloutOptions


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """All that a run needs besides the model it begins with.

    `tasks` are names of k3.envs.registry, played in turn. With `thinking` the effort
    opens a think channel. `shaped` rewards an attempt by how near it came, where the
    environment says so. An iteration ends when `share` of `prompts` x `samples` have
    finished. Learning rates go linearly to `last_rate` of `learning_rate`. A sample
    of more than `budget_start` (to `budget_end` over `budget_steps` iterations) times
    the tokens that the task took before the run, or more than `budget_most`, has a
    reward of -1; `budget_start` 0 is no budget. `replay` lets the trainer take the
    experts that the sampler took; `move_biases` goes on balancing experts. `anchor`
    weighs the divergence from the weights that the run began with.
    """

    name: str
    domain: str
    effort: str
    tasks: tuple[str, ...]
    thinking: bool = True
    shaped: bool = False
    seed: int = 0
    iterations: int = 60
    prompts: int = 16
    samples: int = 8
    share: float = 0.75
    max_tokens: int = 512
    learning_rate: float = 2e-3
    last_rate: float = 0.1
    optimizer: str = "muon"
    adamw_rate: float = 0.4
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.95
    clip: float = 1.0
    steps: int = 1
    pass_tokens: int = 2048
    most_weight: float = 2.0
    penalty: float = 0.05
    anchor: float = 0.0
    budget_start: float = 0.0
    budget_end: float = 0.0
    budget_steps: int = 20
    budget_most: int = 4096
    replay: bool = False
    move_biases: bool = False
    heldout: int = 200
    measure_every: int = 0
    workers: int = 2
    checkpoint_minutes: float = 1.0
    keep: int = 2

    def __post_init__(self) -> None:
        """Refuse a run that cannot start, naming what is wrong."""
        wrong = [
            f"{key} must be {rule}: got {getattr(self, key)}"
            for key, rule, holds in _RULES
            if not holds(getattr(self, key))
        ]
        if wrong:
            raise RequestError("; ".join(wrong))
        _ = self.rollouts, self.update

    @property
    def rollouts(self) -> RolloutOptions:
        """What is sampled at a time."""
        return RolloutOptions(
            prompts=self.prompts,
            samples=self.samples,
            share=self.share,
            max_tokens=self.max_tokens,
        )

    @property
    def update(self) -> UpdateOptions:
        """How samples become an update."""
        return UpdateOptions(
            policy=PolicyOptions(
                most_weight=self.most_weight, penalty=self.penalty, anchor=self.anchor
            ),
            tokens=self.pass_tokens,
            steps=self.steps,
            clip=self.clip,
            move_biases=self.move_biases,
            replay=self.replay,
        )

    @property
    def budget(self) -> Budget | None:
        """The budget of lengths, where there is one."""
        if not self.budget_start:
            return None
        return Budget(
            start=self.budget_start,
            end=self.budget_end,
            steps=self.budget_steps,
            most=self.budget_most,
        )

    @property
    def told(self) -> str | None:
        """The effort that the model is told."""
        return self.effort if self.thinking else None

    def rate(self, iteration: int) -> float:
        """The learning rate of a 0-based iteration."""
        done = iteration / max(1, self.iterations - 1)
        return self.learning_rate * (1 + (self.last_rate - 1) * min(1.0, done))

    def to_dict(self) -> dict[str, Any]:
        """Values as JSON gives them back."""
        return {
            f.name: list(self.tasks) if f.name == "tasks" else getattr(self, f.name)
            for f in dataclasses.fields(self)
        }

    def set(self, settings: Mapping[str, Any]) -> "Recipe":
        """Replace values by name, as text or as numbers; an unknown name is refused."""
        values = {key: _read(self, key, value) for key, value in settings.items()}
        return dataclasses.replace(self, **values)


def named(name: str) -> Recipe:
    """The recipe DOMAIN-EFFORT. Raises: RequestError."""
    if name not in RECIPES:
        raise RequestError(
            f"a recipe is one of {', '.join(RECIPES)}: got {name!r}; choose one"
        )
    return RECIPES[name]


def _read(recipe: Recipe, key: str, value: Any) -> Any:
    if key not in SETTINGS:
        raise RequestError(
            f"no setting {key!r} in recipe {recipe.name}: choose one of "
            f"{', '.join(SETTINGS)}"
        )
    if key == "tasks":
        return tuple(str(value).split(","))
    kind = type(getattr(recipe, key))
    text = str(value)
    if kind is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        if kind is not bool:
            return kind(text)
    except ValueError:
        pass
    raise RequestError(f"setting {key} must be of type {kind.__name__}: got {value!r}")


SETTINGS = tuple(
    f.name
    for f in dataclasses.fields(Recipe)
    if f.name not in ("name", "domain", "effort")
)

RESUMABLE = (
    *("iterations", "workers", "checkpoint_minutes", "keep"),
    *("heldout", "measure_every"),
)
"""What may differ when a run is resumed."""

_POSITIVE = ("at least 1", lambda value: value >= 1)
_ABOVE_ZERO = ("above 0 and finite", lambda value: 0 < value < math.inf)
_NOT_NEGATIVE = ("at least 0 and finite", lambda value: 0 <= value < math.inf)
_BELOW_ONE = ("from 0 to below 1", lambda value: 0 <= value < 1)
_RULES = [
    ("domain", f"one of {', '.join(DOMAINS)}", DOMAINS.__contains__),
    ("effort", f"one of {', '.join(EFFORTS)}", EFFORTS.__contains__),
    ("tasks", "at least one name", lambda value: bool(value) and all(value)),
    ("seed", "from 0 to 2**31 - 1", lambda value: 0 <= value < 2**31),
    ("iterations", *_POSITIVE),
    ("learning_rate", *_ABOVE_ZERO),
    ("last_rate", "from 0 to 1", lambda value: 0 <= value <= 1),
    ("optimizer", "muon or adamw", ("muon", "adamw").__contains__),
    ("adamw_rate", *_NOT_NEGATIVE),
    ("weight_decay", *_NOT_NEGATIVE),
    ("beta1", *_BELOW_ONE),
    ("beta2", *_BELOW_ONE),
    ("budget_start", *_NOT_NEGATIVE),
    ("budget_end", *_NOT_NEGATIVE),
    ("budget_steps", *_POSITIVE),
    ("budget_most", *_POSITIVE),
    ("heldout", "at least 0", lambda value: value >= 0),
    ("measure_every", "at least 0", lambda value: value >= 0),
    ("workers", *_POSITIVE),
    ("checkpoint_minutes", *_NOT_NEGATIVE),
    ("keep", *_POSITIVE),
]

TASKS = {
    "general": ("arithmetic", "table"),
    "agentic": ("calculator", "lookup"),
    "coding": ("code",),
}
"""What a domain is trained on."""

BUDGETS = {"low": (1.0, 0.5), "high": (1.5, 1.0), "max": (4.0, 4.0)}
"""First and last factor of the budget of an effort."""

RECIPES = {
    f"{domain}-{effort}": Recipe(
        name=f"{domain}-{effort}",
        domain=domain,
        effort=effort,
        tasks=TASKS[domain],
        budget_start=BUDGETS[effort][0],
        budget_end=BUDGETS[effort][1],
    )
    for domain in DOMAINS
    for effort in EFFORTS
}
