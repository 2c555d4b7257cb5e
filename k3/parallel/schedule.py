"""The order in which each stage runs its micro-batches forward and backward."""

from dataclasses import dataclass
from typing import Literal

from k3.errors import ConfigError

KINDS = ("gpipe", "1f1b")
Kind = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class Action:
    """One pass of a micro-batch through a chunk of this rank, counted from 0."""

    kind: Kind
    chunk: int
    micro: int


def actions(
    kind: str, stages: int, micros: int, virtual: int = 1
) -> tuple[tuple[Action, ...], ...]:
    """Return what each rank does, in order.

    "gpipe" runs everything forward, then backward: it holds all micro-batches. "1f1b"
    starts backward passes as soon as there are any and holds at most as many
    micro-batches as there are stages ahead; with `virtual` chunks on a rank it is
    interleaved, which shortens the bubble by that factor and needs micro-batches in
    groups of the number of stages.
    """
    given = {"stages": stages, "micro-batches": micros, "chunks a rank": virtual}
    wrong = [
        f"{name} must be at least 1: got {value}"
        for name, value in given.items()
        if value < 1
    ]
    if kind not in KINDS:
        wrong.append(f"schedule must be one of {', '.join(KINDS)}: got {kind!r}")
    if not wrong and virtual > 1 and kind == "1f1b" and micros % stages:
        wrong.append(
            "interleaved stages need micro-batches in multiples of the stages: got "
            f"{micros} for {stages} stages of {virtual} chunks"
        )
    if wrong:
        raise ConfigError("; ".join(wrong))
    if kind == "gpipe":
        return (_gpipe(micros, virtual),) * stages
    return tuple(_1f1b(rank, stages, micros, virtual) for rank in range(stages))


def bubble(stages: int, micros: int, virtual: int = 1) -> float:
    """Idle time over busy time of both schedules: (P - 1) / (M V)."""
    return (stages - 1) / (micros * virtual)


def _gpipe(micros: int, virtual: int) -> tuple[Action, ...]:
    order = [(v, m) for v in range(virtual) for m in range(micros)]
    forward = [Action("forward", v, m) for v, m in order]
    back = [(v, m) for v in reversed(range(virtual)) for m in range(micros)]
    return (*forward, *(Action("backward", v, m) for v, m in back))


def _1f1b(rank: int, stages: int, micros: int, virtual: int) -> tuple[Action, ...]:
    total, group = micros * virtual, stages * virtual
    ahead = stages - 1 - rank
    if virtual > 1:
        ahead = 2 * ahead + (virtual - 1) * stages
    ahead = min(ahead, total)

    def pass_of(kind: Kind, k: int) -> Action:
        chunk = k % group // stages
        if kind == "backward":
            chunk = virtual - 1 - chunk
        # Without chunks groups are of no matter, and their number may be odd.
        micro = k if virtual == 1 else k // group * stages + k % stages
        return Action(kind, chunk, micro)

    done = [pass_of("forward", k) for k in range(ahead)]
    for k in range(total - ahead):
        done += [pass_of("forward", ahead + k), pass_of("backward", k)]
    done += [pass_of("backward", k) for k in range(total - ahead, total)]
    return tuple(done)
