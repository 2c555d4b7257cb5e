"""Fresh parameters: how a model starts before any training."""

import math

import torch
from torch import nn

from k3 import errors
from k3.model.experts import Experts
from k3.model.kda import KDA


def init_(model: nn.Module, std: float, generator: torch.Generator) -> None:
    """Fill all parameters in place.

    Matrices are normal with `std`; norms are one; depth queries are zero, so that
    every retrieval starts as the plain mean of its sources; A_log is the log of a
    uniform draw from [1, 16]; dt_bias inverts softplus at a log-uniform step
    from [0.001, 0.1], as Mamba-2 does.
    """
    for name, p in model.named_parameters():
        if name.endswith("res_proj.weight") or "e_score" in name:
            nn.init.zeros_(p)
        elif p.dim() > 1:
            nn.init.normal_(p, std=std, generator=generator)
    for module in model.modules():
        if isinstance(module, KDA):
            _init_kda(module, generator)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])
        if isinstance(module, Experts) and module.packed:
            raise errors.RequestError(
                "fresh experts are dense: got a model with experts='packed'; build it "
                "with experts='dequantized' and pack on save"
            )


@torch.no_grad()
def _init_kda(layer: KDA, generator: torch.Generator) -> None:
    layer.A_log.uniform_(1, 16, generator=generator).log_()
    low, high = math.log(1e-3), math.log(1e-1)
    step = layer.dt_bias.uniform_(low, high, generator=generator).exp_()
    layer.dt_bias.copy_(step + torch.log(-torch.expm1(-step)))
    for conv in (layer.q_conv1d, layer.k_conv1d, layer.v_conv1d):
        bound = conv.weight.shape[-1] ** -0.5
        conv.weight.uniform_(-bound, bound, generator=generator)
