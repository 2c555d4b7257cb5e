"""AdamW on fp32 weights, while the model holds what its file will hold.

The model's parameters are the stored values: experts rounded to MXFP4, the trunk to
bfloat16, the rest as it is. Gradients taken there move the fp32 master weights, which
is straight-through quantization with no extra node in the graph; what is trained is
what is saved.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from k3.kernels import mx
from k3.model import Model
from k3.model.experts import Experts

PLAIN = ("layernorm", "norm", "conv1d", "A_log", "dt_bias", "embed_tokens", "res_proj")
"""Parts of a name whose weights do not decay."""


class Masters:
    """Master weights of a model of fp32 parameters, and their optimizer."""

    def __init__(
        self, model: Model, *, betas: tuple[float, float], weight_decay: float
    ) -> None:
        named = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.parameters: dict[str, nn.Parameter] = named
        self.weights = {
            n: nn.Parameter(p.detach().clone().contiguous()) for n, p in named.items()
        }
        self._rounding = {n: _rounding(model, n) for n in named}
        plain = {n for n in named if any(part in n for part in PLAIN)}
        groups = [
            {
                "params": [w for n, w in self.weights.items() if n not in plain],
                "weight_decay": weight_decay,
            },
            {
                "params": [w for n, w in self.weights.items() if n in plain],
                "weight_decay": 0.0,
            },
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=0.0, betas=betas, fused=True)
        self._padding = model.config.pad_token_id
        self.write()

    def step(
        self, gradients: Sequence[Tensor | None], rate: float, clip: float
    ) -> float:
        """Move by gradients in the order of `parameters`; return their norm."""
        for weight, gradient in zip(self.weights.values(), gradients, strict=True):
            weight.grad = gradient
        norm = nn.utils.clip_grad_norm_(self.weights.values(), clip)
        if not bool(torch.isfinite(norm)):
            return float(norm)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.write()
        return float(norm)

    @torch.no_grad()
    def write(self) -> None:
        """Round the master weights into the model."""
        for name, weight in self.weights.items():
            if name.endswith("embed_tokens.weight") and self._padding is not None:
                weight[self._padding] = 0
            rounding = self._rounding[name]
            self.parameters[name].copy_(rounding(weight))

    def state(self) -> dict[str, Tensor]:
        """Return master weights and moments by name, to be saved."""
        tensors = {}
        for name, weight in self.weights.items():
            tensors[f"weight.{name}"] = weight.detach()
            for key, value in self.optimizer.state.get(weight, {}).items():
                tensors[f"{key}.{name}"] = value
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
        self.write()


def _rounding(model: Model, name: str) -> Callable[[Tensor], Tensor]:
    """Return how the checkpoint rounds this parameter."""
    owner_name, _, leaf = name.rpartition(".")
    owner = model.get_submodule(owner_name)
    if isinstance(owner, Experts):
        return _to_mxfp4
    if leaf in getattr(owner, "fp32", ()):
        return _as_is
    return _to_bfloat16


def _to_mxfp4(weight: Tensor) -> Tensor:
    return mx.decode(*mx.encode(weight), torch.float32)


def _to_bfloat16(weight: Tensor) -> Tensor:
    return weight.to(torch.bfloat16).float()


def _as_is(weight: Tensor) -> Tensor:
    return weight
