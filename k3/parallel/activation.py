"""What a forward pass leaves for the backward pass, tensor by tensor: four policies.

keep        as it is
recompute   run its unit (a mixer or feed-forward) again; only the unit's input stays
eight       8 bits a number, rounded (k3.parallel.eight states the error)
offload     in host memory, fetched when the backward pass comes to it

`k3.parallel.saved` watches a pass and carries a plan out; `plan` chooses policies for
a budget of bytes. A tensor is known by its unit and its number there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from k3.errors import RequestError

POLICIES = ("keep", "recompute", "eight", "offload")

LEAST_BYTES = 4096
"""Rounding less than this saves nothing."""

Place = tuple[str, int]
"""A unit, and which of its saved tensors."""


@dataclass(frozen=True, slots=True)
class Saved:
    """One piece of memory that a pass leaves, and where it is saved from."""

    places: tuple[Place, ...]
    nbytes: int
    floats: bool
    views_bytes: int = 0
    """Bytes of the views of it that would be rounded or sent one by one."""

    @property
    def unit(self) -> str:
        """The unit that saved it first."""
        return self.places[0][0]

    @property
    def units(self) -> set[str]:
        """All that save it."""
        return {unit for unit, _ in self.places}


@dataclass(frozen=True, slots=True)
class Unit:
    """What running a unit again costs, and the bytes of its input that this needs."""

    seconds: float
    input_bytes: int


@dataclass(frozen=True, slots=True)
class Survey:
    """All that one pass leaves, parameters not counted."""

    saved: tuple[Saved, ...]
    units: dict[str, Unit]

    @property
    def nbytes(self) -> int:
        """Bytes where everything is kept."""
        return sum(s.nbytes for s in self.saved)


@dataclass(frozen=True, slots=True)
class Plan:
    """A policy for every place, and the bytes that are left on the device."""

    policies: Mapping[Place, str] = field(default_factory=dict)
    recomputed: frozenset[str] = frozenset()
    nbytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """Bytes a second: rounding to 8 bits and back, and to the host and back."""

    eight: float = 5e8
    offload: float = 1e9


def plan(
    seen: Survey,
    budget_bytes: int,
    allowed: tuple[str, ...] = POLICIES,
    rates: Rates | None = None,
) -> Plan:
    """Choose what is cheapest in seconds a byte freed, until the budget is met.

    Raises: RequestError for a policy that is none, and for a budget that the allowed
    policies cannot meet.
    """
    wrong = set(allowed) - set(POLICIES)
    if wrong:
        raise RequestError(
            f"policies are {', '.join(POLICIES)}: got {', '.join(sorted(wrong))}"
        )
    policies: dict[Place, str] = {}
    recomputed: set[str] = set()
    held = seen.nbytes
    for _, freed, unit, saved, policy in sorted(
        _options(seen, allowed, rates or Rates()), key=lambda o: o[:2]
    ):
        if held <= budget_bytes:
            break
        taken = [s for s in saved if not s.units <= recomputed]
        if policy == "recompute":
            # What was made smaller before comes back to nothing with its unit.
            before = sum(_left(s, policies) for s in saved)
            held += seen.units[unit].input_bytes - before
            recomputed.add(unit)
        elif taken and not any(p in policies for p in taken[0].places):
            policies |= dict.fromkeys(taken[0].places, policy)
            held -= freed
    if held > budget_bytes:
        raise RequestError(
            f"activations must fit the budget: {seen.nbytes} bytes come down to {held} "
            f"of {budget_bytes} under {', '.join(allowed)}; raise it, allow more or "
            "pass fewer tokens"
        )
    return Plan(policies, frozenset(recomputed), held)


def _left(saved: Saved, policies: Mapping[Place, str]) -> int:
    policy = policies.get(saved.places[0], "keep")
    return saved.nbytes - _freed(saved, policy)


def _freed(saved: Saved, policy: str) -> int:
    if policy == "offload":
        return saved.nbytes
    # Of 2 or 4 bytes a number one and its share of a scale stay: at most 9 of 16.
    if policy == "eight" and saved.floats and saved.nbytes >= LEAST_BYTES:
        return saved.nbytes - max(saved.views_bytes, saved.nbytes) * 9 // 16
    return 0


Option = tuple[float, int, str, list[Saved], str]


def _options(seen: Survey, allowed: tuple[str, ...], rates: Rates) -> Iterator[Option]:
    """(seconds a byte, bytes freed, unit, what, policy) of everything that may be."""
    if "recompute" in allowed:
        for name, unit in seen.units.items():
            mine = [s for s in seen.saved if s.units == {name}]
            freed = sum(s.nbytes for s in mine) - unit.input_bytes
            if freed > 0:
                yield unit.seconds / freed, freed, name, mine, "recompute"
    for policy, rate in (("eight", rates.eight), ("offload", rates.offload)):
        if policy not in allowed:
            continue
        for s in seen.saved:
            freed = _freed(s, policy)
            if freed > 0:
                yield s.nbytes / rate / freed, freed, s.unit, [s], policy
