"""DecodeState: everything that a sequence carries from one token to the next."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels import segments
from k3.model import inputs
from k3.model.inputs import Base, Inputs

ROOM = 64
"""Tokens that new rows have room for."""


def plain(x: Tensor) -> Tensor:
    """Return x, copied if it is an inference tensor."""
    return x.clone() if x.is_inference() else x


@dataclass(slots=True)
class KDACache:
    """One KDA layer: memory, convolution window, and inputs kept for a rewind.

    Row b keeps its last counts[b] tokens, in the first columns of `kept`; `base` is
    what it was before them. No tensor here is ever written in place, so a fork may
    share them.
    """

    state: Float[Tensor, "S H V K"]
    window: Float[Tensor, "S past C"]
    keep: int = 0
    base: Base | None = None
    kept: Inputs | None = None
    counts: tuple[int, ...] = ()

    def before(self, raw: Float[Tensor, "B T C"]) -> Float[Tensor, "S past C"]:
        """Return the convolution window that the inputs `raw` come behind."""
        return self.window

    def read(
        self,
        q: Float[Tensor, "B T H K"],
        new: Inputs,
        window: Tensor,
        lens: tuple[int, ...] | None,
    ) -> Float[Tensor, "B T H V"]:
        """Take new tokens in and return what their queries read."""
        if not self.keep or lens is not None:
            out, self.state = inputs.advance(q, new, self.state, lens)
            self.window = window
            self.forget()
            return out
        early = max(len(new) - self.keep, 0)
        outs = []
        if early:
            first = new.cut(0, early)
            out, self.state = inputs.advance(q[:, :early], first, self.state)
            each = (early,) * len(self.state)
            self.window = inputs.window_after(self.window, first.raw, each)
            self.forget()
            outs.append(out)
        late = new.cut(early, len(new))
        self._keep(late)
        out, self.state = inputs.advance(q[:, early:], late, self.state)
        self.window = window
        return torch.cat([*outs, out], 1)

    def keeping(self, inputs: int) -> None:
        """Keep so many inputs of the tokens to come, none of those so far."""
        self.keep = inputs
        self.forget()

    def forget(self) -> None:
        """Keep no inputs of what has been taken so far."""
        self.base, self.kept, self.counts = None, None, ()

    def _keep(self, late: Inputs) -> None:
        """Remember tokens; what no longer fits moves into the base."""
        # Autocast makes narrower inputs; the window, and so its replay, stays wide.
        late = replace(late, raw=late.raw.to(self.window.dtype))
        if self.base is None or self.kept is None:
            self.base, self.kept = (self.state, self.window), late
            self.counts = (len(late),) * len(self.state)
            return
        gone = tuple(max(n + len(late) - self.keep, 0) for n in self.counts)
        if gone == self.counts:
            self.base, self.kept = (self.state, self.window), late
            self.counts = (len(late),) * len(self.state)
            return
        if any(gone):
            self.base = inputs.replay(self.base, self.kept, gone)
        self.kept = inputs.shift(self.kept, late, self.counts, gone)
        self.counts = tuple(
            n + len(late) - over for n, over in zip(self.counts, gone, strict=True)
        )

    def rewind(self, n: tuple[int, ...]) -> None:
        """Forget the last n[b] kept tokens of row b by replaying the others.

        A row that forgets nothing keeps its memory and its window bit for bit.
        """
        assert self.base is not None
        assert self.kept is not None
        self.counts = tuple(a - b for a, b in zip(self.counts, n, strict=True))
        self.kept = self.kept.cut(0, max(self.counts))
        moved = [row for row, back in enumerate(n) if back]
        base, kept = self.base, self.kept
        if len(moved) < len(n):
            base, kept = (base[0][moved], base[1][moved]), kept.select(moved)
        left = tuple(self.counts[row] for row in moved)
        new = inputs.replay(base, kept, left)
        self.state, self.window = inputs.put((self.state, self.window), moved, new)

    def settle(self) -> None:
        """Replace what inference mode made; autograd could not save it."""
        self.state, self.window = plain(self.state), plain(self.window)
        if self.base is not None and self.kept is not None:
            self.base = plain(self.base[0]), plain(self.base[1])
            self.kept = Inputs(*(plain(x) for x in self.kept.tensors()))

    def fork(self) -> "KDACache":
        """Return an independent copy; tensors are shared, none is ever changed."""
        return replace(self)

    def select(self, rows: Sequence[int]) -> "KDACache":
        """Return copies of these rows, in this order."""
        at = list(rows)
        made = KDACache(self.state[at], self.window[at], self.keep)
        if self.base is not None and self.kept is not None:
            made.base = self.base[0][at], self.base[1][at]
            made.counts = tuple(self.counts[row] for row in at)
            made.kept = self.kept.select(at).cut(0, max(made.counts, default=0))
        return made

    def view(self, row: int) -> "KDACache":
        """Return one row; tensors are shared, none is ever changed."""
        one = slice(row, row + 1)
        made = KDACache(self.state[one], self.window[one], self.keep)
        if self.base is not None and self.kept is not None:
            made.base = self.base[0][one], self.base[1][one]
            made.counts = self.counts[one]
            made.kept = Inputs(*(x[one] for x in self.kept.tensors()))
            made.kept = made.kept.cut(0, made.counts[0])
        return made

    @staticmethod
    def join(parts: "Sequence[KDACache]") -> "KDACache":
        """Return the rows of all parts in order."""
        state = torch.cat([part.state for part in parts])
        made = KDACache(state, torch.cat([p.window for p in parts]), parts[0].keep)
        keeping = [part for part in parts if part.kept is not None]
        if keeping:
            assert keeping[0].kept is not None
            full = [part.held(keeping[0].kept) for part in parts]
            bases = [base for base, _, _ in full]
            made.base = (
                torch.cat([x for x, _ in bases]),
                torch.cat([x for _, x in bases]),
            )
            made.kept = inputs.stack([kept for _, kept, _ in full])
            made.counts = tuple(n for _, _, counts in full for n in counts)
        return made

    def held(self, like: Inputs) -> tuple[Base, Inputs, tuple[int, ...]]:
        """Return base, kept inputs and their counts, of no tokens if none were kept."""
        if self.base is not None and self.kept is not None:
            return self.base, self.kept, self.counts
        rows = len(self.state)
        none = (x.new_zeros(rows, 0, *x.shape[2:]) for x in like.tensors())
        return (self.state, self.window), Inputs(*none), (0,) * rows

    def tensors(self) -> dict[str, Tensor]:
        """Return every tensor by name."""
        named = {"state": self.state, "window": self.window}
        if self.base is not None and self.kept is not None:
            named |= {"base_state": self.base[0], "base_window": self.base[1]}
            names = ("raw", "k", "v", "g", "beta")
            parts = zip(names, self.kept.tensors(), strict=True)
            named |= {f"kept_{n}": x for n, x in parts}
        return named


@dataclass(slots=True)
class MLACache:
    """One MLA layer: latent rows [latent | shared key] of every sequence.

    `rows` is a pool of pages; without a page table, page b is all of sequence b.
    """

    rows: Float[Tensor, "P page row"]
    lens: tuple[int, ...]
    table: Tensor | None = None

    def append(
        self, new: Float[Tensor, "B T row"], lens: tuple[int, ...] | None = None
    ) -> None:
        """Write the rows of new tokens behind those of each sequence."""
        added = lens or (new.shape[1],) * new.shape[0]
        after = tuple(a + b for a, b in zip(self.lens, added, strict=True))
        recorded = torch.is_grad_enabled() and new.requires_grad
        if recorded or self.rows.requires_grad:
            self.rows = self.rows.clone()
        if self.table is None:
            self._reserve(max((0, *after)))
        new = new.to(self.rows.dtype)
        if lens is None and self.table is None and segments.level(self.lens):
            self.rows[:, self.lens[0] : after[0]] = new
        else:
            pieces = new[0].split(list(lens)) if lens else new.unbind(0)
            for b, piece in enumerate(pieces):
                self.rows[self._places(b, self.lens[b], after[b])] = piece
        self.lens = after

    def _places(self, b: int, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Return page and slot of some tokens of sequence b."""
        position = torch.arange(start, stop, device=self.rows.device)
        if self.table is None:
            return torch.full_like(position, b), position
        page = self.rows.shape[1]
        return self.table[b, position // page], position % page

    def settle(self) -> None:
        """Replace rows that inference mode made; no other mode may write to them."""
        self.rows = plain(self.rows)

    def _reserve(self, tokens: int) -> None:
        capacity = self.rows.shape[1]
        if tokens > capacity:
            more = max(tokens, 2 * capacity, ROOM) - capacity
            pages, _, width = self.rows.shape
            self.rows = torch.cat(
                [self.rows, self.rows.new_zeros(pages, more, width)], 1
            )

    def of(self, sequence: int) -> Float[Tensor, "S row"]:
        """Return the rows of one sequence, oldest first."""
        n = self.lens[sequence]
        if self.table is None:
            return self.rows[sequence, :n]
        return self.rows[self.table[sequence]].flatten(0, 1)[:n]

    def rewind(self, n: tuple[int, ...]) -> None:
        """Forget the last n[b] tokens of row b; their rows are written over later."""
        self.lens = tuple(a - b for a, b in zip(self.lens, n, strict=True))

    def fork(self) -> "MLACache":
        """Return an independent copy of the rows in use."""
        used = max(self.lens, default=0)
        rows = self.rows[:, :used] if self.table is None else self.rows
        return replace(self, rows=rows.clone())

    def tensors(self) -> dict[str, Tensor]:
        """Return the rows of all sequences up to the longest."""
        rows = self.rows if self.table is None else self.rows[self.table].flatten(1, 2)
        return {"rows": rows[:, : max(self.lens, default=0)]}

    def select(self, rows: Sequence[int]) -> "MLACache":
        """Return copies of these sequences' rows, in this order."""
        return _dense([self.of(row) for row in rows], self.rows)

    @staticmethod
    def join(parts: "Sequence[MLACache]") -> "MLACache":
        """Return the rows of the sequences of all parts in order, copied once."""
        each = [part.of(b) for part in parts for b in range(len(part.lens))]
        return _dense(each, parts[0].rows)


def _dense(each: Sequence[Tensor], like: Tensor) -> MLACache:
    """Return rows of their own for these sequences, with room for ROOM more."""
    lens = tuple(len(x) for x in each)
    rows = like.new_zeros(len(each), max(lens, default=0) + ROOM, like.shape[-1])
    for b, x in enumerate(each):
        rows[b, : len(x)] = x
    return MLACache(rows=rows, lens=lens)
