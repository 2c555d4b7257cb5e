"""The index against spec.cache over random histories, and mutants of every rule.

    pytest tests/serve/test_prefix_stateful.py -m "slow or not slow"

Hash blocks of 2 tokens, physical blocks of 6, a pool so small that it evicts.
"""

import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from k3.serve import keys
from k3.serve.entries import Block
from k3.serve.index import PrefixIndex
from k3.serve.pages import Pages
from k3.spec import cache

HASH, ENDS, BLOCK_PAGES, GROUP_PAGES = 2, 3, 2, (1, 2)
GARBAGE = "not written"


class World:
    """The index, the bytes it hands out pages for, and what the spec says of both."""

    def __init__(self, index=PrefixIndex, chain=keys.Chain, root=keys.root):
        sizes = {"block_ends": ENDS, "block_pages": BLOCK_PAGES}
        self.index = index(Pages(26), **sizes, group_pages=GROUP_PAGES)
        self.chain_of, self.root = chain, root
        self.version, self.memory, self.names = 0, {}, {}
        self.rows, self.checkpoints = set(), tuple(set() for _ in GROUP_PAGES)
        self.writes, self.hits, self.done = [], [], []

    def chain(self, tokens, tenant=0):
        """A sequence, and its prefixes as the spec writes them, weights included."""
        salt = b"tenant" * tenant
        root = self.root(str(self.version).encode(), salt=salt)
        chain = self.chain_of(root, HASH).extend(tokens)
        named = [t + 10 * tenant + 100 * self.version for t in tokens]
        for j, key in enumerate(chain.keys, 1):
            self.names.setdefault(key, tuple(named[: j * HASH]))
        return chain, named

    def lookup(self, tokens, tenant):
        chain, named = self.chain(tokens, tenant)
        registry = cache.Registry(
            frozenset(self.rows), tuple(frozenset(g) for g in self.checkpoints)
        )
        hit = self.index.lookup(chain.reusable())
        want = cache.longest(registry, named[:-1], HASH)
        assert hit.reached * HASH == want
        assert want == cache.lookup(registry, named[:-1], ENDS * HASH, HASH)
        self.hits.append((hit, tuple(named[:want])))
        self.read(*self.hits[-1])

    def read(self, hit, prefix):
        """What a hit would copy is what the prefix made."""
        for at in range(hit.reached):
            block = hit.blocks[at // ENDS]
            for page in block.pages:
                assert self.memory[page][at - block.start] == prefix[: (at + 1) * HASH]
        assert len(hit.snapshots) == (len(GROUP_PAGES) if prefix else 0)
        for snapshot in hit.snapshots:
            for page in snapshot.pages:
                assert self.memory[page] == (prefix, snapshot.group)

    def release(self, which):
        if self.hits:
            hit, prefix = self.hits.pop(which % len(self.hits))
            self.read(hit, prefix)
            self.index.release(hit)

    def schedule(self, tokens, tenant, turn, snapshot):
        chain, named = self.chain(tokens, tenant)
        before = len(self.index.lru)
        write = self.index.schedule(chain.keys, turn=turn, snapshot=snapshot)
        if write is None:
            assert self.hits or self.writes
            assert len(self.index.lru) == before
            return
        for part in write.parts:
            for page in part.block.pages if part.new else ():
                self.memory[page] = [GARBAGE] * ENDS
        for snapshot_ in write.snapshots:
            self.memory |= dict.fromkeys(snapshot_.pages, GARBAGE)
        self.writes.append((write, tuple(named)))

    def finish(self, which, commit):
        """End a write: its bytes land, or half of them, then commit or abort."""
        if not self.writes:
            return
        write, prefix = self.writes.pop(which % len(self.writes))
        for part in write.parts:
            for at in range(part.first, part.first + len(part.keys)):
                name = prefix[: (at + 1) * HASH] if commit else GARBAGE
                for page in part.block.pages:
                    self.memory[page][at - part.block.start] = name
        prefix = prefix[: len(write.keys) * HASH]
        for snapshot in write.snapshots:
            done = (prefix, snapshot.group) if commit else GARBAGE
            self.memory |= dict.fromkeys(snapshot.pages, done)
        if not commit:
            self.index.abort(write)
        elif self.index.commit(write):
            self.rows |= {prefix[:n] for n in range(HASH, len(prefix) + 1, HASH)}
            for group in self.checkpoints if write.snapshots else ():
                group.add(prefix)

    def evict(self):
        self.index.evict()

    def update(self, clear):
        """New weights: old entries cannot be found, whether or not they are dropped."""
        self.version += 1
        if clear:
            self.index.clear()
            assert not self.index.lru

    def check(self):
        """What was evicted is gone from the model, and nothing else ever appears."""
        held = {self.names[key] for key in self.index.ends}
        assert held <= self.rows
        self.rows &= held
        for group, mine in zip(self.index.groups, self.checkpoints, strict=True):
            there = {self.names[key] for key in group}
            assert there <= mine
            mine &= there
            assert there == {self.names[key] for key in self.index.groups[0]}
            assert there <= held
        assert all(name[:n] in held for name in held for n in range(2, len(name), 2))
        self.check_pages()

    def check_pages(self):
        """Every page belongs to one entry, hit or open write, or is free."""
        owners = {id(e): e for e in self.index.lru}
        for hit, _ in self.hits:
            owners |= {id(e): e for e in (*hit.blocks, *hit.snapshots)}
        for write, _ in self.writes:
            new = [part.block for part in write.parts]
            owners |= {id(e): e for e in (*new, *write.snapshots, *write.pinned)}
        pages = [page for entry in owners.values() for page in entry.pages]
        assert len(pages) == len(set(pages)) == self.index.pages.num_used
        blocks = [e for e in self.index.lru if isinstance(e, Block)]
        for block in blocks:
            for slot, key in enumerate(block.ends):
                for page in block.pages:
                    assert self.memory[page][slot] == self.names[key]

    def end(self):
        """When all let go and all is forgotten, every page is free."""
        while self.writes:
            self.finish(0, commit=len(self.writes) % 2 == 0)
            self.check()
        while self.hits:
            self.release(0)
        self.index.clear()
        assert self.index.pages.num_used == 0


def history(seed, **parts):
    """Run one random history; raises where the index and the spec part."""
    world, draw = World(**parts), random.Random(seed)
    stems = [[draw.randint(0, 1) for _ in range(16)] for _ in range(2)]

    def tokens(step=1):
        cut = draw.randrange(0, 17)
        own = [draw.randint(0, 1) for _ in range(draw.choice((0, 0, 2, 5)))]
        made = (draw.choice(stems)[:cut] + own)[:16]
        return made[: len(made) - len(made) % step], draw.random() < 0.15

    operations = (
        lambda: world.lookup(*tokens()),
        lambda: world.schedule(*tokens(HASH), draw.random() < 0.3, draw.random() < 0.9),
        lambda: world.finish(draw.randrange(9), commit=draw.random() < 0.8),
        lambda: world.release(draw.randrange(9)),
        world.evict,
        lambda: world.update(draw.random() < 0.5),
    )
    for _ in range(40):
        draw.choices(operations, weights=(8, 8, 8, 5, 3, 0.5))[0]()
        world.check()
    world.end()


def test_100_histories():
    for seed in range(100):
        history(seed)


@pytest.mark.slow
def test_2000_histories():
    for seed in range(100, 2100):
        history(seed)


TOKENS = st.lists(st.integers(0, 1), max_size=14)
EVEN = TOKENS.map(lambda tokens: tokens[: len(tokens) - len(tokens) % HASH])


class Machine(RuleBasedStateMachine):
    """The same, with histories that hypothesis draws and shortens."""

    def __init__(self):
        super().__init__()
        self.world = World()

    @rule(tokens=TOKENS, tenant=st.booleans())
    def lookup(self, tokens, tenant):
        self.world.lookup(tokens, tenant)

    @rule(tokens=EVEN, tenant=st.booleans(), turn=st.booleans(), snap=st.booleans())
    def schedule(self, tokens, tenant, turn, snap):
        self.world.schedule(tokens, tenant, turn, snap)

    @rule(which=st.integers(0, 3), commit=st.booleans())
    def finish(self, which, commit):
        self.world.finish(which, commit)

    @rule(which=st.integers(0, 3))
    def release(self, which):
        self.world.release(which)

    @rule()
    def evict(self):
        self.world.evict()

    @rule(clear=st.booleans())
    def update(self, clear):
        self.world.update(clear)

    @invariant()
    def consistent(self):
        self.world.check()

    def teardown(self):
        self.world.end()


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)
