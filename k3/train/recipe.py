"""A training run as one value: what is trained, on what, how long and how."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from k3.config import K3Config, settings
from k3.errors import ConfigError, K3Error, RequestError
from k3.parallel import Mesh
from k3.train import schedule, stages
from k3.train.stages import Stage


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """Everything that a run needs; two equal recipes give the same weights.

    A step reads `batch` rows of `tokens` tokens, which `mixture` fills: names of
    k3.train.sources with their weights. `stages`, where there are any, say instead
    how many and how long. `micro_batch` rows make one pass; `workers` share the
    passes, each on one core. Learning rates follow `schedule` (k3.train.schedule);
    `decay` is the trapezoid's. A step is skipped whose loss or gradient norm is not
    finite or `spike` standard deviations above those of the last steps; `max_skipped`
    in a row end the run. `mtp_weight` belongs to the loss of the MTP layer. What
    enters the experts' products is plain or rounded to MXFP8 (`activations`); their
    weights are always trained in MXFP4. `keep` snapshots are kept. `qk_clip`,
    `adamw_rate` and `balance*` are those of k3.train.masters and k3.train.balance.
    """

    name: str
    config: K3Config
    num_ranks: int
    corpus: str = "stdlib"
    mixture: tuple[tuple[str, float], ...] = (("text", 1.0),)
    stages: tuple[Stage, ...] = ()
    seed: int = 0
    steps: int = 1000
    batch: int = 8
    tokens: int = 512
    micro_batch: int = 1
    mtp_weight: float = 0.3
    activations: str = "plain"
    optimizer: str = "muon"
    qk_clip: float = 100.0
    learning_rate: float = 2e-3
    adamw_rate: float = 1.0
    schedule: str = "cosine"
    warmup: float = 0.01
    decay: float = 0.5
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.95
    clip: float = 1.0
    spike: float = 6.0
    max_skipped: int = 5
    balance: str = "quantile"
    balance_bins: int = 1000
    balance_ema: float = 0.0
    bias_rate: float = 1e-3
    workers: int = 2
    parallel: str = ""
    log_steps: int = 20
    checkpoint_minutes: float = 3.0
    keep: int = 2
    window: int = 512

    def __post_init__(self) -> None:
        """Refuse a run that cannot start, naming every wrong value."""
        wrong = settings.wrong(self, _RULES)
        wrong += [found for found in [stages.check(self.stages)] if found]
        rows = self.num_ranks + 256
        if self.config.text.vocab_size != rows:
            wrong.append(
                f"config.vocab_size must be num_ranks + 256 = {rows}: got "
                f"{self.config.text.vocab_size}"
            )
        if wrong:
            raise ConfigError("; ".join(wrong))

    def stage(self, step: int) -> Stage:
        """How long and how many the rows of a 0-based step are."""
        if self.stages:
            return stages.at(self.stages, step, self.steps)
        return Stage(fraction=1.0, tokens=self.tokens, batch=self.batch)

    def to_dict(self) -> dict[str, Any]:
        """Values that JSON can hold; the config as its config.json."""
        return settings.values(self) | {
            "config": self.config.to_dict(),
            "mixture": dict(self.mixture),
            "stages": [str(stage) for stage in self.stages],
        }

    def set(self, given: Mapping[str, Any]) -> "Recipe":
        """Replace values by name, as text or as numbers; an unknown name is refused."""
        return settings.changed(self, given, SETTINGS, _READ)


def _shares(text: str) -> tuple[tuple[str, float], ...]:
    """A mixture from text: NAME:WEIGHT, several with commas between them."""
    found = []
    for part in text.split(","):
        name, colon, weight = part.partition(":")
        try:
            found.append((name.strip(), float(weight) if colon else 1.0))
        except ValueError:
            raise RequestError(
                f"a mixture is NAME:WEIGHT, as in text:0.7,digits:0.3: got {part!r}"
            ) from None
    return tuple(found)


def _is_mixture(shares: tuple[tuple[str, float], ...]) -> bool:
    names = [name for name, _ in shares]
    positive = all(0 < weight < math.inf for _, weight in shares)
    return bool(names) and len(set(names)) == len(names) and positive


def _is_mesh(text: str) -> bool:
    try:
        return bool(Mesh.of(text))
    except K3Error:
        return False


_READ = {"mixture": _shares, "stages": stages.parse}

SETTINGS = settings.names(Recipe, but=("name", "config", "corpus", "num_ranks"))

_RULES = [
    ("corpus", "stdlib", lambda value: value == "stdlib"),
    ("num_ranks", *settings.at_least(256)),
    ("mixture", "names, each once and with a weight above 0", _is_mixture),
    ("seed", "from 0 to 2**63 - 1", lambda value: 0 <= value < 2**63),
    ("steps", *settings.POSITIVE),
    ("batch", *settings.POSITIVE),
    ("tokens", *settings.at_least(2)),
    ("micro_batch", *settings.POSITIVE),
    ("mtp_weight", *settings.NOT_NEGATIVE),
    ("activations", "plain or mxfp8", ("plain", "mxfp8").__contains__),
    ("optimizer", "muon or adamw", ("muon", "adamw").__contains__),
    ("qk_clip", *settings.NOT_NEGATIVE),
    ("learning_rate", *settings.ABOVE_ZERO),
    ("adamw_rate", *settings.ABOVE_ZERO),
    ("schedule", f"one of {', '.join(schedule.NAMES)}", schedule.NAMES.__contains__),
    ("warmup", *settings.FRACTION),
    ("decay", *settings.FRACTION),
    ("weight_decay", *settings.NOT_NEGATIVE),
    ("beta1", *settings.BELOW_ONE),
    ("beta2", *settings.BELOW_ONE),
    ("clip", *settings.ABOVE_ZERO),
    ("spike", *settings.ABOVE_ZERO),
    ("max_skipped", *settings.POSITIVE),
    ("balance", "quantile, sign or none", ("quantile", "sign", "none").__contains__),
    ("balance_bins", *settings.COUNT),
    ("balance_ema", *settings.BELOW_ONE),
    ("bias_rate", *settings.NOT_NEGATIVE),
    ("workers", *settings.POSITIVE),
    ("parallel", "axes, such as data=2,pipeline=2", _is_mesh),
    ("log_steps", *settings.POSITIVE),
    ("checkpoint_minutes", *settings.ABOVE_ZERO),
    ("keep", *settings.POSITIVE),
    ("window", *settings.at_least(2)),
]
