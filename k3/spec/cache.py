"""Prefix lookup of the hybrid cache (§5.4.1): where a request may resume.

MLA pages are registered at the ends of hash blocks, KDA memories as checkpoints at some
of those ends. A chained hash of a prefix is written as the prefix itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

HASH_TOKENS = 512
Prefix = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Registry:
    """Prefixes with MLA rows in pages, and those with a checkpoint, by KDA group."""

    pages: frozenset[Prefix]
    checkpoints: tuple[frozenset[Prefix], ...]


def boundaries(tokens: int, block: int = HASH_TOKENS) -> list[int]:
    """Ends of complete blocks in a request, longest first, 0 the last."""
    return list(range(tokens - tokens % block, -1, -block))


def restorable(
    registry: Registry, request: Sequence[int], at: int, block: int = HASH_TOKENS
) -> bool:
    """Whether every group can be restored at token `at`, a multiple of the hash block.

    Every hash block up to it has its rows, and every KDA group a checkpoint there.
    Position 0 is always restorable.
    """
    ends = range(block, at + 1, block)
    rows = all(tuple(request[:end]) in registry.pages for end in ends)
    prefix = tuple(request[:at])
    return at == 0 or (rows and all(prefix in group for group in registry.checkpoints))


def longest(
    registry: Registry, request: Sequence[int], block: int = HASH_TOKENS
) -> int:
    """§5.4.1: the longest restorable boundary, the definition of a hit."""
    ends = boundaries(len(request), block)
    return next(at for at in ends if restorable(registry, request, at, block))


def matched(
    registry: Registry, request: Sequence[int], physical: int, block: int = HASH_TOKENS
) -> int:
    """§5.4.1: tokens whose MLA rows are held: whole physical blocks, then hash blocks.

    Whole blocks are looked up at their ends alone, then the hash ends inside the first
    missing one. physical is a multiple of the hash block.
    """
    reached = 0
    for size in (physical, block):
        while reached + size <= len(request):
            if tuple(request[: reached + size]) not in registry.pages:
                break
            reached += size
    return reached


def lookup(
    registry: Registry, request: Sequence[int], physical: int, block: int = HASH_TOKENS
) -> int:
    """§5.4.1: the boundary found by the two-stage search: `longest`, if pages of a
    prefix are never dropped before those of its extensions.

    2,800 matched tokens in a physical block of 6,144 give 2,560.
    """
    for at in boundaries(matched(registry, request, physical, block), block):
        prefix = tuple(request[:at])
        if at == 0 or all(prefix in group for group in registry.checkpoints):
            return at
    return 0
