"""The widget of MoonEP: a plan under which every rank computes the same number.

The planner is a loop of integer choices, so the page looks its plans up: a table of all
states of the two controls, made at build time by k3.spec.experts.
"""

from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import experts

PATTERNS = (
    "one hot expert",
    "two hot, one rank",
    "two hot, two ranks",
    "all of a rank",
)


def planned(pattern, hot):  # type: ignore[no-untyped-def]
    """MoonEP: 4 ranks, 8 experts, 64 slots; `hot` of them on the hot experts."""
    places = {
        "one hot expert": [0],
        "two hot, one rank": [0, 1],
        "two hot, two ranks": [0, 5],
        "all of a rank": [6, 7],
    }[pattern]
    cold = [e for e in range(8) if e not in places]
    load = [0] * 8
    for slots, group in ((hot, places), (64 - hot, cold)):
        for i in range(slots):
            load[group[i % len(group)]] += 1
    plan = experts.plan(load, 4)
    fetched = [experts.redundant(r, work, 8, 4) for r, work in enumerate(plan)]
    return {
        "load": load,
        "home": [load[2 * r] + load[2 * r + 1] for r in range(4)],
        "plan": [[work.get(e, 0) for e in range(8)] for work in plan],
        "computed": [sum(work.values()) for work in plan],
        "fetched": fetched,
        "bound": experts.bound(8, 4),
    }


PLANNER = Widget(
    name="moonep",
    title="Even work on four ranks",
    says="Each rank computes 16 slots, whatever the load, and fetches at most 2.",
    controls=(
        Control(
            name="pattern",
            value="one hot expert",
            label="which experts are hot",
            kind="choice",
            options=PATTERNS,
        ),
        Control(
            name="hot",
            value=40,
            label="slots on the hot experts",
            kind="size",
            low=0,
            high=64,
            step=4,
        ),
    ),
    graphs={},
    python=planned,
    table=True,
    extra={
        "rows": [f"rank {r}" for r in range(1, 5)],
        "columns": [f"expert {e}" for e in range(1, 9)],
    },
    names={
        "load": "slots of each expert",
        "home": "slots at home, by rank",
        "plan": "plan: rank by expert",
        "computed": "slots computed, by rank",
        "fetched": "experts fetched, by rank",
        "bound": "never more than",
    },
)

WIDGETS = (PLANNER,)
