"""A round of drafting whose proposals are trees, verified in one pass over nodes."""

from collections.abc import Sequence as Many

import torch
from torch import Tensor

from k3.kernels import sample
from k3.model import DecodeState, Model
from k3.model.draft import features
from k3.model.tree import Forest
from k3.serve import accept
from k3.serve.block import Block, finish
from k3.serve.features import Layers

Path = list[int]
"""Nodes of a sequence's tree by number, 0 for its last token, i + 1 for proposal i."""


def decode(
    model: Model, state: DecodeState, blocks: list[Block], reads: Layers
) -> tuple[DecodeState, list[Block]]:
    """Verify what is proposed, go on by what stays, and leave the state behind it."""
    starts, taps = state.lens, dict[str, Tensor]()
    trees = [[-1, *(node + 1 for node in b.proposal.above)] for b in blocks]
    ids = [x for b in blocks for x in (b.sequence.running.last_id, *b.proposal.ids)]
    forest = Forest(model, state, trees)
    logits = forest.run(torch.tensor(ids), taps if reads else None)
    sizes = [len(tree) for tree in trees]
    each = [_allowed(b, x) for b, x in zip(blocks, logits.split(sizes), strict=True)]
    paths = _decide(blocks, each)
    if reads:
        seen = features(taps, reads)[:, 0].split(sizes)
        for block, start, path, read in zip(blocks, starts, paths, seen, strict=True):
            block.sequence.trace.see(start, read[path])
    return forest.take(paths), blocks


def _allowed(block: Block, logits: Tensor) -> Tensor:
    """Logits [n W] in which a constraint has ruled tokens out."""
    if all(mask is None for mask in block.masks):
        return logits
    logits = logits.clone()
    for place, mask in zip(logits, block.masks, strict=True):
        if mask is not None:
            place.masked_fill_(~mask.to(place.device), -torch.inf)
    return logits


def _decide(blocks: list[Block], each: list[Tensor]) -> list[Path]:
    """Let each sequence go on, and return the nodes that it went by.

    A row that failed goes as far as its last token, as any other.
    """
    paths, found = [], []
    for block, logits in zip(blocks, each, strict=True):
        path, last = _path(block, logits)
        ids = [block.proposal.ids[node] for node in path]
        found.append(ids if last is None else [*ids, last])
        block.accepted = len(path)
        paths.append([0, *(node + 1 for node in path)])
    behind = [x[path] for x, path in zip(each, paths, strict=True)]
    finish(blocks, found, behind)
    return [
        path[: max(block.emitted, 1)] for block, path in zip(blocks, paths, strict=True)
    ]


def _path(block: Block, logits: Tensor) -> tuple[Path, int | None]:
    """The proposals that stay, and the token that follows them, if one can."""
    usable: list[bool] = torch.isfinite(logits.amax(-1)).tolist()
    made, running = block.proposal, block.sequence.running
    if block.error is not None or not usable[0]:
        return [], None
    if running.sampling.temperature == 0:
        best: list[int] = logits.argmax(-1).tolist()
        return _greedy(made.ids, made.above, best, usable)
    good = [n for n, use in enumerate(usable) if use]
    laws = sample.distribution(logits[good], [running.sampling] * len(good))
    known = dict(zip(good, laws, strict=True))
    p = [known.get(n) for n in range(len(usable))]
    numbers = accept.uniforms(len(made.ids) + 1, running.generator)
    return accept.verify_tree(made.ids, made.above, p, made.probs, numbers)


def _greedy(
    ids: Many[int], above: Many[int], best: list[int], usable: list[bool]
) -> tuple[Path, int | None]:
    """Follow the most likely token as long as it was proposed."""
    path, at = Path(), -1
    for i, token in enumerate(ids):
        if above[i] == at and usable[at + 1] and token == best[at + 1]:
            path, at = [*path, i], i
    return path, best[at + 1] if usable[at + 1] else None
