"""One token out of each row of logits: greedy or drawn, with log-probabilities.

A row is treated alone: its token depends on its logits, its options and its own
generator, never on the rows beside it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from k3.errors import RequestError
from k3.kernels import choose

HEADS = (256, 2048)
"""Most likely tokens that are looked at before all are sorted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleOptions:
    """How one token is chosen.

    Applied in this order: temperature (0 takes the most likely token), the `top_k`
    most likely (0: all), the fewest most likely tokens whose share of what is left
    reaches `top_p`, and the tokens at least `min_p` times as likely as the first.
    `logprobs` asks for that many alternatives.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    logprobs: int = 0

    def __post_init__(self) -> None:
        """Refuse every value outside its range, by name."""
        rules = [
            ("temperature", "at least 0 and finite", 0 <= self.temperature < math.inf),
            ("top_k", "a whole number, 0 for no limit", _is_count(self.top_k)),
            ("top_p", "above 0 and at most 1", 0 < self.top_p <= 1),
            ("min_p", "at least 0 and at most 1", 0 <= self.min_p <= 1),
            ("logprobs", "a whole number of alternatives", _is_count(self.logprobs)),
        ]
        wrong = [
            f"{name} must be {rule}: got {getattr(self, name)!r}"
            for name, rule, holds in rules
            if not holds
        ]
        if wrong:
            raise RequestError("; ".join(wrong))


class Sample(NamedTuple):
    """The chosen tokens; log-probabilities are of the logits as they came in."""

    tokens: Int[Tensor, " B"]
    logprobs: Float[Tensor, " B"]
    top_ids: Int[Tensor, "B n"]
    top_logprobs: Float[Tensor, "B n"]


def sample(
    logits: Float[Tensor, "B W"],
    options: SampleOptions | Sequence[SampleOptions],
    generators: Sequence[torch.Generator],
) -> Sample:
    """The next token of each row.

    `options` is one for all rows or one for each; `generators` one for each row (on
    the CPU). A row that is drawn takes one number from its generator, a greedy row
    takes none. Ties go to the lower token id.

    Raises: RequestError for logits that are no distribution.
    """
    rows = _one_each(options, len(logits))
    if len(generators) != len(logits):
        raise RequestError(
            f"sample needs one generator for each row of logits: got "
            f"{len(generators)} for {len(logits)} rows"
        )
    _check_logits(logits)
    wide = logits.double()
    tokens = wide.argmax(dim=-1)
    drawn = [row for row, option in enumerate(rows) if option.temperature > 0]
    if drawn:
        uniform = [
            torch.rand((), generator=generators[row], dtype=torch.float64)
            for row in drawn
        ]
        probs = _distribution(wide[drawn], [rows[row] for row in drawn])
        tokens[drawn] = draw(probs, torch.stack(uniform).to(probs.device))
    return score(wide, tokens, max((option.logprobs for option in rows), default=0))


def score(
    logits: Float[Tensor, "B W"], tokens: Int[Tensor, " B"], alternatives: int
) -> Sample:
    """These tokens with their log-probabilities, and so many alternatives to each."""
    logp = torch.log_softmax(logits.double(), dim=-1)
    most = min(alternatives, logits.shape[-1])
    top = _descending(logp)[:, :most] if most else tokens.new_zeros(len(tokens), 0)
    return Sample(
        tokens, logp.gather(-1, tokens[:, None])[:, 0], top, logp.gather(-1, top)
    )


def distribution(
    logits: Float[Tensor, "B W"], rows: Sequence[SampleOptions]
) -> Float[Tensor, "B W"]:
    """The law of the token that `sample` takes from each row, in fp64; sums to 1.

    Temperature 0 is certain of the most likely token.
    Raises: RequestError for logits that are no distribution.
    """
    _check_logits(logits)
    wide = logits.double()
    probs = torch.zeros_like(wide).scatter(-1, wide.argmax(-1, keepdim=True), 1)
    drawn = [row for row, option in enumerate(rows) if option.temperature > 0]
    if drawn:
        kept = _distribution(wide[drawn], [rows[row] for row in drawn])
        probs[drawn] = kept / kept.sum(-1, keepdim=True)
    return probs


def _distribution(
    logits: Float[Tensor, "B W"], rows: Sequence[SampleOptions]
) -> Float[Tensor, "B W"]:
    """The probabilities that a draw uses, zero for the tokens that are cut."""
    temperature = _column(logits, [row.temperature for row in rows])
    # The largest first becomes 0, so that a tiny temperature cannot overflow.
    scaled = (logits - logits.amax(-1, keepdim=True)) / temperature
    probs = torch.softmax(scaled, dim=-1)
    if any(row.top_k or row.top_p < 1 for row in rows):
        cut = _cut_head(probs, rows) if choose.unseen(probs) else None
        probs = _cut_tail(probs, rows) if cut is None else cut
    floor = _column(logits, [row.min_p for row in rows]) * probs.amax(-1, keepdim=True)
    return torch.where(probs >= floor, probs, 0)


def _cut_tail(
    probs: Float[Tensor, "B W"], rows: Sequence[SampleOptions]
) -> Float[Tensor, "B W"]:
    """Keep the `top_k` most likely, then the fewest of them that reach `top_p`."""
    order = _descending(probs)
    ranked = probs.gather(-1, order)
    rank = torch.arange(probs.shape[-1], device=probs.device)
    limit = _column(probs, [row.top_k or probs.shape[-1] for row in rows])
    ranked = torch.where(rank < limit, ranked, 0)
    before = ranked.cumsum(-1) - ranked
    # Running sums have the same bits however many tokens are looked at.
    left = ranked.cumsum(-1)[:, -1:]
    total = torch.where(limit < probs.shape[-1], left, probs.sum(-1, keepdim=True))
    share = _column(probs, [row.top_p for row in rows]) * total
    # A top_p of 1 cuts nothing, whatever the sum rounds to.
    all_kept = _column(probs, [row.top_p for row in rows]) >= 1
    ranked = torch.where(all_kept | (before < share), ranked, 0)
    return torch.zeros_like(probs).scatter(-1, order, ranked)


def _cut_head(
    probs: Float[Tensor, "B W"], rows: Sequence[SampleOptions]
) -> Float[Tensor, "B W"] | None:
    """As `_cut_tail`, from a few of the most likely tokens; None if more are kept.

    Sorting all takes longer than a step of a small model.
    """
    for count in HEADS:
        if 2 * count > probs.shape[-1]:
            return None
        values = probs.topk(count).values
        counts = _num_kept(values, probs.sum(-1, keepdim=True), rows)
        most = counts.clamp(max=count)
        last = values.gather(-1, most - 1)
        above, tied = probs > last, probs == last
        # Of equal ones the lower ids come first.
        first = tied.cumsum(-1) <= most - above.sum(-1, keepdim=True)
        free = [not row.top_k and row.top_p >= 1 for row in rows]
        whole = torch.tensor(free, device=probs.device)[:, None]
        if bool(((counts <= count) | whole).all()):
            return torch.where(whole | above | (tied & first), probs, 0)
    return None


def _num_kept(
    values: Float[Tensor, "B n"],
    total: Float[Tensor, "B 1"],
    rows: Sequence[SampleOptions],
) -> Int[Tensor, "B 1"]:
    """How many of the most likely tokens are kept; n + 1 where it may be more."""
    n = values.shape[-1]
    limit = _column(values, [row.top_k or n + 1 for row in rows])
    inside = torch.arange(n, device=values.device) < limit
    ranked = torch.where(inside, values, 0)
    running = ranked.cumsum(-1)
    total = torch.where(limit <= n, running[:, -1:], total)
    top_p = _column(values, [row.top_p for row in rows])
    before = running - ranked
    kept = (inside & ((top_p >= 1) | (before < top_p * total))).sum(-1, keepdim=True)
    return kept + ((kept == n) & (limit > n))


def draw(
    probs: Float[Tensor, "B W"], uniform: Float[Tensor, " B"]
) -> Int[Tensor, " B"]:
    """The token at which the running sum passes `uniform` times the whole."""
    running = probs.cumsum(-1)
    target = uniform[:, None] * running[:, -1:]
    token = torch.searchsorted(running, target, right=True)
    # Rounding may put the target on the total: the last possible token is meant.
    possible = torch.arange(probs.shape[-1], device=probs.device) * (probs > 0)
    return torch.minimum(token, possible.amax(-1, keepdim=True))[:, 0]


def _descending(values: Float[Tensor, "B W"]) -> Int[Tensor, "B W"]:
    """Indices from the largest value to the smallest, ties in index order."""
    return torch.sort(values, dim=-1, descending=True, stable=True).indices


def _column(like: Tensor, values: Sequence[float | int]) -> Float[Tensor, "B 1"]:
    return torch.tensor(values, dtype=like.dtype, device=like.device)[:, None]


def _one_each(
    options: SampleOptions | Sequence[SampleOptions], rows: int
) -> Sequence[SampleOptions]:
    if isinstance(options, SampleOptions):
        return [options] * rows
    if len(options) != rows:
        raise RequestError(
            f"sample needs one set of options, or one for each row of logits: got "
            f"{len(options)} for {rows} rows"
        )
    return options


def _check_logits(logits: Tensor) -> None:
    """Refuse rows that no distribution can be made of; -inf rules a token out."""
    # The largest number of a row is NaN where any of it is.
    largest = logits.amax(-1).tolist()
    bad = [row for row, most in enumerate(largest) if not math.isfinite(most)]
    if bad:
        raise RequestError(
            "logits must be numbers, -inf for a token that is ruled out, at least one "
            f"finite: row {bad[0]} holds NaN, +inf or nothing finite; check the "
            "weights and the dtype with k3 compare"
        )


def _is_count(value: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
