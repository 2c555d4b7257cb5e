"""Even loads: the selection bias of the router moves by the sign of the excess."""

import torch
from jaxtyping import Float
from torch import Tensor

from k3.model import Model
from k3.model.moe import MoE


def biases(model: Model) -> list[Tensor]:
    """Return the selection bias of every expert layer, in the order of the layers."""
    return [
        module.gate.e_score_correction_bias.data
        for module in model.modules()
        if isinstance(module, MoE)
    ]


def update_(model: Model, loads: Float[Tensor, "layers E"], rate: float) -> None:
    """Lower the bias of experts chosen more than the mean, raise the others, centre."""
    for bias, load in zip(biases(model), loads, strict=True):
        bias.add_(torch.sign(load.mean() - load), alpha=rate)
        bias.sub_(bias.mean())


def imbalance(loads: Float[Tensor, "layers E"]) -> float:
    """Return the largest load over the mean load, worst layer."""
    return float((loads.amax(-1) / loads.mean(-1)).max())
