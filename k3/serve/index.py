"""What the prefix cache holds, by key, without the bytes (§5.4.1).

Positions are counted in hash blocks; `keys[j - 1]` names a prefix of j of them. Three
rules keep it consistent: what a request hit is pinned in all groups before anything is
allocated; what is being written cannot be matched before its commit; a KDA checkpoint
is there in every group or in none.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import islice

from k3.serve.entries import Block, Entry, Hit, Part, Snapshot, Write
from k3.serve.pages import Pages


class PrefixIndex:
    """Blocks and checkpoints by key; lookup, schedule -> commit | abort, eviction."""

    def __init__(
        self,
        pages: Pages,
        *,
        block_ends: int,
        block_pages: int,
        group_pages: tuple[int, ...],
    ) -> None:
        self.pages, self.block_ends = pages, block_ends
        self.block_pages, self.group_pages = block_pages, group_pages
        self.ends: dict[bytes, list[Block]] = {}
        self.groups: tuple[dict[bytes, Snapshot], ...] = tuple({} for _ in group_pages)
        self.lru: OrderedDict[Entry, None] = OrderedDict()
        self.epoch = 0
        self.num_evicted = 0

    def matched(self, keys: Sequence[bytes]) -> int:
        """Ends whose rows are held: whole blocks, then those in the first missing."""
        reached = 0
        for size in (self.block_ends, 1):
            while reached + size <= len(keys):
                if keys[reached + size - 1] not in self.ends:
                    break
                reached += size
        return reached

    def find(self, keys: Sequence[bytes]) -> int:
        """The longest matched end at which every KDA group has a checkpoint."""
        ends = range(self.matched(keys), 0, -1)
        return next((at for at in ends if self._everywhere(keys[at - 1])), 0)

    def lookup(self, keys: Sequence[bytes]) -> Hit:
        """Find and pin: rows and checkpoints stay until the hit is released."""
        at = self.find(keys)
        snapshots = [group[keys[at - 1]] for group in self.groups] if at else []
        hit = Hit(at, self._holding(keys, at), snapshots)
        for snapshot in snapshots:
            snapshot.hits += 1
        self._pin([*hit.blocks, *hit.snapshots])
        self._touch([*reversed(hit.blocks), *hit.snapshots])
        return hit

    def hold(self, keys: Sequence[bytes]) -> int:
        """Treat the longest checkpoint of a prefix as a turn's end; return its end."""
        at = self.find(keys)
        held = self._siblings(keys[at - 1]) if at else []
        for snapshot in held:
            snapshot.turn = True
        self._touch([*reversed(self._holding(keys, at)), *held])
        return at

    def release(self, hit: Hit) -> None:
        """Give a hit up; its entries may be evicted again."""
        self._unpin([*hit.blocks, *hit.snapshots])
        hit.blocks, hit.snapshots = [], []

    def schedule(
        self, keys: Sequence[bytes], *, snapshot: bool = True, turn: bool = False
    ) -> Write | None:
        """Allocate what is missing of a prefix, or return None if nothing can go."""
        write = Write(tuple(keys), self.epoch, turn=turn)
        reached = self.matched(keys)
        held = self._holding(keys, reached)
        wanted = snapshot and len(keys) > 0
        there = wanted and self._everywhere(keys[-1])
        write.pinned = [*held, *(g[keys[-1]] for g in self.groups if there)]
        self._pin(write.pinned)
        write.parts = self._plan(write.keys, reached)
        sizes = [self.block_pages for part in write.parts if part.new]
        groups = self.group_pages if wanted and not there else ()
        pages = self._allocate(sum(sizes) + sum(groups))
        if pages is None:
            self.abort(write)
            return None
        supply = iter(pages)
        for part in write.parts:
            part.block.writing = True
            if part.new:
                part.block.pages = _take(supply, self.block_pages)
        write.snapshots = [
            Snapshot(keys[-1], group, _take(supply, size))
            for group, size in enumerate(groups)
        ]
        return write

    def commit(self, write: Write) -> bool:
        """Make a finished write visible; False if the cache was emptied meanwhile."""
        assert write.open, "a write is committed or aborted once"
        if write.epoch != self.epoch:
            self.abort(write)
            return False
        write.open = False
        for part in write.parts:
            self._publish(part, write.keys)
        self._publish_snapshots(write)
        self._unpin(write.pinned)
        self._touch(reversed(self._holding(write.keys, len(write.keys))))
        self._touch(self._siblings(write.keys[-1]) if write.keys else ())
        return True

    def abort(self, write: Write) -> None:
        """Give a write's pages back; nothing of it was ever visible."""
        assert write.open, "a write is committed or aborted once"
        write.open = False
        for part in write.parts:
            part.block.writing = False
            if part.new:
                self.pages.release(part.block.pages)
        for snapshot in write.snapshots:
            self.pages.release(snapshot.pages)
        self._unpin(write.pinned)

    def evict(self) -> bool:
        """Drop the entry used longest ago that nobody needs; False if there is none."""
        for entry in self.lru:
            if self._evictable(entry):
                self._drop(entry)
                self.num_evicted += 1
                return True
        return False

    def clear(self) -> None:
        """Forget everything; what is pinned is freed when its holder lets go."""
        self.epoch += 1
        for entry in list(self.lru):
            self._unlink(entry)
        self.ends.clear()
        for group in self.groups:
            group.clear()

    def _everywhere(self, key: bytes) -> bool:
        return all(key in group for group in self.groups)

    def _holding(self, keys: Sequence[bytes], at: int) -> list[Block]:
        """The blocks with the rows of the first `at` ends, in order."""
        stops = range(self.block_ends, at + self.block_ends, self.block_ends)
        return [self.ends[keys[min(stop, at) - 1]][0] for stop in stops]

    def _plan(self, keys: Sequence[bytes], at: int) -> list[Part]:
        """Rows go behind the last end of a block, if it is free, or into new blocks."""
        parts = []
        while at < len(keys):
            start = at - at % self.block_ends
            stop = min(start + self.block_ends, len(keys))
            open_ = self.ends.get(keys[at - 1], []) if at > start else []
            fit = [b for b in open_ if b.ends[-1] == keys[at - 1] and not b.writing]
            if fit:
                parts.append(Part(fit[0], at, keys[at:stop], new=False))
            else:
                block = Block(start, ())
                parts.append(Part(block, start, keys[start:stop], new=True))
            at = stop
        return parts

    def _publish(self, part: Part, keys: Sequence[bytes]) -> None:
        block = part.block
        block.writing = False
        if part.keys[-1] in self.ends:
            # Someone else has committed the same rows first.
            if part.new:
                self.pages.release(block.pages)
            return
        if part.new and block.start:
            block.parent = self.ends[keys[block.start - 1]][0]
            block.parent.children += 1
        block.ends.extend(part.keys)
        for key in part.keys:
            self.ends.setdefault(key, []).append(block)
        self.lru[block] = None

    def _publish_snapshots(self, write: Write) -> None:
        if not write.keys:
            return
        if write.snapshots and self._everywhere(write.keys[-1]):
            for snapshot in write.snapshots:
                self.pages.release(snapshot.pages)
            write.snapshots = []
        if write.snapshots:
            self._supersede(write.keys)
        for snapshot in write.snapshots:
            self.groups[snapshot.group][snapshot.key] = snapshot
            self.lru[snapshot] = None
        for snapshot in self._siblings(write.keys[-1]):
            snapshot.turn |= write.turn

    def _supersede(self, keys: Sequence[bytes]) -> None:
        """The checkpoint before goes first, unless it ended a turn or was hit."""
        for key in reversed(keys[:-1]):
            held = [group[key] for group in self.groups if key in group]
            for snapshot in held:
                if not (snapshot.turn or snapshot.hits):
                    self.lru.move_to_end(snapshot, last=False)
            if held:
                return

    def _allocate(self, count: int) -> tuple[int, ...] | None:
        """Evict as much as it takes, and nothing if that cannot be enough."""
        if self.pages.num_free < count > self.pages.num_free + self._evictable_pages():
            return None
        while (pages := self.pages.allocate(count)) is None:
            if not self.evict():
                return None
        return pages

    def _evictable(self, entry: Entry) -> bool:
        if isinstance(entry, Snapshot):
            return not any(snapshot.pins for snapshot in self._siblings(entry.key))
        return not (entry.pins or entry.children or entry.writing)

    def _evictable_pages(self) -> int:
        """Pages of all that is not pinned: what holds a pinned entry is pinned too."""
        return sum(
            len(entry.pages)
            for entry in self.lru
            if not entry.pins and not (isinstance(entry, Block) and entry.writing)
        )

    def _siblings(self, key: bytes) -> list[Snapshot]:
        return [group[key] for group in self.groups if key in group]

    def _drop(self, entry: Entry) -> None:
        if isinstance(entry, Snapshot):
            self._invalidate(entry.key)
            return
        self._unlink(entry)
        if entry.parent is not None:
            entry.parent.children -= 1
        for key in entry.ends:
            self.ends[key].remove(entry)
            if not self.ends[key]:
                del self.ends[key]
                self._invalidate(key)

    def _invalidate(self, key: bytes) -> None:
        """Drop the checkpoints of every group at once: one alone restores nothing."""
        for snapshot in self._siblings(key):
            del self.groups[snapshot.group][key]
            self._unlink(snapshot)

    def _unlink(self, entry: Entry) -> None:
        del self.lru[entry]
        entry.gone = True
        if not entry.pins:
            self.pages.release(entry.pages)

    def _pin(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            entry.pins += 1

    def _unpin(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            entry.pins -= 1
            if entry.gone and not entry.pins:
                self.pages.release(entry.pages)

    def _touch(self, entries: Iterable[Entry]) -> None:
        """Mark as used, children before parents: a parent outlives its children."""
        for entry in entries:
            self.lru.move_to_end(entry)


def _take(supply: Iterable[int], count: int) -> tuple[int, ...]:
    return tuple(islice(supply, count))
