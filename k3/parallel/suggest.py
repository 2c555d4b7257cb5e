"""A mesh for N devices of some memory: the one that fits and sends least."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from k3.config import K3Config
from k3.errors import ConfigError, RequestError
from k3.parallel.budget import Budget, Setup, budget
from k3.parallel.mesh import Mesh

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Choice:
    """A setup with its budget."""

    setup: Setup
    budget: Budget

    @property
    def cost(self) -> float:
        """Bytes sent a token of a rank, longer by the pipeline's bubble."""
        tokens = self.setup.micros * self.setup.local
        return sum(self.budget.sent.values()) / tokens * (1 + self.budget.bubble)


def suggest(
    config: K3Config, devices: int, memory_bytes: int, setup: Setup, fixed: set[str]
) -> Choice:
    """Return the cheapest choice that fits, leaving the axes in `fixed` as they are.

    Raises: RequestError with the smallest there is where none fits.
    """
    least: Choice | None = None
    best: Choice | None = None
    for mesh in meshes(config, devices, setup, fixed):
        tried = replace(setup, mesh=mesh)
        try:
            choice = Choice(tried, budget(config, tried))
        except ConfigError:
            continue
        if least is None or choice.budget.total_bytes < least.budget.total_bytes:
            least = choice
        fits = choice.budget.total_bytes <= memory_bytes
        if fits and (best is None or choice.cost < best.cost):
            best = choice
    if best is not None:
        return best
    if least is None:
        raise RequestError(
            f"no mesh of {devices} devices suits this config with "
            f"{', '.join(sorted(fixed)) or 'these settings'} as given: its axes must "
            "divide devices and experts; choose another number"
        )
    raise RequestError(
        f"training must fit {memory_bytes / GIB:.2f} GiB a device: {devices} devices "
        f"need at least {least.budget.total_bytes / GIB:.2f} GiB, with "
        f"{least.setup.mesh}; take more devices, fewer tokens, or another policy"
    )


def meshes(
    config: K3Config, devices: int, setup: Setup, fixed: set[str]
) -> Iterator[Mesh]:
    """Yield every way to lay devices out along the four axes."""
    text, given = config.text, setup.mesh
    parts = [n for n in range(1, devices + 1) if devices % n == 0]
    choices = {
        "pipeline": [n for n in parts if n * setup.virtual <= text.num_hidden_layers],
        "expert": [n for n in parts if text.num_experts % n == 0],
        "context": [n for n in parts if n <= setup.tokens],
    }
    choices |= {name: [getattr(given, name)] for name in choices if name in fixed}
    for pipeline, expert, context in product(*choices.values()):
        data, left = divmod(devices, pipeline * expert * context)
        if left or not data or ("data" in fixed and data != given.data):
            continue
        yield Mesh(data=data, pipeline=pipeline, expert=expert, context=context)
