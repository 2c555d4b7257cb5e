"""DecodeState: everything that a sequence carries from one token to the next."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels import kda


@dataclass(frozen=True, slots=True)
class Inputs:
    """What KDA's memory takes for each token, and what its convolution took."""

    raw: Float[Tensor, "B T C"]
    k: Float[Tensor, "B T H K"]
    v: Float[Tensor, "B T H V"]
    g: Float[Tensor, "B T H K"]
    beta: Float[Tensor, "B T H"]

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the five tensors in order."""
        return self.raw, self.k, self.v, self.g, self.beta

    def cut(self, start: int, stop: int) -> "Inputs":
        """Return the tokens start .. stop."""
        return Inputs(*(x[:, start:stop] for x in self.tensors()))

    def join(self, other: "Inputs") -> "Inputs":
        """Return these tokens followed by the others."""
        pairs = zip(self.tensors(), other.tensors(), strict=True)
        return Inputs(*(torch.cat(pair, 1) for pair in pairs))

    def __len__(self) -> int:
        return self.raw.shape[1]


def advance(
    q: Float[Tensor, "B T H K"],
    new: Inputs,
    state: Float[Tensor, "S H V K"],
    lens: tuple[int, ...] | None = None,
) -> tuple[Float[Tensor, "B T H V"], Float[Tensor, "S H V K"]]:
    """Run KDA's memory over tokens: (what they read, the memory after them)."""
    shape, tokens = new.v.shape, [x.flatten(0, 1) for x in (q, *new.tensors()[1:])]
    if lens is None and shape[1] == 1:
        out, state = kda.step(*tokens, state=state)
    else:
        lens = lens or (shape[1],) * shape[0]
        out, state = kda.chunk(*tokens, state=state, lens=lens)
    return out.view(shape), state


def plain(x: Tensor) -> Tensor:
    """Return x, copied if it is an inference tensor."""
    return x.clone() if x.is_inference() else x


@dataclass(slots=True)
class KDACache:
    """One KDA layer: memory, convolution window, and inputs kept for a rewind.

    No tensor here is ever written in place, so a fork may share them.
    """

    state: Float[Tensor, "S H V K"]
    window: Float[Tensor, "S past C"]
    keep: int = 0
    base: tuple[Tensor, Tensor] | None = None
    kept: Inputs | None = None

    def read(
        self,
        q: Float[Tensor, "B T H K"],
        new: Inputs,
        window: Tensor,
        lens: tuple[int, ...] | None,
    ) -> Float[Tensor, "B T H V"]:
        """Take new tokens in and return what their queries read."""
        if not self.keep or lens is not None:
            out, self.state = advance(q, new, self.state, lens)
            self.window, self.base, self.kept = window, None, None
            return out
        early = max(len(new) - self.keep, 0)
        outs = []
        if early:
            out, self.state = advance(q[:, :early], new.cut(0, early), self.state)
            self.window = self._window_after(self.window, new.raw[:, :early])
            self.base, self.kept = None, None
            outs.append(out)
        late = new.cut(early, len(new))
        self._keep(late)
        out, self.state = advance(q[:, early:], late, self.state)
        self.window = window
        return torch.cat([*outs, out], 1)

    def _keep(self, late: Inputs) -> None:
        """Remember tokens; what no longer fits moves into the base."""
        self.base = self.base or (self.state, self.window)
        # Autocast makes narrower inputs; the window, and so its replay, stays wide.
        late = replace(late, raw=late.raw.to(self.window.dtype))
        kept = late if self.kept is None else self.kept.join(late)
        old = max(len(kept) - self.keep, 0)
        if old:
            gone = kept.cut(0, old)
            _, state = advance(gone.k, gone, self.base[0])
            self.base = state, self._window_after(self.base[1], gone.raw)
        self.kept = kept.cut(old, len(kept))

    def rewind(self, n: int) -> None:
        """Forget the last n kept tokens by replaying the others from the base."""
        assert self.base is not None
        assert self.kept is not None
        self.kept = self.kept.cut(0, len(self.kept) - n)
        self.state = self.base[0]
        if len(self.kept):
            _, self.state = advance(self.kept.k, self.kept, self.state)
        self.window = self._window_after(self.base[1], self.kept.raw)

    def settle(self) -> None:
        """Replace what inference mode made; autograd could not save it."""
        self.state, self.window = plain(self.state), plain(self.window)
        if self.base is not None and self.kept is not None:
            self.base = plain(self.base[0]), plain(self.base[1])
            self.kept = Inputs(*(plain(x) for x in self.kept.tensors()))

    @staticmethod
    def _window_after(window: Tensor, raw: Tensor) -> Tensor:
        rows = torch.cat([window, raw.to(window.dtype)], 1)
        return rows[:, rows.shape[1] - window.shape[1] :]

    def fork(self) -> "KDACache":
        """Return an independent copy; tensors are shared, none is ever changed."""
        return replace(self)

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
            self._reserve(max(after, default=0))
        new = new.to(self.rows.dtype)
        if lens is None and self.table is None and len(set(self.lens)) == 1:
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
            more = max(tokens, 2 * capacity, 64) - capacity
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

    def rewind(self, n: int) -> None:
        """Forget the last n tokens; their rows are written over later."""
        self.lens = tuple(length - n for length in self.lens)

    def fork(self) -> "MLACache":
        """Return an independent copy of the rows in use."""
        used = max(self.lens, default=0)
        rows = self.rows[:, :used] if self.table is None else self.rows
        return replace(self, rows=rows.clone())

    def tensors(self) -> dict[str, Tensor]:
        """Return the rows of all sequences up to the longest."""
        rows = self.rows if self.table is None else self.rows[self.table].flatten(1, 2)
        return {"rows": rows[:, : max(self.lens, default=0)]}
