"""A pipeline schedule on paper: who does what when, what idles, what is held and sent.

Times are in any unit. The lists of k3.parallel.schedule are simulated as they run:
each rank does its own in order and waits for what it needs. Vision work of a
micro-batch may be cut into shards of patches and put where ranks idle.
"""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from k3.errors import ConfigError
from k3.parallel.schedule import Action

Span = tuple[float, float]
PLACES = ("first", "bubbles")


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """What one micro-batch costs in one chunk of layers, and between chunks.

    `kept` is what lies in memory from a forward pass to its backward pass, `sent`
    what crosses to the next chunk. A backward pass fills one of `buffers` gradient
    buffers, which is free again `reduce` later (ZeRO-2); ranks reduce one at a time.
    `vision` is (forward, backward) of a micro-batch's pictures, of which the first
    chunk needs the result; it may be shared by `shards` ranks.
    """

    forward: float = 1.0
    backward: float = 2.0
    message: float = 0.0
    kept: float = 1.0
    sent: float = 1.0
    reduce: float = 0.0
    buffers: int = 2
    vision: Span = (0.0, 0.0)
    shards: int = 1
    place: str = "first"

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        times = (self.forward, self.backward, self.message, self.reduce, *self.vision)
        if min(times) < 0 or self.buffers < 1 or self.shards < 1:
            raise ConfigError(
                "costs must not be negative, buffers and shards at least 1: got "
                f"{times}, {self.buffers} and {self.shards}"
            )
        if self.place not in PLACES:
            raise ConfigError(
                f"place must be one of {', '.join(PLACES)}: got {self.place!r}"
            )


@dataclass(frozen=True, slots=True)
class Pass:
    """One piece of work of a rank; `chunk` counts over all ranks, -1 is vision."""

    rank: int
    kind: str
    chunk: int
    micro: int
    start: float
    stop: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happens, in the order of its beginning, and what it comes to.

    `span` ends with the last reduction. Of every rank: busy time, the most held
    between passes, what it sends.
    """

    passes: tuple[Pass, ...]
    span: float
    busy: tuple[float, ...]
    peak: tuple[float, ...]
    sent: tuple[float, ...]

    @property
    def bubble(self) -> float:
        """The share of all ranks' time in which they do nothing."""
        whole = self.span * len(self.busy)
        return 1 - sum(self.busy) / whole if whole else 0.0


def simulate(order: Sequence[Sequence[Action]], costs: Costs) -> Timeline:
    """Run schedule.actions by these costs.

    Raises: ConfigError where ranks wait for each other for ever.
    """
    run = _Run(order, costs)
    if costs.place == "bubbles" and any(costs.vision):
        run = _with_vision(order, costs)
    else:
        run.go()
    return run.timeline()


