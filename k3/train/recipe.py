"""A training run as one value: what is trained, on what, how long and how."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from k3.config import K3Config
from k3.errors import ConfigError, RequestError


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """Everything that a run needs; two equal recipes give the same weights.

    Learning rates rise over `warmup` of the steps, stay, and fall linearly to zero
    over the last `decay` of them. `workers` share a batch, each on one core.
    """

    name: str
    config: K3Config
    num_ranks: int
    corpus: str = "stdlib"
    seed: int = 0
    steps: int = 1000
    batch: int = 8
    tokens: int = 512
    learning_rate: float = 2e-3
    warmup: float = 0.02
    decay: float = 0.5
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.95
    clip: float = 1.0
    bias_rate: float = 1e-3
    workers: int = 2
    log_steps: int = 20
    checkpoint_minutes: float = 3.0
    window: int = 512

    def __post_init__(self) -> None:
        """Refuse a run that cannot start, naming every wrong value."""
        wrong = [
            f"{key} must be {rule}: got {getattr(self, key)}"
            for key, rule, holds in _RULES
            if not holds(getattr(self, key))
        ]
        if self.batch >= 1 and self.workers >= 1 and self.batch % self.workers:
            wrong.append(
                f"batch must be a multiple of workers: got {self.batch} for "
                f"{self.workers} workers"
            )
        rows = self.num_ranks + 256
        if self.config.text.vocab_size != rows:
            wrong.append(
                f"config.vocab_size must be num_ranks + 256 = {rows}: got "
                f"{self.config.text.vocab_size}"
            )
        if wrong:
            raise ConfigError("; ".join(wrong))

    def to_dict(self) -> dict[str, Any]:
        """Values that JSON can hold; the config as its config.json."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return values | {"config": self.config.to_dict()}

    def set(self, settings: Mapping[str, Any]) -> "Recipe":
        """Replace values by name, as text or as numbers; an unknown name is refused."""
        values: dict[str, Any] = {}
        for key, value in settings.items():
            if key not in SETTINGS:
                raise RequestError(
                    f"no setting {key!r} in recipe {self.name}: choose one of "
                    f"{', '.join(SETTINGS)}"
                )
            kind = type(getattr(self, key))
            try:
                values[key] = kind(str(value))
            except ValueError:
                raise RequestError(
                    f"setting {key} must be of type {kind.__name__}: got {value!r}"
                ) from None
        return dataclasses.replace(self, **values)


SETTINGS = tuple(
    f.name
    for f in dataclasses.fields(Recipe)
    if f.name not in ("name", "config", "corpus", "num_ranks")
)

_POSITIVE = ("at least 1", lambda value: value >= 1)
_FRACTION = ("from 0 to 1", lambda value: 0 <= value <= 1)
_ABOVE_ZERO = ("above 0 and finite", lambda value: 0 < value < math.inf)
_NOT_NEGATIVE = ("at least 0 and finite", lambda value: 0 <= value < math.inf)
_BELOW_ONE = ("from 0 to below 1", lambda value: 0 <= value < 1)
_RULES = [
    ("corpus", "stdlib", lambda value: value == "stdlib"),
    ("num_ranks", "at least 256", lambda value: value >= 256),
    ("seed", "from 0 to 2**63 - 1", lambda value: 0 <= value < 2**63),
    ("steps", *_POSITIVE),
    ("batch", *_POSITIVE),
    ("tokens", *_POSITIVE),
    ("learning_rate", *_ABOVE_ZERO),
    ("warmup", *_FRACTION),
    ("decay", *_FRACTION),
    ("weight_decay", *_NOT_NEGATIVE),
    ("beta1", *_BELOW_ONE),
    ("beta2", *_BELOW_ONE),
    ("clip", *_ABOVE_ZERO),
    ("bias_rate", *_NOT_NEGATIVE),
    ("workers", *_POSITIVE),
    ("log_steps", *_POSITIVE),
    ("checkpoint_minutes", *_ABOVE_ZERO),
    ("window", "at least 2", lambda value: value >= 2),
]
