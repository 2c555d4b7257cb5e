"""MoonEP, Eq. 28: a plan under which every rank computes exactly S*K slots.

R ranks hold E/R home experts each, expert e at rank e // (E/R). load[e] counts the
slots (token, choice) of expert e over all ranks; their sum is R*S*K. All integers.
"""

from collections.abc import Sequence

Plan = list[dict[int, int]]


def home(expert: int, experts: int, ranks: int) -> int:
    """The rank whose memory holds an expert."""
    return expert // (experts // ranks)


def plan(load: Sequence[int], ranks: int) -> Plan:
    """MoonEP: slots of each expert that each rank computes, one dict a rank.

    Repeat: the rank with most home slots left fills the one with fewest up to the
    average, by its own largest experts first. Each rank is filled at most once, from
    one source, so it fetches at most E/R experts. R divides E and the sum of load.
    """
    experts, average = len(load), sum(load) // ranks
    assert experts % ranks == 0, (experts, ranks)
    assert average * ranks == sum(load), (load, ranks)
    out: Plan = [{} for _ in range(ranks)]
    for expert, slots in enumerate(load):
        out[home(expert, experts, ranks)][expert] = slots
    waiting = set(range(ranks))
    while len(waiting) > 1:
        source = max(sorted(waiting), key=lambda r: sum(out[r].values()))
        receiver = min(sorted(waiting), key=lambda r: sum(out[r].values()))
        waiting.remove(receiver)
        if source != receiver:
            _fill(out, source, receiver, average - sum(out[receiver].values()))
    return [{e: slots for e, slots in rank.items() if slots} for rank in out]


def _fill(out: Plan, source: int, receiver: int, need: int) -> None:
    """Move `need` slots from the source's experts to the receiver, largest first."""
    ranked = sorted(out[source], key=lambda e: (-out[source][e], e))
    for expert in ranked:
        moved = min(need, out[source][expert])
        if moved:
            out[source][expert] -= moved
            out[receiver][expert] = moved
            need -= moved


def redundant(rank: int, work: dict[int, int], experts: int, ranks: int) -> int:
    """Experts that a rank computes but does not hold: what it must fetch."""
    return sum(1 for e in work if home(e, experts, ranks) != rank)


def bound(experts: int, ranks: int) -> int:
    """Eq. 28: no rank needs more than E/R redundant experts."""
    return experts // ranks


def tight_bound(experts: int, ranks: int) -> int:
    """MoonEP: the least such bound over all loads, ceil(E (R-1) / R^2)."""
    return -(-experts * (ranks - 1) // ranks**2)
