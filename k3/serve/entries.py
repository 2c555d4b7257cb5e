"""What the prefix cache keeps by key, what a request has hit, and what is written.

Positions are counted in hash blocks; a key names the end of one and all before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(eq=False, slots=True)
class Block:
    """MLA rows of one physical block of one prefix, one page for every MLA layer."""

    start: int
    pages: tuple[int, ...]
    ends: list[bytes] = field(default_factory=list)
    parent: "Block | None" = None
    children: int = 0
    pins: int = 0
    writing: bool = False
    gone: bool = False


@dataclass(eq=False, slots=True)
class Snapshot:
    """One KDA group's checkpoint at the end of a prefix. Read only."""

    key: bytes
    group: int
    pages: tuple[int, ...]
    turn: bool = False
    hits: int = 0
    pins: int = 0
    gone: bool = False


Entry: TypeAlias = Block | Snapshot


@dataclass(eq=False, slots=True)
class Hit:
    """What a request may resume from, pinned until `release`."""

    reached: int
    blocks: list[Block]
    snapshots: list[Snapshot]


@dataclass(eq=False, slots=True)
class Part:
    """The ends first + 1, ... of a write that go into one block."""

    block: Block
    first: int
    keys: Sequence[bytes]
    new: bool


@dataclass(eq=False, slots=True)
class Write:
    """Pages given to a write, invisible until `commit`."""

    keys: Sequence[bytes]
    epoch: int
    turn: bool = False
    parts: list[Part] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    pinned: list[Entry] = field(default_factory=list)
    open: bool = True
