"""The widget of MoonViT: how many rows each stage holds, read from the typed graph."""

from functools import partial

import numpy as np

from k3.config.published import published
from k3.graph import primitives as p
from k3.graph import steps, vision
from k3.graph.dims import Dim, times
from k3.graph.term import Block, Term
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import vision as tower

_WIDTH = published()["vision_config"]["vt_hidden_size"]


def stages_graph(frames: Dim) -> Block:
    """The sizes that the shapes of the tower's typed graph have."""
    joint = _tower(frames, "joint")
    divided = _tower(frames, "divided")
    outputs = {
        "patches": _rows(joint, "embedded"),
        "scores": _scores(joint),
        "divided_scores": _scores(divided),
        "merged": _rows(joint, "merged"),
        "width": p.size(_find(joint, "merged")[0].shape[1]),
    }
    return Block("vision_stages", "MoonViT-V2: sizes of its stages", outputs)


def _tower(frames: Dim, attention: vision.Attention) -> Block:
    return Block("tower", "", steps.vision_encoder(frames, 1, attention))


def _find(block: Block, label: str) -> list[Term]:
    return [node for node in block.nodes if node.label == label]


def _rows(block: Block, label: str) -> Term:
    return p.size(_find(block, label)[0].shape[0])


def _scores(block: Block) -> Term:
    """Scores of one head in one block, over all passes of its attention."""
    shapes = [node.shape for node in _find(block, "p")]
    counts = [p.size(times(shape[0], *shape[2:])) for shape in shapes]
    return sum(counts[1:], counts[0])


def stages(medium, t, h2, w2):  # type: ignore[no-untyped-def]
    """MoonViT-V2: patches, attention scores of one head, and rows for the text."""
    frames, kernel = (t + 2 if medium == "video" else 1), (2, 2)
    h, w = h2 * kernel[0], w2 * kernel[1]
    x = np.zeros((frames * h * w, published()["vision_config"]["vt_hidden_size"]))
    merged = tower.merge(x, (frames, h, w), kernel)
    passes = [frames * (h * w) ** 2, h * w * frames**2]
    return {
        "patches": len(x),
        "scores": len(x) ** 2,
        "divided_scores": sum(passes),
        "merged": len(merged),
        "width": merged.shape[1],
    }


STAGES = Widget(
    name="moonvit",
    title="From patches to rows of text",
    says="Four patches become one row; all frames of a clip share the rows of one.",
    controls=(
        Control(
            name="medium",
            value="image",
            label="medium",
            kind="choice",
            options=("image", "video"),
        ),
        Control(
            name="t", value=2, label="frames after the first two", kind="size", high=6
        ),
        Control(name="h2", value=8, label="rows", kind="size", low=1, high=16),
        Control(name="w2", value=8, label="columns", kind="size", low=1, high=16),
    ),
    graphs={
        "image": partial(stages_graph, 1),
        "video": partial(stages_graph, vision.CLIP),
    },
    python=stages,
    variant="medium",
    sizes={"a": 2, "b": 2, "e": _WIDTH // 2},
    names={
        "patches": "patches",
        "scores": "attention scores a head, all patches",
        "divided_scores": "the same by frame, then by place",
        "merged": "rows for the text",
        "width": "width of a row before the projector",
    },
)

WIDGETS = (STAGES,)
