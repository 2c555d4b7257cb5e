"""The widget of the prefix cache: where a request may resume, on one page."""

from k3.graph import cache as graph
from k3.graph import primitives as p
from k3.graph.compare import at_least, entry
from k3.graph.term import Block, spread
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import cache

PAGE = 6144
BLOCKS = PAGE // cache.HASH_TOKENS


def lookup_graph() -> Block:
    """§5.4.1: whole blocks of matched rows, then the last checkpoint among them."""
    matched, block, kept = (
        p.real("matched", ""),
        p.real("block", ""),
        p.real("kept", "N"),
    )
    at = graph.restored(matched, block, kept)
    ends = (p.positions("N") + 1) * spread(block, kept.shape)
    reached = p.total(at_least(spread(matched, kept.shape), ends), 0) * block
    last = entry(ends, p.size("N") - 1)
    outputs = {"rows": reached, "restored": at, "recomputed": last - at}
    return Block("prefix_lookup", "§5.4.1: where a prefix may resume", outputs)


def looked_up(matched, kept):  # type: ignore[no-untyped-def]
    """§5.4.1: a request of one page, its rows held up to `matched` tokens."""
    request, block = tuple(range(6144)), cache.HASH_TOKENS
    ends = range(block, len(request) + 1, block)
    rows = frozenset(request[:end] for end in ends if end <= matched)
    marks = zip(ends, kept, strict=True)
    points = frozenset(request[:end] for end, held in marks if held)
    registry = cache.Registry(rows, (points,))
    at = cache.lookup(registry, request, len(request))
    reached = cache.matched(registry, request, len(request))
    return {"rows": reached, "restored": at, "recomputed": len(request) - at}


PREFIX = Widget(
    name="prefix-cache",
    title="Where a request resumes",
    says="A page holds 12 blocks of 512; a hit needs rows and a checkpoint.",
    controls=(
        Control(
            name="matched",
            value=2800,
            label="tokens that match the cached ones",
            low=0,
            high=PAGE,
            step=1,
        ),
        Control(
            name="kept",
            value=[1] * BLOCKS,
            label="checkpoint at the end of block",
            kind="flags",
            high=1,
            step=1,
            columns=tuple(str(cache.HASH_TOKENS * (b + 1)) for b in range(BLOCKS)),
        ),
    ),
    graphs={"": lookup_graph},
    python=looked_up,
    fixed={"block": cache.HASH_TOKENS},
    names={
        "rows": "tokens whose rows are held, in blocks",
        "restored": "resumes at token",
        "recomputed": "tokens of the page to compute",
    },
)

WIDGETS = (PREFIX,)
