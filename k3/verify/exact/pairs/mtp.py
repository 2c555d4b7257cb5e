"""The multi-token-prediction layer over a sequence, on given trunk values."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from k3.config import TextConfig
from k3.spec import mtp as spec
from k3.verify.exact.pairs.layout import checkpoint_names
from k3.verify.exact.pairs.pair import Pair, Shadows


class Predictor(nn.Module):
    """A layer called on fixed ids and drawn trunk values."""

    def __init__(self, layer: nn.Module, ids: Sequence[int]) -> None:
        super().__init__()
        self.layer, self.ids = layer, ids

    def forward(self, hidden: Tensor) -> Any:
        """Logits [T W]."""
        return self.layer(torch.tensor([self.ids]), hidden[None])[0]


def layer(module: nn.Module, config: TextConfig, ids: Sequence[int]) -> Pair:
    """model.mtp.MTP against spec.mtp.sequence."""

    def reference(weights: Mapping[str, Any], hidden: Any) -> Any:
        own = {n.removeprefix("layer."): w for n, w in weights.items()}
        return spec.sequence(checkpoint_names(own), config, ids, hidden)

    given = {"hidden": Shadows(12).normal(len(ids), config.hidden_size)}
    return Pair("MTP layer", Predictor(module, ids), reference, given)
