"""What KDA's memory took for each token, kept so that tokens can be taken back."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels import choose, kda, segments
from k3.kernels.native import replay as native


@dataclass(frozen=True, slots=True)
class Inputs:
    """What KDA's memory takes for each token, and what its convolution took."""

    raw: Float[Tensor, "B T C"]
    k: Float[Tensor, "B T H K"]
    v: Float[Tensor, "B T H V"]
    g: Float[Tensor, "B T H K"]
    beta: Float[Tensor, "B T H"]

    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return the five tensors in order."""
        return self.raw, self.k, self.v, self.g, self.beta

    def cut(self, start: int, stop: int) -> "Inputs":
        """Return the tokens start .. stop."""
        return Inputs(*(x[:, start:stop] for x in self.tensors()))

    def join(self, other: "Inputs") -> "Inputs":
        """Return these tokens followed by the others."""
        pairs = zip(self.tensors(), other.tensors(), strict=True)
        return Inputs(*(torch.cat(pair, 1) for pair in pairs))

    def first(self, counts: Sequence[int]) -> "Inputs":
        """Return the first counts[b] tokens of row b; the memory ignores the others.

        A token with k = v = g = beta = 0 leaves the memory as it is, bit for bit.
        """
        most = max(counts, default=0)
        short = self.cut(0, most)
        if not counts or min(counts) == most:
            return short
        at = torch.arange(most, device=self.raw.device)
        real = at < torch.tensor(counts, device=at.device)[:, None]  # [B T]
        rest = (
            torch.where(real.view(*real.shape, *[1] * (x.dim() - 2)), x, 0)
            for x in short.tensors()[1:]
        )
        return Inputs(short.raw, *rest)

    def select(self, rows: Sequence[int]) -> "Inputs":
        """Return copies of these rows, in this order."""
        return Inputs(*(x[list(rows)] for x in self.tensors()))

    def widen(self, tokens: int) -> "Inputs":
        """Return so many tokens a row, zeros behind those there are."""
        more = tokens - len(self)
        if not more:
            return self
        blank = (x.new_zeros(x.shape[0], more, *x.shape[2:]) for x in self.tensors())
        return self.join(Inputs(*blank))

    def __len__(self) -> int:
        return self.raw.shape[1]


def stack(parts: Sequence[Inputs]) -> Inputs:
    """Return the rows of all parts in order, as wide as the widest."""
    most = max(len(part) for part in parts)
    columns = zip(*(part.widen(most).tensors() for part in parts), strict=True)
    return Inputs(*(torch.cat(column) for column in columns))


def shift(
    kept: Inputs, late: Inputs, counts: Sequence[int], gone: Sequence[int]
) -> Inputs:
    """Of each row's counts[b] kept tokens drop the first gone[b]; then come the late.

    Row b then begins with counts[b] - gone[b] + T tokens; what is behind them is
    meaningless.
    """
    left = [n - over for n, over in zip(counts, gone, strict=True)]
    joined = kept.join(late)
    if len(set(left)) <= 1 and len(set(gone)) <= 1 and set(counts) <= {len(kept)}:
        over = max(gone, default=0)
        return joined.cut(over, over + max(left, default=0) + len(late))
    device = kept.raw.device
    at = torch.arange(max(left) + len(late), device=device)
    first, stays = (torch.tensor(x, device=device)[:, None] for x in (gone, left))
    # Behind what stays, the late ones begin in column len(kept) of the joined rows.
    jump = torch.where(at < stays, first, len(kept) - stays)
    source = (at + jump).clamp(max=len(joined) - 1)
    row = torch.arange(len(counts), device=device)[:, None]
    return Inputs(*(x[row, source] for x in joined.tensors()))


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
        narrow = new.raw.dtype == torch.bfloat16
        out, state = kda.chunk(*tokens, state=state, lens=lens, narrow=narrow)
    return out.view(shape), state


def window_after(
    window: Float[Tensor, "S past C"],
    raw: Float[Tensor, "B T C"],
    counts: Sequence[int],
) -> Float[Tensor, "S past C"]:
    """Return the convolution window after the first counts[b] tokens of row b."""
    rows, past = torch.cat([window, raw.to(window.dtype)], 1), window.shape[1]
    if not counts or segments.level(tuple(counts)):
        end = past + max((0, *counts))
        return rows[:, end - past : end]
    at = torch.tensor(counts, device=raw.device)[:, None]
    at = at + torch.arange(past, device=raw.device)
    return rows[torch.arange(len(counts), device=raw.device)[:, None], at]


Base = tuple[Tensor, Tensor]
"""A memory and a convolution window: what kept tokens are replayed from."""


def replay(base: Base, kept: Inputs, counts: Sequence[int]) -> Base:
    """Return memory and window after the first counts[b] kept tokens of row b."""
    state, window = base
    after = window_after(window, kept.cut(0, max(counts, default=0)).raw, counts)
    given = (state, *kept.tensors()[1:])
    plain = choose.native(*given, dtypes=choose.SINGLE)
    if plain and len(kept) and not choose.recorded(*given):
        return native.run(state, kept.tensors()[1:], counts), after
    used = kept.first(counts)
    if len(used):
        _, state = advance(used.k, used, state)
    return state, after


def put(old: Base, rows: Sequence[int], new: Base) -> Base:
    """Return copies of `old` whose rows are those of `new`."""
    if len(rows) == len(old[0]):
        return new
    at = torch.tensor(rows, device=old[0].device)
    a, b = (x.index_copy(0, at, y) for x, y in zip(old, new, strict=True))
    return a, b