@dataclass(slots=True)
class _Run:
    """One simulation. `reserved` are times of a rank that are taken by vision."""

    order: Sequence[Sequence[Action]]
    costs: Costs
    released: dict[int, float] = field(default_factory=dict)
    reserved: dict[int, list[Pass]] = field(default_factory=dict)
    passes: list[Pass] = field(default_factory=list)
    done: dict[tuple[str, int, int], float] = field(default_factory=dict)
    reductions: dict[int, list[float]] = field(default_factory=dict)

    @property
    def ranks(self) -> int:
        return len(self.order)

    @property
    def chunks(self) -> int:
        return self.ranks * (
            1 + max((a.chunk for o in self.order for a in o), default=0)
        )

    def go(self) -> None:
        """Do every action once what it needs is there."""
        next_, free = [0] * self.ranks, [0.0] * self.ranks
        moved = True
        while moved:
            moved = False
            for rank, actions in enumerate(self.order):
                while next_[rank] < len(actions):
                    action = actions[next_[rank]]
                    ready = self._ready(rank, action)
                    if ready is None:
                        break
                    free[rank] = self._do(rank, action, max(ready, free[rank]))
                    next_[rank] += 1
                    moved = True
        stuck = [r for r, n in enumerate(next_) if n < len(self.order[r])]
        if stuck:
            raise ConfigError(
                f"a schedule must let every pass come: got ranks {stuck} that wait for "
                "each other; take one of schedule.actions"
            )

    def _ready(self, rank: int, action: Action) -> float | None:
        """When what an action needs has arrived; None where that is not known yet."""
        number, m = action.chunk * self.ranks + rank, action.micro
        forward = action.kind == "forward"
        if forward and not number:
            return self.released.get(m, 0.0)
        if forward or number < self.chunks - 1:
            near = number - 1 if forward else number + 1
            told = self.done.get((action.kind, near, m))
            return None if told is None else told + self._message
        return self.done.get(("forward", number, m))

    @property
    def _message(self) -> float:
        return self.costs.message if self.ranks > 1 else 0.0

    def _do(self, rank: int, action: Action, start: float) -> float:
        number = action.chunk * self.ranks + rank
        forward = action.kind == "forward"
        takes = self.costs.forward if forward else self.costs.backward
        if number == 0 and self.costs.place == "first":
            takes += self.costs.vision[0 if forward else 1]
        ends = self.reductions.setdefault(rank, [])
        if not forward and len(ends) >= self.costs.buffers:
            start = max(start, ends[-self.costs.buffers])
        start = self._around(rank, start, takes)
        stop = start + takes
        self.passes.append(Pass(rank, action.kind, number, action.micro, start, stop))
        self.done[action.kind, number, action.micro] = stop
        if not forward:
            ends.append(max(stop, ends[-1] if ends else 0.0) + self.costs.reduce)
        return stop

    def _around(self, rank: int, start: float, takes: float) -> float:
        """The first time from `start` on at which nothing else is in the way."""
        for taken in self.reserved.get(rank, ()):
            if taken.start < start + takes and taken.stop > start:
                start = taken.stop
        return start

    def reserve(self, taken: Pass) -> None:
        insort(self.reserved.setdefault(taken.rank, []), taken, key=lambda p: p.start)

    def timeline(self) -> Timeline:
        """Add up what was done."""
        vision = [p for taken in self.reserved.values() for p in taken]
        passes = sorted([*self.passes, *vision], key=lambda p: (p.start, p.rank))
        last = [ends[-1] for ends in self.reductions.values() if ends]
        span = max([p.stop for p in passes] + last, default=0.0)
        each = [[p for p in passes if p.rank == r] for r in range(self.ranks)]
        return Timeline(
            passes=tuple(passes),
            span=span,
            busy=tuple(sum(p.stop - p.start for p in own) for own in each),
            peak=tuple(self._peak(own) for own in each),
            sent=tuple(self._sent(own) for own in each),
        )

    def _peak(self, own: Sequence[Pass]) -> float:
        held = most = 0
        for p in own:
            held += p.kind == "forward" and p.chunk >= 0
            most = max(most, held)
            held -= p.kind == "backward" and p.chunk >= 0
        return most * self.costs.kept

    def _sent(self, own: Sequence[Pass]) -> float:
        edge = {"forward": self.chunks - 1, "backward": 0}
        crossing = sum(p.chunk >= 0 and p.chunk != edge[p.kind] for p in own)
        return crossing * self.costs.sent if self.ranks > 1 else 0.0


def _with_vision(order: Sequence[Sequence[Action]], costs: Costs) -> _Run:
    """Place the pictures of one micro-batch after the other where ranks idle.

    Forward: in gaps before its first pass if they suffice, else as early as earlier
    micro-batches let it, and its first pass waits. Backward: in the first gaps after
    its last pass.
    """
    micros = sorted({a.micro for actions in order for a in actions})
    kept: list[Pass] = []
    released: dict[int, float] = {}
    for m in micros:
        run = _again(order, costs, released, kept)
        first = min(p.start for p in run.passes if p.chunk == 0 and p.micro == m)
        placed = _shards(run, run.passes, m, 0, 0.0)
        if max(p.stop for p in placed) > first:
            earlier = [p for p in run.passes if p.micro < m]
            placed = _shards(run, earlier, m, 0, 0.0)
        kept += placed
        released[m] = max(p.stop for p in placed)
    for m in micros:
        run = _again(order, costs, released, kept)
        kept += _shards(run, run.passes, m, 1, run.done["backward", 0, m])
    return _again(order, costs, released, kept)


def _again(
    order: Sequence[Sequence[Action]],
    costs: Costs,
    released: dict[int, float],
    kept: list[Pass],
) -> _Run:
    run = _Run(order, costs, dict(released))
    for taken in kept:
        run.reserve(taken)
    run.go()
    return run


def _shards(
    run: _Run, passes: Sequence[Pass], micro: int, way: int, ready: float
) -> list[Pass]:
    """Put each shard of a micro-batch's pictures into the first gap of all ranks."""
    takes = run.costs.vision[way] / run.costs.shards
    taken = [*passes, *(p for own in run.reserved.values() for p in own)]
    out: list[Pass] = []
    for _ in range(run.costs.shards):
        starts = [(_gap([*taken, *out], r, ready, takes), r) for r in range(run.ranks)]
        start, rank = min(starts)
        kind = ("forward", "backward")[way]
        out.append(Pass(rank, kind, -1, micro, start, start + takes))
    return out


def _gap(passes: Sequence[Pass], rank: int, ready: float, takes: float) -> float:
    """The first time from `ready` on at which a rank has nothing to do for so long."""
    start = ready
    for p in sorted((p for p in passes if p.rank == rank), key=lambda p: p.start):
        if start + takes <= p.start:
            break
        start = max(start, p.stop)
    return start
