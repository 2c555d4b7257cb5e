"""Widgets of KDA: one update of the memory, step by step, and the retention gate."""

from functools import partial
from typing import Any

import numpy as np

from k3.graph import kda as graph
from k3.graph import primitives as p
from k3.graph.inputs import RELEASED, Numbers
from k3.graph.term import Block, let
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import kda, norm

FLOORS = {"K3, floor -5": RELEASED, "Kimi-Linear, no floor": Numbers(floor=None)}


def update_graph() -> Block:
    """Eq. 1 for one head: the four steps of an update, and the read."""
    S, k, q = p.real("S", "K, V"), p.real("k", "K"), p.real("q", "K")
    v, alpha, beta = p.real("v", "V"), p.real("alpha", "K"), p.real("beta", "")
    unit = let("unit_key", p.l2_norm(k))
    heads = [p.reshape(x, 1, *x.shape) for x in (S, unit, v, alpha, beta)]
    after = graph.update(*heads)
    decayed, written = after.args
    recalled = next(a for a in _below(written) if a.label == "recalled")
    outputs = {"decayed": decayed, "recalled": recalled, "written": written}
    read = graph.read(after, p.reshape(q, 1, "K"))
    outputs |= {"S_next": after, "o": read}
    single = {name: p.pick(term, 0) for name, term in outputs.items()}
    return Block("kda_update_head", "Eq. 1: one head, step by step", single)


def _below(term: Any) -> list[Any]:
    return [term, *(found for arg in term.args for found in _below(arg))]


def one_update(S, k, v, alpha, beta, *, q):  # type: ignore[no-untyped-def]
    """Eq. 1: decay, recall, write, read."""
    S, k, v, alpha, q = map(np.array, (S, k, v, alpha, q))
    k = norm.l2_norm(k)
    decayed = alpha[:, None] * S
    after = kda.update(S, k, v, alpha, beta)
    return {
        "decayed": decayed,
        "recalled": k @ decayed,
        "written": after - decayed,
        "S_next": after,
        "o": kda.read(after, q),
    }


UPDATE = Widget(
    name="kda-update",
    title="One update of a 2 × 2 memory",
    says="Decay every row, recall what the key finds, write the difference, read.",
    controls=(
        Control(
            name="S",
            value=[[6.0, 0.0], [0.0, 1.0]],
            label="memory S",
            kind="array",
            low=-12,
            high=12,
            step=0.1,
            rows=("key 1", "key 2"),
            columns=("value 1", "value 2"),
        ),
        Control(
            name="k",
            value=[1.0, 0.0],
            label="key k, scaled to length 1",
            kind="array",
            low=-1,
            high=1,
            step=0.1,
        ),
        Control(
            name="v",
            value=[10.0, 2.0],
            label="value v",
            kind="array",
            low=-12,
            high=12,
            step=0.1,
        ),
        Control(
            name="alpha", value=[0.8, 0.5], label="retention α, by key", kind="array"
        ),
        Control(name="beta", value=0.5, label="write strength β"),
        Control(
            name="q",
            value=[1.0, 1.0],
            label="query q",
            kind="array",
            low=-1,
            high=1,
            step=0.1,
        ),
    ),
    graphs={"": update_graph},
    python=one_update,
    names={
        "decayed": "1. decay: Diag(α) S",
        "recalled": "2. recall: kᵀ of it",
        "written": "3. write: β k (v − recall)ᵀ",
        "S_next": "new memory S′",
        "o": "4. read: S′ᵀ q",
    },
)


def retention_graph(numbers: Numbers) -> Block:
    """Eq. 5 for one channel: log-retention, retention, and what n tokens leave."""
    z, A_log, tokens = p.real("z", ""), p.real("A_log", ""), p.real("tokens", "")
    one, head = p.reshape(z, 1, 1), p.reshape(A_log, 1)
    alpha = let("alpha", p.reshape(graph.retention(one, head, numbers)))
    g = let("g", p.log(alpha))
    left = p.exp(g * tokens)
    return Block("retention", "Eq. 5", {"g": g, "alpha": alpha, "left": left})


def retained(z, A_log, tokens, gate):  # type: ignore[no-untyped-def]
    """Eq. 5: g, alpha = e^g, and alpha^tokens."""
    floor = kda.FLOOR if gate.startswith("K3") else None
    alpha = kda.retention(z, A_log, floor)
    return {"g": kda.gate(z, A_log, floor), "alpha": alpha, "left": alpha**tokens}


RETENTION = Widget(
    name="retention",
    title="How much of a channel survives a token",
    says="The gate of K3 has a floor: no channel forgets faster than e⁻⁵ a token.",
    controls=(
        Control(
            name="z", value=0.0, label="gate input z", low=-8.0, high=8.0, step=0.05
        ),
        Control(
            name="A_log",
            value=0.0,
            label="rate A of the head, as log",
            low=-2.0,
            high=2.0,
            step=0.05,
        ),
        Control(
            name="tokens",
            value=16.0,
            label="tokens later",
            low=1.0,
            high=64.0,
            step=1.0,
        ),
        Control(
            name="gate",
            value="K3, floor -5",
            label="gate",
            kind="choice",
            options=tuple(FLOORS),
        ),
    ),
    graphs={n: partial(retention_graph, numbers) for n, numbers in FLOORS.items()},
    python=retained,
    variant="gate",
    names={"g": "log-retention g", "alpha": "retention α", "left": "left at the end"},
)

WIDGETS = (UPDATE, RETENTION)
