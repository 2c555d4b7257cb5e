"""Every rule of the index, broken, is caught by a random history against the spec."""

import importlib.util
import sys
from pathlib import Path

import pytest

from k3.serve import keys
from k3.serve.entries import Snapshot
from k3.serve.index import PrefixIndex

_spec = importlib.util.spec_from_file_location(
    "prefix_histories", Path(__file__).with_name("test_prefix_stateful.py")
)
stateful = sys.modules.setdefault(
    "prefix_histories", importlib.util.module_from_spec(_spec)
)
_spec.loader.exec_module(stateful)


class PublishedWhenScheduled(PrefixIndex):
    def schedule(self, keys, **options):
        write = super().schedule(keys, **options)
        for snapshot in write.snapshots if write else ():
            self.groups[snapshot.group].setdefault(snapshot.key, snapshot)
        return write


class PinnedAfterAllocation(PrefixIndex):
    late = None

    def schedule(self, keys, **options):
        self.late = []
        return super().schedule(keys, **options)

    def _pin(self, entries):
        if self.late is None:
            super()._pin(entries)
        else:
            self.late = list(entries)

    def _allocate(self, count):
        pages = super()._allocate(count)
        late, self.late = self.late, None
        self._pin(late)
        return pages


class PinnedIsEvicted(PrefixIndex):
    def _evictable(self, entry):
        return isinstance(entry, Snapshot) or not (entry.children or entry.writing)


class OneGroupIsEvictedAlone(PrefixIndex):
    def _drop(self, entry):
        if isinstance(entry, Snapshot):
            del self.groups[entry.group][entry.key]
            self._unlink(entry)
        else:
            super()._drop(entry)


class ParentsAreEvictedFirst(PrefixIndex):
    def _evictable(self, entry):
        return not entry.pins and not getattr(entry, "writing", False)

    def _touch(self, entries):
        # The order of use alone would still let a parent outlive its children.
        super()._touch(reversed(list(entries)))


class CheckpointsOutliveTheirRows(PrefixIndex):
    def _drop(self, entry):
        if isinstance(entry, Snapshot):
            super()._drop(entry)
        else:
            kept, self._invalidate = self._invalidate, lambda key: None
            super()._drop(entry)
            self._invalidate = kept


class AbortKeepsItsPages(PrefixIndex):
    def abort(self, write):
        write.snapshots = write.snapshots[1:]
        super().abort(write)


class AbortPublishes(PrefixIndex):
    def abort(self, write):
        if not write.snapshots:
            super().abort(write)
        else:
            self.commit(write)


class CommittedAfterClear(PrefixIndex):
    def commit(self, write):
        write.epoch = self.epoch
        return super().commit(write)


class TwoWritersOfOneBlock(PrefixIndex):
    def _plan(self, keys, at):
        writing = [b for b in self.lru if getattr(b, "writing", False)]
        for block in writing:
            block.writing = False
        parts = super()._plan(keys, at)
        for block in writing:
            block.writing = True
        return parts


class LastTokenIsReused(keys.Chain):
    def reusable(self):
        return list(self.keys)


class NotChained(keys.Chain):
    def _next(self):
        start, self.keys = self.keys, []
        at, tokens = len(start) * self.hash_tokens, self.tokens
        self.tokens = tokens[at:]
        key = super()._next()
        self.keys, self.tokens = start, tokens
        return key


def without_version(*parts, salt=b""):
    return keys.root(salt=salt)


def without_salt(*parts, salt=b""):
    return keys.root(*parts)


INDEXES = [
    PublishedWhenScheduled,
    PinnedAfterAllocation,
    PinnedIsEvicted,
    OneGroupIsEvictedAlone,
    ParentsAreEvictedFirst,
    CheckpointsOutliveTheirRows,
    AbortKeepsItsPages,
    AbortPublishes,
    CommittedAfterClear,
    TwoWritersOfOneBlock,
]
MUTANTS = [
    *({"index": index} for index in INDEXES),
    {"chain": LastTokenIsReused},
    {"chain": NotChained},
    {"root": without_version},
    {"root": without_salt},
]


def histories(**mutant):
    for seed in range(300):
        stateful.history(seed, **mutant)


@pytest.mark.parametrize(
    "mutant", MUTANTS, ids=lambda m: next(iter(m.values())).__name__
)
def test_a_broken_rule_is_caught(mutant):
    with pytest.raises((AssertionError, KeyError, IndexError)):
        histories(**mutant)
