"""Muon or AdamW on fp32 weights, while the model holds what its file will hold.

The model's parameters are the stored values: experts rounded to MXFP4, the trunk to
bfloat16, the rest as it is. Gradients taken there move the fp32 master weights, which
is straight-through quantization with no extra node in the graph; what is trained is
what is saved.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import torch
from torch import Tensor, nn

from k3.errors import RequestError
from k3.kernels import mx, precision
from k3.model import Model, stored
from k3.model.experts import Experts
from k3.train import matrices
from k3.train.matrices import Cut
from k3.train.muon import Muon
from k3.train.qk_clip import QKClip

PLAIN = ("layernorm", "norm", "conv1d", "A_log", "dt_bias", "embed_tokens", "res_proj")
"""Parts of a name whose weights do not decay."""

OPTIMIZERS = ("muon", "adamw")


class Masters:
    """Master weights of a model of fp32 parameters, and their optimizers.

    With "muon" AdamW moves what is not a matrix of `matrices.cuts`, else all.
    `qk_clip` is the largest logit of an MLA head before its weights are scaled down,
    0 for no limit; the model's passes are watched for it. `adamw_rate` is AdamW's
    learning rate beside Muon, as a part of Muon's.
    """

    def __init__(
        self,
        model: Model,
        *,
        betas: tuple[float, float],
        weight_decay: float,
        optimizer: str = "adamw",
        qk_clip: float = 0.0,
        adamw_rate: float = 1.0,
    ) -> None:
        stored.refuse(model, "training")
        if optimizer not in OPTIMIZERS:
            raise RequestError(
                f"optimizer must be one of {', '.join(OPTIMIZERS)}: got {optimizer!r}"
            )
        named = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.parameters: dict[str, nn.Parameter] = named
        self.held = {n: self._piece(p).detach() for n, p in named.items()}
        self.weights = {
            n: nn.Parameter(precision.wide(p).clone().contiguous())
            for n, p in self.held.items()
        }
        self._rounding = {n: _rounding(model, n) for n in named}
        cuts = matrices.cuts(model) if optimizer == "muon" else {}
        self.muon = self._muon(cuts, weight_decay)
        self.optimizer = self._adamw(betas, weight_decay)
        self.adamw_rate = adamw_rate if optimizer == "muon" else 1.0
        self.qk_clip = QKClip(model, qk_clip) if qk_clip else None
        self.clipped_heads = 0
        self._padding = model.config.pad_token_id
        self.write()

    def _piece(self, parameter: nn.Parameter) -> Tensor:
        """Return what of a parameter is held here, sharing its memory."""
        return parameter

    def _muon(self, cuts: dict[str, Cut], weight_decay: float) -> Muon:
        return Muon({n: self.weights[n] for n in cuts}, cuts, decay=weight_decay)

    def _norm(self) -> Tensor:
        """Return the norm of all gradients."""
        found = [w.grad for w in self.weights.values() if w.grad is not None]
        return nn.utils.get_total_norm(found)

    def _largest(self) -> dict[str, Tensor]:
        """Return the largest logits of the step's passes, by MLA layer and head."""
        return self.qk_clip.largest() if self.qk_clip else {}

    def _first_row(self, name: str) -> int:
        """Return which row of a parameter is the first one here."""
        return 0

    def _adamw(
        self, betas: tuple[float, float], weight_decay: float
    ) -> torch.optim.Optimizer:
        """Return AdamW over what Muon leaves; what is PLAIN does not decay."""
        rest = {n: w for n, w in self.weights.items() if n not in self.muon.weights}
        plain = {n for n in rest if any(part in n for part in PLAIN)}
        groups = [
            {
                "params": [w for n, w in rest.items() if (n in plain) is undecayed],
                "weight_decay": 0.0 if undecayed else weight_decay,
            }
            for undecayed in (False, True)
        ]
        return torch.optim.AdamW(groups, lr=0.0, betas=betas, fused=True)

    def step(
        self,
        gradients: Sequence[Tensor | None],
        rate: float,
        clip: float,
        pool: Executor | None = None,
        accept: Callable[[float], bool] = math.isfinite,
    ) -> float:
        """Move by gradients in the order of `parameters`; return their norm.

        Where `accept` refuses the norm nothing moves. Threads of `pool` share the work
        of Muon.
        """
        for weight, gradient in zip(self.weights.values(), gradients, strict=True):
            weight.grad = None if gradient is None else gradient.to(weight.dtype)
        norm = self._norm()
        nn.utils.clip_grads_with_norm_(self.weights.values(), clip, norm)
        largest = self._largest()
        if not accept(float(norm)):
            self._clear()
            return float(norm)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * self.adamw_rate
        found = {n: self.weights[n].grad for n in self.muon.weights}
        self.muon.step(found, rate, pool)
        self.optimizer.step()
        self._clear()
        if self.qk_clip:
            first = {name: self._first_row(name) for name in self.weights}
            self.clipped_heads = self.qk_clip.scale_(self.weights, largest, first)
        self.write()
        return float(norm)

    def _clear(self) -> None:
        for weight in self.weights.values():
            weight.grad = None

    @torch.no_grad()
    def write(self) -> None:
        """Round the master weights into the model."""
        for name, weight in self.weights.items():
            if name.endswith("embed_tokens.weight") and self._padding is not None:
                row = self._padding - self._first_row(name)
                if 0 <= row < len(weight):
                    weight[row] = 0
            self.held[name].copy_(self._rounding[name](weight))

    def state(self) -> dict[str, Tensor]:
        """Return master weights and moments by name, to be saved."""
        tensors = {}
        for name, weight in self.weights.items():
            tensors[f"weight.{name}"] = weight.detach()
            for key, value in self.optimizer.state.get(weight, {}).items():
                tensors[f"{key}.{name}"] = value
        for name, moment in self.muon.moments.items():
            tensors[f"momentum.{name}"] = moment
        return tensors

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take back what `state` returned, and round it into the model."""
        for name, weight in self.weights.items():
            weight.data.copy_(tensors[f"weight.{name}"])
            moments = {
                key: tensors[f"{key}.{name}"].clone()
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"{key}.{name}" in tensors
            }
            if moments:
                self.optimizer.state[weight] = moments
        for name, moment in self.muon.moments.items():
            moment.copy_(tensors[f"momentum.{name}"])
        self.write()


def _rounding(model: Model, name: str) -> Callable[[Tensor], Tensor]:
    """Return how the checkpoint rounds this parameter."""
    owner_name, _, leaf = name.rpartition(".")
    owner = model.get_submodule(owner_name)
    if isinstance(owner, Experts):
        return mx.rounded
    if leaf in getattr(owner, "fp32", ()):
        return _as_is
    return _to_bfloat16


def _to_bfloat16(weight: Tensor) -> Tensor:
    return weight.to(torch.bfloat16).float()


def _as_is(weight: Tensor) -> Tensor:
    return weight
