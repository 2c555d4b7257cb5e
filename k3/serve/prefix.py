"""The hybrid prefix cache (§5.4.1): states of prefixes, kept in pages, reused by key.

Not thread-safe: one engine loop owns it.
"""

import json
from collections.abc import Sequence

from k3.errors import RequestError
from k3.model import DecodeState, Model
from k3.serve import keys
from k3.serve.entries import Write
from k3.serve.index import PrefixIndex
from k3.serve.keys import Chain, Image
from k3.serve.layout import CacheOptions, Layout, dtype_name, sequence
from k3.serve.metrics import Stats
from k3.serve.overflow import Overflow
from k3.serve.pages import Memory, Pages


class PrefixCache:
    """States at hash-aligned positions of prefixes, for one model.

    `weights` names the weights beyond this process; it and the model's weight version
    are part of every key, so other weights find nothing. States are copied in and
    out: nothing of a request writes to what others may read.
    """

    def __init__(
        self,
        model: Model,
        options: CacheOptions | None = None,
        *,
        weights: str = "",
        overflow: Overflow | None = None,
    ) -> None:
        if overflow is not None and not weights:
            raise RequestError(
                "states on disk outlive the process: got an overflow tier without a "
                "name for the weights; pass weights=, a digest of the checkpoint"
            )
        self.overflow = overflow
        self.model, self.options = model, options or CacheOptions()
        self.stats = Stats()
        self.layout = Layout(model, self.options)
        self.memory = Memory(
            self.layout.num_pages, self.layout.page_bytes, model.device
        )
        self.index = PrefixIndex(
            Pages(self.layout.num_pages),
            block_ends=self.options.block_tokens // self.options.hash_tokens,
            block_pages=len(self.layout.mla),
            group_pages=self.layout.group_pages,
        )
        self.new_weights(weights)

    def new_weights(self, weights: str = "") -> None:
        """Forget every prefix: the model has new weights, called `weights`.

        Raising the model's weight version alone makes old prefixes unmatchable; they
        are then evicted as they age. Without a name the disk is left alone: what
        version 3 was in another process is not known.
        """
        self.clear()
        self._named = (self.model.weight_version, bool(weights))
        parts = (
            json.dumps(self.model.config.to_dict(), sort_keys=True),
            dtype_name(self.model.dtype),
            str(self.options.hash_tokens),
            weights,
        )
        self._meaning = tuple(part.encode() for part in parts)

    @property
    def _disk(self) -> Overflow | None:
        """The overflow tier, while the weights are those that have a name."""
        named = self._named == (self.model.weight_version, True)
        return self.overflow if named else None

    def chain(
        self,
        tokens: Sequence[int],
        images: Sequence[Image] = (),
        salt: bytes = b"",
        *,
        spoken: bool = False,
    ) -> Chain:
        """Return a sequence with its keys, to be extended as it grows.

        `spoken`: placeholders outside of `images` are tokens that a model wrote.
        """
        version = self.model.weight_version
        # Weights with a name are known by it, also to a process that counts anew.
        count = b"" if self._named == (version, True) else str(version).encode()
        chain = Chain(
            keys.root(*self._meaning, count, salt=salt),
            self.options.hash_tokens,
            images,
            self.model.config.media_placeholder_token_id,
            weight_version=version,
        )
        return chain.extend(tokens, generated=spoken)

    def restore(
        self, tokens: Sequence[int] | Chain, *, keep_inputs: int = 0
    ) -> tuple[DecodeState, int]:
        """Return the longest stored state of a prompt, and how many tokens it covers.

        At most all tokens but the last: that one has to be run for its logits.
        """
        chain = self._chain(tokens)
        state, cached = self._from_pages(chain, keep_inputs)
        if self._disk is not None:
            state, cached = self._from_disk(self._disk, chain, state, cached)
        self.stats.lookups += 1
        self.stats.hits += cached > 0
        self.stats.prompt_tokens += len(chain)
        self.stats.cached_tokens += cached
        return state, cached

    def matched(self, tokens: Sequence[int] | Chain) -> int:
        """Tokens whose rows are held, with a checkpoint at their end or without."""
        keys_ = self._chain(tokens).reusable()
        return self.index.matched(keys_) * self.options.hash_tokens

    def schedule(
        self,
        chain: Chain,
        tokens: int | None = None,
        *,
        snapshot: bool = True,
        turn: bool = False,
    ) -> Write | None:
        """Reserve pages for the first tokens of a chain, a multiple of hash_tokens.

        None if no page can be freed: run on without storing. Every write ends in
        `commit` or `abort`. `turn` keeps its checkpoint when a later one is made.
        """
        chain = self._chain(chain)
        tokens = len(chain) if tokens is None else tokens
        if tokens % self.options.hash_tokens or not 0 <= tokens <= len(chain):
            raise RequestError(
                f"a write ends at a multiple of hash_tokens "
                f"{self.options.hash_tokens} within the {len(chain)} tokens of its "
                f"chain: got {tokens}"
            )
        ends = chain.keys[: tokens // self.options.hash_tokens]
        write = self.index.schedule(ends, snapshot=snapshot, turn=turn)
        self.stats.not_stored += write is None
        return write

    def commit(self, write: Write, state: DecodeState, row: int = 0) -> bool:
        """Copy a sequence's state into the pages of a write, then make it visible.

        False if the cache was emptied since. Raises, and aborts the write, if the
        state is not at the write's end: RequestError.
        """
        try:
            one = self._at(write, state, row)
            self._copy(write, one)
        except BaseException:
            self.abort(write)
            raise
        done = self.index.commit(write)
        self.stats.commits += done
        end = len(write.keys) * self.options.hash_tokens
        if done and write.turn and end and one.lens[0] == end and self._disk:
            saved = self._disk.save(write.keys, self.layout, one)
            self.stats.overflow_full += not saved
        return done

    def abort(self, write: Write) -> None:
        """Give up a write; its pages are free again and nothing can be matched."""
        self.index.abort(write)
        self.stats.aborts += 1

    def store(
        self,
        tokens: Sequence[int] | Chain,
        state: DecodeState,
        *,
        row: int = 0,
        turn: bool = False,
    ) -> bool:
        """Store what a sequence has come to, up to the last hash-aligned position.

        Between two of them only rows are stored, unless the state kept enough inputs
        to be taken back. False if there was no room or nothing to store.

        Raises: RequestError if the state holds tokens that `tokens` does not: what a
        draft proposed and nobody verified must not be found by others.
        """
        chain, one = self._chain(tokens), sequence(state, row)
        held = one.lens[0]
        if held > len(chain):
            raise RequestError(
                f"a state is stored with the tokens that made it: it holds {held}, got "
                f"{len(chain)}; rewind what was not verified"
            )
        over = held % self.options.hash_tokens
        if held == over:
            return False
        if 0 < over <= one.kept[0]:
            one, over = one.fork().rewind(over), 0
        aligned = held - held % self.options.hash_tokens
        write = self.schedule(chain, aligned, snapshot=not over, turn=turn)
        return write is not None and self.commit(write, one)

    def hold(self, tokens: Sequence[int] | Chain) -> int:
        """Keep the longest checkpoint of a prefix, on disk too; return its tokens.

        Later ones of the same sequence do not take its place.
        """
        chain = self._chain(tokens)
        at = self.index.hold(chain.reusable())
        if at and self._disk is not None:
            state, _ = self._from_pages(chain, 0)
            saved = self._disk.save(chain.keys[:at], self.layout, state)
            self.stats.overflow_full += not saved
        return at * self.options.hash_tokens

    def clear(self) -> None:
        """Forget every prefix; writes still open will not be committed."""
        self.index.clear()

    def _from_pages(self, chain: Chain, keep_inputs: int) -> tuple[DecodeState, int]:
        """Copy the longest state out of the pages; it is pinned meanwhile."""
        hit = self.index.lookup(chain.reusable())
        try:
            state = self.model.init_state(1, keep_inputs)
            cached = hit.reached * self.options.hash_tokens
            if cached:
                blocks = [block.pages for block in hit.blocks]
                rows = self.layout.read_rows(self.memory, blocks, cached)
                groups = [
                    self.layout.read_group(self.memory, s.pages, s.group)
                    for s in hit.snapshots
                ]
                state = self.layout.build(state, rows, groups)
            return state, cached
        finally:
            self.index.release(hit)

    def _from_disk(
        self, disk: Overflow, chain: Chain, state: DecodeState, cached: int
    ) -> tuple[DecodeState, int]:
        """Take a longer state from disk, if there is one, and keep it in pages."""
        unit = self.options.hash_tokens
        ends = disk.find(chain.reusable(), cached // unit)
        fresh = self.model.init_state(1, state.keep_inputs)
        keys_ = chain.keys[:ends]
        found = disk.load(keys_, self.layout, fresh) if ends else None
        if found is None:
            return state, cached
        self.stats.loads += 1
        if (write := self.index.schedule(keys_)) is not None:
            self.commit(write, found)
        return found, ends * unit

    def _chain(self, tokens: Sequence[int] | Chain) -> Chain:
        if not isinstance(tokens, Chain):
            return self.chain(tokens)
        if tokens.weight_version != self.model.weight_version:
            raise RequestError(
                f"keys belong to the weights they were made for: the chain has weight "
                f"version {tokens.weight_version}, the model "
                f"{self.model.weight_version}; make the chain again"
            )
        return tokens

    def _at(self, write: Write, state: DecodeState, row: int) -> DecodeState:
        """Return the one sequence, refused unless it is where the write ends."""
        state.check(state.batch, self.model.weight_version)
        state.check_layers(self.model.config.text.num_hidden_layers)
        one = sequence(state, row)
        end = len(write.keys) * self.options.hash_tokens
        if one.lens[0] < end or (write.snapshots and one.lens[0] != end):
            raise RequestError(
                f"a checkpoint at {end} is the state after {end} tokens: got one after "
                f"{one.lens[0]}; end the pass there"
            )
        return one

    def _copy(self, write: Write, one: DecodeState) -> None:
        unit = self.options.hash_tokens
        for part in write.parts:
            span = range(part.first * unit, (part.first + len(part.keys)) * unit)
            self.layout.write_rows(self.memory, part.block.pages, one, span)
        for snapshot in write.snapshots:
            self.layout.write_group(self.memory, snapshot.pages, one, snapshot.group)
