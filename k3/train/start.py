"""How a small model starts, on top of the release's initialization."""

import torch

from k3.model import Model
from k3.model.kda import KDA

EMBEDDING_STD = 0.5
OUTPUTS = (
    "lm_head.weight",
    "o_proj.weight",
    ".down_proj.weight",
    "routed_expert_up_proj.weight",
)
"""What begins at zero: the head, and the last matrix of every sublayer."""


@torch.no_grad()
def from_embedding_(model: Model) -> None:
    """Start as a bigram model: all sources of depth are the embedding or zero.

    With random outputs the quickest way to a lower loss is one vector, the same for
    every token, that drowns them (measured: 250 steps of loss 6.5, all tokens on two
    experts). A_log starts at zero (section 2.1.1), where the gate has a gradient.
    """
    for name, p in model.named_parameters():
        if name.endswith(OUTPUTS):
            p.zero_()
        elif name.endswith("embed_tokens.weight"):
            p.mul_(EMBEDDING_STD / p.std())
    for module in model.modules():
        if isinstance(module, KDA):
            module.A_log.zero_()
