"""Even loads: what a step's tokens asked of the experts moves the selection bias.

A bias takes part in the choice of experts only, has no gradient, stays fp32, is used
from the next step on and is frozen where nothing trains.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from k3.errors import RequestError
from k3.model import Model
from k3.model.moe import MoE
from k3.model.mtp import MTP
from k3.train import quantile

RULES = ("quantile", "sign", "none")
BINS = 1000
"""Bins of a histogram: an estimate within 2e-3 plus a thousandth of the biases."""

AllReduce = Callable[[Tensor], None]


@dataclass(frozen=True, slots=True)
class Tally:
    """What tokens asked of each expert, in whole numbers that any order sums alike.

    `counts` are loads in column 0 and the histogram of requirements after it;
    `exact` holds the requirements themselves where there is no histogram.
    """

    counts: Int[Tensor, "layers E columns"]
    exact: tuple[Float[Tensor, "T E"], ...] = ()

    @property
    def loads(self) -> Float[Tensor, "layers E"]:
        """How often each expert was chosen."""
        return self.counts[:, :, 0].float()


def pool(tallies: Sequence[Tally]) -> Tally:
    """The tally of all micro-batches of a step."""
    exact = zip(*(t.exact for t in tallies), strict=True)
    counts = torch.stack([t.counts for t in tallies]).sum(0)
    return Tally(counts, tuple(map(torch.cat, exact)))


class Balance:
    """The biases of a model's routers, and the rule that moves them after a step.

    "quantile": Quantile Balancing (Eq. 14) by a histogram of `bins`, or exact if 0.
    "sign": `rate` down for an expert above the mean load, up for one below. "none".
    With `ema` a new bias is (1 - ema) of what the rule says and ema of the old one.
    `loads` are those of the last update, how often each expert was chosen.
    """

    def __init__(
        self,
        model: Model,
        rule: str = "quantile",
        *,
        bins: int = BINS,
        rate: float = 1e-3,
        ema: float = 0.0,
    ) -> None:
        if rule not in RULES:
            raise RequestError(
                f"balance must be one of {', '.join(RULES)}: got {rule!r}"
            )
        self.rule, self.bins, self.rate, self.ema = rule, bins, rate, ema
        self.k = model.config.text.num_experts_per_token
        text = model.config.text
        sparse = [i for i in range(text.num_hidden_layers) if text.is_moe(i)]
        self._layers = [f"layers.{i}.block_sparse_moe" for i in sparse]
        self._layers += ["mtp.block_sparse_moe"] * text.num_nextn_predict_layers
        self.gates = {name: moe.gate for name, moe in routers(model).items()}
        self.loads: Float[Tensor, "layers E"] | None = None

    @property
    def biases(self) -> list[Float[Tensor, " E"]]:
        """The selection bias of every expert layer, in the order of the layers."""
        return [gate.e_score_correction_bias.data for gate in self.gates.values()]

    @torch.no_grad()
    def tally(
        self, taps: Mapping[str, Tensor], real: Bool[Tensor, "*B T"] | None = None
    ) -> Tally:
        """Count one forward pass, from its taps, over the tokens that are `real`.

        A pass counts once, also where backward runs it again. A layer that did not
        run counts nothing.
        """
        keep = None if real is None else real.flatten()
        counts, exact = [], []
        for name, bias in zip(self.gates, self.biases, strict=True):
            s, index = taps.get(f"{name}.scores"), taps.get(f"{name}.index")
            s = bias.new_empty(0, len(bias)) if s is None else s.detach()
            index = s.new_empty(0, self.k).long() if index is None else index
            if keep is not None and len(s):
                s, index = s[keep], index[keep]
            loads = torch.bincount(index.flatten(), minlength=len(bias))[:, None]
            if self._counts_requirements and self.bins:
                found = quantile.counts(s, bias, self.k, self.bins)
                loads = torch.cat([loads, found], 1)
            elif self._counts_requirements:
                exact.append(quantile.requirements(s, bias, self.k))
            counts.append(loads)
        return Tally(torch.stack(counts), tuple(exact))

    @torch.no_grad()
    def update_(
        self, tally: Tally, factor: float = 1.0, all_reduce: AllReduce | None = None
    ) -> Float[Tensor, "layers E"]:
        """Set the biases that the next step uses; return the loads of all ranks.

        `all_reduce` sums an integer tensor over ranks in place; it is called once.
        `factor` scales the rate of the sign rule. Raises: RequestError for the exact
        quantile over several ranks.
        """
        counts = tally.counts
        if all_reduce is not None:
            if tally.exact:
                raise RequestError(
                    "ranks exchange histograms, not scores: got bins 0 with several "
                    "ranks; set balance_bins to at least 1"
                )
            counts = counts.clone()
            all_reduce(counts)
        self.loads = loads = Tally(counts).loads
        for i, bias in enumerate(self.biases):
            found = self._found(bias, counts[i], tally.exact[i : i + 1], factor)
            if found is not None:
                found = self.ema * bias + (1 - self.ema) * found
                bias.copy_(center(found))
        return loads

    def state(self) -> dict[str, Tensor]:
        """Return the biases by name, to be saved; ranges of histograms follow."""
        return dict(zip(self._names, self.biases, strict=True))

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `state` returned."""
        for name, bias in zip(self._names, self.biases, strict=True):
            bias.copy_(tensors[name])

    @property
    def _names(self) -> list[str]:
        """Numbers among the expert layers of the whole model, also of a stage of it."""
        every = [name for name in self._layers if name in self.gates]
        return [f"bias.{self._layers.index(name)}" for name in every]

    @property
    def _counts_requirements(self) -> bool:
        """Whether a quantile is wanted, and there is an expert that is not chosen."""
        num_experts = len(next(iter(self.biases), ()))
        return self.rule == "quantile" and self.k < num_experts

    def _found(
        self,
        bias: Float[Tensor, " E"],
        counts: Int[Tensor, "E columns"],
        exact: tuple[Tensor, ...],
        factor: float,
    ) -> Float[Tensor, " E"] | None:
        """What the rule says, not centered; None where it says nothing."""
        if not bool(counts[:, 0].any()):
            return None
        if self.rule == "sign":
            return bias + self.rate * factor * excess(counts[:, 0].float())
        if not self._counts_requirements:
            return None
        if exact:
            return quantile.exact(exact[0], self.k)
        return quantile.estimate(counts[:, 1:], bias, self.k)


