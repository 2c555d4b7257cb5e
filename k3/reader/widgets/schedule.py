"""The widget of the layer schedule: which layers are MLA, and what each one mixes."""

from k3.config import schedule
from k3.graph import primitives as p
from k3.graph import schedule as graph
from k3.graph.compare import entry
from k3.graph.term import Block
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import attn_res


def schedule_graph() -> Block:
    """Every fourth layer and the last are MLA; depth sources before each layer."""
    block = p.real("block", "")
    mla = graph.mla(p.real("every", ""))
    layer = graph.layers()
    count = p.total(mla, 0)
    after = graph.sources(layer, block)
    outputs = {
        "mla": count,
        "kda": p.size("N") - count,
        "final_sources": entry(after, p.size("N") - 1),
        "is_mla": mla,
        "sources": graph.sources(layer - 1, block),
    }
    return Block("schedule", "§2.1: the schedule of N layers", outputs)


def layers(N, block):  # type: ignore[no-untyped-def]
    """§2.1: MLA layers, and the depth sources that the first sublayer of each mixes."""
    mla = schedule.mla_layers(N)
    return {
        "mla": len(mla),
        "kda": len(schedule.kda_layers(N)),
        "final_sources": attn_res.source_count(N, block),
        "is_mla": [int(layer in mla) for layer in range(1, N + 1)],
        "sources": [attn_res.source_count(layer, block) for layer in range(N)],
    }


SCHEDULE = Widget(
    name="layer-schedule",
    title="The 93 layers",
    says="Three KDA layers, then one MLA; the last layer is MLA too.",
    controls=(
        Control(name="N", value=93, label="layers", kind="size", low=1, high=128),
        Control(
            name="block",
            value=12,
            label="layers of a depth block",
            low=1,
            high=32,
            step=1,
        ),
    ),
    graphs={"": schedule_graph},
    python=layers,
    fixed={"every": 4},
    names={
        "mla": "MLA layers",
        "kda": "KDA layers",
        "final_sources": "depth sources at the end",
        "is_mla": "MLA, by layer",
        "sources": "depth sources, by layer",
    },
)

WIDGETS = (SCHEDULE,)
