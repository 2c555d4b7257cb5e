"""Runs of reinforcement learning as data: three domains by three efforts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from k3.config import runs, settings
from k3.config.runs import DOMAINS, EFFORTS
from k3.errors import RequestError
from k3.post.policy import UpdateOptions
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
        settings.check(self, _RULES)
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
        return settings.values(self) | {"tasks": list(self.tasks)}

    def set(self, given: Mapping[str, Any]) -> "Recipe":
        """Replace values by name, as text or as numbers; an unknown name is refused."""
        return settings.changed(self, given, SETTINGS, {"tasks": _names})


def named(name: str) -> Recipe:
    """The recipe DOMAIN-EFFORT. Raises: RequestError."""
    if name not in RECIPES:
        raise RequestError(
            f"a recipe is one of {', '.join(RECIPES)}: got {name!r}; choose one"
        )
    return RECIPES[name]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


SETTINGS = settings.names(Recipe, but=("name", "domain", "effort"))

RESUMABLE = (
    *("iterations", "workers", "checkpoint_minutes", "keep"),
    *("heldout", "measure_every"),
)
"""What may differ when a run is resumed."""

_RULES = [
    ("domain", f"one of {', '.join(DOMAINS)}", DOMAINS.__contains__),
    ("effort", f"one of {', '.join(EFFORTS)}", EFFORTS.__contains__),
    ("tasks", "at least one name", lambda value: bool(value) and all(value)),
    ("seed", "from 0 to 2**31 - 1", lambda value: 0 <= value < 2**31),
    ("iterations", *settings.POSITIVE),
    ("learning_rate", *settings.ABOVE_ZERO),
    ("last_rate", *settings.FRACTION),
    ("optimizer", "muon or adamw", ("muon", "adamw").__contains__),
    ("adamw_rate", *settings.NOT_NEGATIVE),
    ("weight_decay", *settings.NOT_NEGATIVE),
    ("beta1", *settings.BELOW_ONE),
    ("beta2", *settings.BELOW_ONE),
    ("budget_start", *settings.NOT_NEGATIVE),
    ("budget_end", *settings.NOT_NEGATIVE),
    ("budget_steps", *settings.POSITIVE),
    ("budget_most", *settings.POSITIVE),
    ("heldout", *settings.COUNT),
    ("measure_every", *settings.COUNT),
    ("workers", *settings.POSITIVE),
    ("checkpoint_minutes", *settings.NOT_NEGATIVE),
    ("keep", *settings.POSITIVE),
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
    name: Recipe(
        name=name,
        domain=domain,
        effort=effort,
        tasks=TASKS[domain],
        budget_start=BUDGETS[effort][0],
        budget_end=BUDGETS[effort][1],
    )
    for name, (domain, effort) in runs.REINFORCED.items()
}
