"""Kimi Delta Attention: gate, one step, the token recurrence and the chunk form.

All forms share one signature. Tokens are flat: q, k, g [T H K], v [T H V],
beta [T H]; `lens` gives the sequences they belong to, and state [S H V K] is one
matrix per sequence and head, in fp32 or wider.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from k3.kernels import choose, fla, precision, tiles
from k3.kernels.native import kda as native

TILE = 16
"""Tokens of a tile: at the gate floor of -5 they decay by exp(-80), still in fp32."""

MAX_TILE_DECAY = 80.0

STEEP_AT_ONCE = 64
"""Steeper tiles handled at once: each takes TILE times the memory of a plain one."""


def gate(
    z: Float[Tensor, "*B H K"],
    A_log: Float[Tensor, " H"],
    dt_bias: Float[Tensor, "H K"],
    lower_bound: float | None,
) -> Float[Tensor, "*B H K"]:
    """Eq. 5: log-decay lower_bound * sigmoid(exp(A_log) (z + dt_bias)).

    With `lower_bound` None it is Kimi-Linear's unbounded -exp(A_log) softplus(.).
    fp32 or wider. Matches: spec.kda.gate.
    """
    x = precision.wide(z) + dt_bias
    rate = A_log.exp()[:, None]
    if lower_bound is None:
        return -rate * F.softplus(x)
    return lower_bound * torch.sigmoid(rate * x)


def step(
    q: Float[Tensor, "S H K"],
    k: Float[Tensor, "S H K"],
    v: Float[Tensor, "S H V"],
    g: Float[Tensor, "S H K"],
    beta: Float[Tensor, "S H"],
    *,
    state: Float[Tensor, "S H V K"],
) -> tuple[Float[Tensor, "S H V"], Float[Tensor, "S H V K"]]:
    """Eq. 1 for one token of each of S sequences: (readout, state after it).

    S' = S diag(exp g); S = S' + beta (v - S' k) k^T; out = S q. State is [V K],
    the transpose of the paper's. q carries its scale.
    Matches: spec.kda.update and spec.kda.read.
    """
    given = (q, k, v, g, beta, state)
    done = _natively(given, (1,) * q.shape[0])
    if done is not None:
        return done
    if choose.fla(*given, exact=False) and not choose.recorded(*given):
        return fla.step(q, k, v, g, beta, state=state)
    decayed = state * g.exp().unsqueeze(-2)
    error = (v - (decayed @ k.unsqueeze(-1)).squeeze(-1)) * beta.unsqueeze(-1)
    state = torch.addcmul(decayed, error.unsqueeze(-1), k.unsqueeze(-2))
    return (state @ q.unsqueeze(-1)).squeeze(-1), state


def recurrent(
    q: Float[Tensor, "T H K"],
    k: Float[Tensor, "T H K"],
    v: Float[Tensor, "T H V"],
    g: Float[Tensor, "T H K"],
    beta: Float[Tensor, "T H"],
    *,
    state: Float[Tensor, "S H V K"],
    lens: tuple[int, ...],
) -> tuple[Float[Tensor, "T H V"], Float[Tensor, "S H V K"]]:
    """Eq. 1 token by token over packed sequences: (readouts, final states).

    Any retention in [0, 1] is allowed (g = -inf is a retention of 0).
    """
    layout = tiles.tile(lens, 1, q.device)
    parts = [_gather(x, layout)[:, 0] for x in (q, k, v, g, beta)]
    outs, start = [], 0
    states = _Alive(state, layout)
    for n in layout.alive:
        inputs = [x[start : start + n] for x in parts]
        out, states.current = step(*inputs, state=states.take(n))
        outs.append(out)
        start += n
    return _scatter(outs, v, layout), states.final()


def chunk(
    q: Float[Tensor, "T H K"],
    k: Float[Tensor, "T H K"],
    v: Float[Tensor, "T H V"],
    g: Float[Tensor, "T H K"],
    beta: Float[Tensor, "T H"],
    *,
    state: Float[Tensor, "S H V K"],
    lens: tuple[int, ...],
    narrow: bool = False,
) -> tuple[Float[Tensor, "T H V"], Float[Tensor, "S H V K"]]:
    """Eq. 4: the same function as `recurrent`, by tiles of 16 tokens.

    Inside a tile the corrected values solve a unit triangular system; between tiles
    only the state passes. A tile whose decay leaves fp32's range sums the log-decay
    of each pair of tokens, head by head. `narrow`: q, k, v are good to bf16 only.
    Cost: about 6 T H V K + 2 T H C (K + V) multiply-adds.
    Matches: spec.kda.chunk (fp32 1e-5 relative).
    """
    if (done := _elsewhere((q, k, v, g, beta, state), lens, narrow)) is not None:
        return done
    layout = tiles.tile(lens, TILE, q.device)
    qt, kt, vt, gt, bt = (_tiled(x, layout) for x in (q, k, v, g, beta.unsqueeze(-1)))
    G = gt.cumsum(-2)  # [N H C K]
    decay = G.exp()
    k_down, q_down = kt * decay, qt * decay
    keys, queries, k_end = _within((qt, kt, gt, G, q_down, k_down))
    rhs = torch.cat([k_down, vt], -1) * bt
    # solve_triangular with unitriangular reads below the diagonal only: (I + A).
    solved = torch.linalg.solve_triangular(
        keys.tril(-1) * bt, rhs, upper=False, unitriangular=True
    )
    w, u = solved.split([k.shape[-1], v.shape[-1]], -1)
    read, new, final = _scan(
        w, u, q_down, k_end, end=decay[..., -1:, :], state=state, layout=layout
    )
    # A token reads its own value undecayed: through G the gradients would cancel.
    own = (qt * kt).sum(-1, keepdim=True) * new
    out = read + own + queries.tril(-1) @ new
    return _scatter([out.transpose(1, 2).flatten(0, 1)], v, layout), final


def _natively(
    given: tuple[Tensor, ...], lens: tuple[int, ...]
) -> tuple[Tensor, Tensor] | None:
    """The same by the kernel of kda.cpp, where it takes q, k, v, g, beta, state."""
    if not choose.operation(*given, dtypes=choose.SINGLE):
        return None
    *tokens, state = given
    record = choose.recorded(*given)
    return native.chunk(*tokens, state=state, lens=lens, record=record)


def _elsewhere(
    given: tuple[Tensor, ...], lens: tuple[int, ...], narrow: bool
) -> tuple[Tensor, Tensor] | None:
    """The chunk form natively or by fla, where one of them takes these."""
    done = _natively(given, lens)
    fits = done is None and given[1].shape[-1] <= fla.MAX_KEY
    if fits and choose.fla(*given, exact=not narrow):
        *tokens, state = given
        return fla.chunk(*tokens, state=state, lens=lens, narrow=narrow)
    return done


def _within(tile: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Scores of a tile's keys and queries with its keys j < i, and its keys at its end.

    `tile` is q, k, g, G = cumsum g, q exp G, k exp G, each [N H C K]. Every matrix
    goes its own way, so that no neighbour changes how a sequence is rounded.
    """
    flat = [x.flatten(0, 1) for x in tile]
    # A NaN is steep too.
    steep = ~(flat[3][:, -1].amin(-1) >= -MAX_TILE_DECAY)
    if not bool(steep.any()):
        parts = [_by_product(flat)]
    else:
        parts = [_by_product([x[~steep] for x in flat])]
        some = zip(*(x[steep].split(STEEP_AT_ONCE) for x in flat[:3]), strict=True)
        parts += [_by_sums(*part) for part in some]
    found = [torch.cat(x) if len(x) > 1 else x[0] for x in zip(*parts, strict=True)]
    if len(parts) > 1:
        place = torch.argsort(steep.int(), stable=True).argsort()
        found = [x[place] for x in found]
    a, b, c = (x.unflatten(0, tile[0].shape[:2]) for x in found)
    return a, b, c


def _by_product(tile: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Factor each pair's decay: exp(G_i - G_j) = exp(G_i) exp(-G_j)."""
    _, k, g, G, q_down, k_down = tile
    # exp(-G), not 1 / exp(G): the gradient of a quotient would square it.
    up = (k * (-G).exp()).mT
    # A suffix sum, not G[-1] - G: the gradients of the last token would cancel.
    after = g[:, 1:].flip(1).cumsum(1).flip(1)
    k_end = torch.cat([k[:, :-1] * after.exp(), k[:, -1:]], 1)
    return k_down @ up, q_down @ up, k_end


def _by_sums(
    q: Float[Tensor, "N C K"], k: Float[Tensor, "N C K"], g: Float[Tensor, "N C K"]
) -> tuple[Tensor, Tensor, Tensor]:
    """Sum each pair's log-decay: no reciprocal, no difference, any decay to -inf."""
    later = torch.ones(g.shape[1], g.shape[1], dtype=torch.bool, device=g.device)
    later = later.triu(1)[..., None]  # [j i 1]
    steps = torch.where(later, g[:, None], 0).cumsum(-2)  # [N j i K]
    kept = k[:, :, None] * steps.exp()
    keys, queries = ((kept * x[:, None]).sum(-1).mT for x in (k, q))
    return keys, queries, kept[:, :, -1]


def _scan(
    w: Tensor,
    u: Tensor,
    q_down: Tensor,
    k_end: Tensor,
    *,
    end: Tensor,
    state: Tensor,
    layout: tiles.Tiles,
) -> tuple[Tensor, Tensor, Tensor]:
    """Carry the state over the steps: (readout of old state, new values, state)."""
    both = torch.cat([w, q_down], -2)
    reads, news, start = [], [], 0
    states = _Alive(state, layout)
    size = w.shape[-2]
    for n in layout.alive:
        here = slice(start, start + n)
        S = states.take(n)
        seen = both[here] @ S.mT  # [n H 2C V]
        new = u[here] - seen[..., :size, :]
        states.current = S * end[here] + new.mT @ k_end[here]
        reads.append(seen[..., size:, :])
        news.append(new)
        start += n
    if not reads:
        return torch.zeros_like(u), u, states.final()
    return torch.cat(reads), torch.cat(news), states.final()


class _Alive:
    """The states of the sequences that still have tokens, in falling length."""

    def __init__(self, state: Tensor, layout: tiles.Tiles) -> None:
        self.layout = layout
        self.single = state.shape[0] == 1
        self.current = state if self.single else state[layout.order]
        self.finished: list[Tensor] = []

    def take(self, n: int) -> Tensor:
        """Keep the first n sequences; the others have ended."""
        if n < self.current.shape[0]:
            self.finished.append(self.current[n:])
            self.current = self.current[:n]
        return self.current

    def final(self) -> Tensor:
        """Return the state of every sequence, in the caller's order."""
        if self.single:
            return self.current
        self.finished.append(self.current)
        return torch.cat(self.finished[::-1])[self.layout.inverse]


def _gather(x: Tensor, layout: tiles.Tiles) -> Tensor:
    """Tokens [T ...] to tile slots [N C ...]; padding reads an appended zero row."""
    if layout.whole:
        return x.unflatten(0, layout.rows.shape)
    return torch.cat([x, x.new_zeros(1, *x.shape[1:])])[layout.rows]


def _tiled(x: Tensor, layout: tiles.Tiles) -> Tensor:
    return _gather(x, layout).transpose(1, 2).contiguous()  # [N H C .]


def _scatter(outs: list[Tensor], like: Tensor, layout: tiles.Tiles) -> Tensor:
    """Tile slots back to tokens [T H V]; `like` is as empty as they where none are."""
    if not outs:
        return like
    flat = torch.cat(outs) if len(outs) > 1 else outs[0]
    return flat if layout.whole else flat[layout.slots]