def routers(model: Model) -> dict[str, MoE]:
    """The expert layers by the name that their taps begin with, in order."""
    found = {}
    for path, module in model.named_modules():
        if isinstance(module, MoE):
            owner = model.get_submodule(path.rpartition(".")[0])
            name = path.removeprefix("language_model.model.")
            is_mtp = isinstance(owner, MTP)
            found["mtp.block_sparse_moe" if is_mtp else name] = module
    return found


def excess(loads: Float[Tensor, " E"]) -> Float[Tensor, " E"]:
    """-1 for an expert above the mean load, 1 for one below, 0 at it."""
    return torch.sign(loads.mean() - loads)


def center(b: Float[Tensor, " E"]) -> Float[Tensor, " E"]:
    """Eq. 14: b - mean(b). Matches: spec.balance.center."""
    return b - b.mean()


def biases(model: Model) -> list[Tensor]:
    """Return the selection bias of every expert layer, in the order of the layers."""
    return [moe.gate.e_score_correction_bias.data for moe in routers(model).values()]


def update_(model: Model, loads: Float[Tensor, "layers E"], rate: float) -> None:
    """Lower the bias of experts chosen more than the mean, raise the others, centre."""
    for bias, load in zip(biases(model), loads, strict=True):
        bias.copy_(center(bias + rate * excess(load)))


def imbalance(loads: Float[Tensor, "layers E"]) -> float:
    """Return the largest load over the mean load, worst layer."""
    return float((loads.amax(-1) / loads.mean(-1).clamp(min=1e-9)).max())
