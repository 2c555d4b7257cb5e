"""Where a run is, and all that a snapshot holds of it."""

import dataclasses
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from k3.train import snapshot
from k3.train.balance import Balance
from k3.train.masters import Masters
from k3.train.spikes import Recent

RANDOM = "random.torch"


@dataclass(slots=True)
class Progress:
    """Steps done, rows and tokens read, seconds spent, smoothed loss, skipped steps."""

    step: int = 0
    rows: int = 0
    tokens: int = 0
    seconds: float = 0.0
    smooth: float = 0.0
    skipped: int = 0
    skipped_in_a_row: int = 0
    domains: dict[str, list[float]] = field(default_factory=dict)
    """Sum of losses and number of targets of each domain since the last record."""
    recent: Recent = field(default_factory=Recent)
    torn: bool = False
    """Whether a step has moved some values and not yet all."""

    @staticmethod
    def of(facts: Mapping[str, Any]) -> "Progress":
        """The run that `facts` tell of. Raises: KeyError."""
        recent = Recent(facts["losses"], facts["norms"])
        return Progress(**{name: facts[name] for name in _KEPT}, recent=recent)


_KEPT = [
    f.name for f in dataclasses.fields(Progress) if f.name not in ("recent", "torn")
]


def tensors(masters: Masters, balance: Balance) -> dict[str, Tensor]:
    """Weights, moments, biases and the state of torch's random numbers, by name."""
    state = {RANDOM: torch.get_rng_state()}
    return masters.state() | balance.state() | state


def facts(at: Progress) -> dict[str, Any]:
    """The rest, as JSON holds it exactly: also Python's random numbers."""
    version, numbers, gauss = random.getstate()
    return {name: getattr(at, name) for name in _KEPT} | {
        "losses": list(at.recent.losses),
        "norms": list(at.recent.norms),
        "random": [version, list(numbers), gauss],
    }


def restore(masters: Masters, balance: Balance, directory: Path, seed: int) -> Progress:
    """Take back the newest whole snapshot; at step 0 random numbers begin by `seed`.

    Raises: CheckpointError where it is of another model.
    """
    held, known = snapshot.read(directory)
    try:
        at = Progress.of(known)
        if not at.step:
            torch.manual_seed(seed)
            random.seed(seed)
        else:
            masters.restore(held)
            balance.restore(held)
            torch.set_rng_state(held[RANDOM])
            version, numbers, gauss = known["random"]
            random.setstate((version, tuple(numbers), gauss))
    except (KeyError, RuntimeError, TypeError, ValueError) as fault:
        path = snapshot.path_of(directory, int(known.get("step") or 0))
        raise snapshot.damaged(path, repr(fault)) from fault
    return at
