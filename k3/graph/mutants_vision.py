"""Wrong variants of the vision steps; `mutants` judges them."""

from collections.abc import Callable

from k3.graph import primitives as p
from k3.graph import steps
from k3.graph.mutation import Changes, Find, operand, other, reverse
from k3.graph.term import Block, Term


def _rows_first(node: Term, find: Find) -> Term:
    across, down = node.args[0].args
    return p.reshape(p.stack(down, across, axis=3), *node.shape)


VISION: dict[str, Changes] = {
    "rows turn first": {"angles": _rows_first},
    "queries are not turned": {"q": other("q_raw")},
    "values mixed by raw scores": {"p": operand(0)},
    "missing scale of the scores": {
        "p": lambda node, find: p.softmax(node.args[0].args[0])
    },
}
MERGE: dict[str, Changes] = {
    "merged without the axis exchange": {
        "merged": lambda node, find: p.reshape(node.args[0].args[0], *node.shape)
    },
}
CLIP: dict[str, Changes] = {
    "cosines before sines": {"time": reverse},
    "no time": {"embedded": lambda node, find: node - node.args[1]},
}
EMBED: dict[str, Changes] = {
    "no position": {"embedded": operand(0)},
    "the position alone": {"embedded": operand(1)},
    "the position is subtracted": {
        "embedded": lambda node, find: node.args[0] - node.args[1]
    },
}


def _one_block() -> Block:
    return Block("vision_encoder", "", steps.vision_encoder(blocks=1))


ENCODER: dict[str, Changes | Callable[[], Block]] = {
    "no position": EMBED["no position"],
    "rows turn first": VISION["rows turn first"],
    "values mixed by raw scores": VISION["values mixed by raw scores"],
    "missing scale of the scores": VISION["missing scale of the scores"],
    "the residual is missing": {"block_out": operand(1)},
    "one block less": _one_block,
}
