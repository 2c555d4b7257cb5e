"""What tokens cost: a table that the user supplies, with its date and its source.

    {"currency": "USD", "dated": "2026-11-30", "source": "…", "models":
      {"NAME": {"input": 1.0, "cached": 0.1, "output": 4.0}}}

Prices are for a million tokens. None ships with k3.
"""

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from k3.errors import RequestError
from k3.eval import metrics
from k3.eval.figures import Figure
from k3.eval.transcript import Record

MILLION = 1e6
KEYS = ("currency", "dated", "source", "models")
EACH = ("input", "cached", "output")


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """Of a million tokens that are read, read from a cache, and written."""

    input: float
    cached: float
    output: float

    def of(self, usage: Mapping[str, int]) -> float:
        """The cost of tokens; those from the cache are among those that were read."""
        fresh = usage["read"] - usage["cached"]
        return (
            fresh * self.input
            + usage["cached"] * self.cached
            + usage["written"] * self.output
        ) / MILLION


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """A price table as it was on a day."""

    currency: str
    dated: str
    source: str
    models: Mapping[str, Price]

    def named(self, model: str) -> Price:
        """The price of a model. Raises: RequestError."""
        if model not in self.models:
            raise RequestError(
                f"the price table has {', '.join(self.models)}: got {model!r}; add "
                "it, or name one with --priced-as"
            )
        return self.models[model]


def load(file: Path) -> Prices:
    """The table of a file. Raises: RequestError."""
    try:
        found: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RequestError(f"a price table is a JSON file: {file}: {error}") from error
    if not isinstance(found, dict) or set(found) != set(KEYS):
        raise _wrong(file, f"an object with {', '.join(KEYS)}")
    if not all(isinstance(found[key], str) and found[key] for key in KEYS[:3]):
        raise _wrong(file, "currency, dated and source in words")
    try:
        datetime.date.fromisoformat(found["dated"])
    except ValueError as error:
        raise _wrong(file, f"a date in `dated`, as 2026-11-30 ({error})") from error
    models = found.pop("models")
    if not isinstance(models, dict) or not models:
        raise _wrong(file, "a price for at least one model")
    prices = {name: _price(file, name, price) for name, price in models.items()}
    return Prices(**found, models=prices)


def cost(records: Sequence[Record], price: Price) -> Figure:
    """The mean cost of a task, all its samples together.

    Raises: RequestError for records without tokens.
    """
    costs: dict[int, float] = {}
    for record in records:
        if "usage" not in record:
            raise RequestError(
                "a cost needs the tokens of every answer: this transcript was written "
                "without them; run it again"
            )
        index = record["index"]
        costs[index] = costs.get(index, 0.0) + price.of(record["usage"])
    values = list(costs.values())
    low, high = metrics.bootstrap(values)
    mean = sum(values) / len(values)
    return Figure(name="cost", count=len(values), value=mean, low=low, high=high)


def _price(file: Path, name: str, found: Any) -> Price:
    if not isinstance(found, dict) or set(found) != set(EACH):
        raise _wrong(file, f"{', '.join(EACH)} for {name}")
    for key in EACH:
        value = found[key]
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if not real or not 0 <= value < math.inf:
            raise _wrong(file, f"{key} of {name} as a number of at least 0")
    return Price(**found)


def _wrong(file: Path, rule: str) -> RequestError:
    return RequestError(f"a price table must have {rule}: {file} has not; mend it")
