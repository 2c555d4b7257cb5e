"""Stable LatentMoE: fp32 router, experts in a latent space, fused shared experts."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from k3.config import TextConfig
from k3.kernels import moe
from k3.model import stored
from k3.model.experts import Experts
from k3.model.fp32 import KeepsFloat32, at_least_float32
from k3.model.linear import RMSNorm, linear, project
from k3.model.mlp import MLP
from k3.model.taps import Taps, record

Choose = Callable[[Tensor, Tensor, int, float], tuple[Tensor, Tensor]]


class Gate(KeepsFloat32):
    """The router's weight, and the bias that only takes part in the choice."""

    fp32 = ("e_score_correction_bias",)

    def __init__(self, config: TextConfig, dtype: torch.dtype) -> None:
        super().__init__()
        shape = (config.num_experts, config.hidden_size)
        self.weight = nn.Parameter(torch.empty(shape, dtype=dtype))
        bias = torch.zeros(config.num_experts, dtype=at_least_float32(dtype))
        self.e_score_correction_bias = nn.Parameter(bias, requires_grad=False)


class MoE(nn.Module):
    """Eq. 11: shared(x) + up(norm(sum of weighted latent experts(down(x)))).

    `dispatch(z, index, weights, expert)` sums the chosen experts; another one may
    be set to run them elsewhere. `choose(scores, bias, k, scaling)` may be set to
    take experts that were chosen before; without it the router chooses.
    """

    def __init__(self, config: TextConfig, dtype: torch.dtype, experts: str) -> None:
        super().__init__()
        D, L = config.hidden_size, config.routed_expert_hidden_size
        self.k = config.num_experts_per_token
        self.scaling = float(config.routed_scaling_factor)
        self.gate = Gate(config, dtype)
        self.experts = Experts(config, dtype, experts)
        self.routed_expert_down_proj = linear(D, L, dtype)
        self.routed_expert_norm = RMSNorm(L, float(config.rms_norm_eps), dtype)
        self.routed_expert_up_proj = linear(L, D, dtype)
        shared = config.num_shared_experts * config.moe_intermediate_size
        self.shared_experts = MLP(config, shared, dtype)
        self.dispatch = moe.combine
        self.choose: Choose | None = None

    def forward(
        self, x: Float[Tensor, "B T D"], taps: Taps | None = None, name: str = ""
    ) -> Float[Tensor, "B T D"]:
        """Route every token to its experts and add the shared ones."""
        rows = x.flatten(0, 1)
        bias = self.gate.e_score_correction_bias
        scores = moe.scores(rows, stored.widened(self.gate.weight, rows))
        choose = self.choose or moe.choose
        index, weights = choose(scores, bias, self.k, self.scaling)
        record(taps, f"{name}.scores", scores)
        record(taps, f"{name}.index", index)
        record(taps, f"{name}.weights", weights)
        (z,) = project(rows, self.routed_expert_down_proj)
        mixed = self._mix(z, index, weights).to(x.dtype)
        (routed,) = project(self.routed_expert_norm(mixed), self.routed_expert_up_proj)
        return routed.view(x.shape) + self.shared_experts(x)

    def _mix(
        self,
        z: Float[Tensor, "T L"],
        index: Int[Tensor, "T k"],
        weights: Float[Tensor, "T k"],
    ) -> Float[Tensor, "T L"]:
        """Sum the chosen experts: by one kernel where it fits, else by `dispatch`."""
        if self.dispatch is moe.combine:
            mixed = self.experts.grouped(z, index, weights)
            if mixed is not None:
                return mixed
        return self.dispatch(z, index, weights, self.experts.for_pass())
