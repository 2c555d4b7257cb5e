"""Low-rank adapters on linear layers: y = W x + (alpha / r) B A x, B zero at first.

Source: Hu et al. 2021 (LoRA); the layout of files is peft's.
"""

import math
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from k3.errors import RequestError
from k3.model import Model, linear, stored
from k3.model.experts import Experts
from k3.model.fp32 import KeepsFloat32

ALL = "all-linear"
"""Every linear layer but the vocabulary heads, as peft calls them."""
HEADS = ("lm_head", "shared_head.head")


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Which layers are adapted, and how.

    `targets` is "all-linear", a regular expression that a whole path must match, or
    the last names of paths.
    """

    targets: str | tuple[str, ...] = ALL
    rank: int = 8
    alpha: float = 16.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rank < 1 or not 0 < self.alpha < math.inf:
            raise RequestError(
                "an adapter has a rank of at least 1 and an alpha above 0: got "
                f"{self.rank} and {self.alpha}; change them"
            )

    def matches(self, path: str) -> bool:
        """Whether the path of a module is one of `targets`."""
        if self.targets == ALL:
            return not path.endswith(HEADS)
        if isinstance(self.targets, str):
            return bool(re.fullmatch(self.targets, path))
        return any(path == t or path.endswith(f".{t}") for t in self.targets)


class Adapted(KeepsFloat32):
    """A frozen linear layer and its adapter; `weight` is that of both."""

    fp32 = ("lora_A", "lora_B")

    def __init__(self, base: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), scale
        out, width = base.weight.shape
        like = base.weight.detach()
        self.lora_A = nn.Parameter(like.new_zeros(rank, width, dtype=torch.float32))
        self.lora_B = nn.Parameter(like.new_zeros(out, rank, dtype=torch.float32))

    def forward(self, x: Float[Tensor, "*B C"]) -> Float[Tensor, "*B D"]:
        """The base's product plus the adapter's, which is taken in fp32 or wider."""
        wide = x.to(torch.promote_types(x.dtype, self.lora_A.dtype))
        added = F.linear(F.linear(wide, self.lora_A), self.lora_B) * self.scale
        (found,) = linear.project(x, self.base)
        return (found + added).to(found.dtype)

    @property
    def weight(self) -> Float[Tensor, "D C"]:
        """Base and adapter as one matrix, for code that reads the weight itself."""
        update = (self.lora_B @ self.lora_A) * self.scale
        return (self.base.weight + update).to(self.base.weight.dtype)


def attach(model: Model, options: Options) -> list[str]:
    """Adapt the layers of a model, freeze all else, return the paths.

    The model computes what it did before: B is zero. A is drawn from the seed.
    Raises: RequestError where no layer, or one that cannot be adapted, is meant.
    """
    stored.refuse(model, "an adapter")
    if adapted(model):
        raise RequestError("a model has one adapter: got a second; merge the first")
    paths = targets(model, options)
    draw = torch.Generator().manual_seed(options.seed)
    model.requires_grad_(False)
    for path in paths:
        owner, _, leaf = path.rpartition(".")
        base = model.get_submodule(path)
        assert isinstance(base, nn.Linear)
        layer = Adapted(base, options.rank, options.alpha / options.rank)
        # As peft draws it: uniform within the square root of 1 / inputs.
        bound = base.in_features**-0.5
        values = torch.rand(layer.lora_A.shape, generator=draw) * 2 - 1
        layer.lora_A.data.copy_(values * bound)
        setattr(model.get_submodule(owner), leaf, layer)
    model.weight_version = secrets.randbits(62)
    return paths


def targets(model: Model, options: Options) -> list[str]:
    """The paths of the linear layers that are meant.

    Raises: RequestError.
    """
    for path, module in model.named_modules():
        _refuse_experts(path, module, options)
    found = [path for path in _linear(model) if options.matches(path)]
    if not found:
        raise RequestError(
            f"an adapter needs layers: {options.targets!r} matches no linear layer; "
            f"they end in {', '.join(_leaves(model))}"
        )
    return found


def adapted(model: Model) -> dict[str, Adapted]:
    """The adapted layers of a model by their paths."""
    return {p: m for p, m in model.named_modules() if isinstance(m, Adapted)}


@torch.no_grad()
def merge_(model: Model) -> None:
    """Add the adapters into their layers, which are plain again; all is trainable."""
    for path, layer in adapted(model).items():
        owner, _, leaf = path.rpartition(".")
        layer.base.weight.copy_(layer.weight)
        setattr(model.get_submodule(owner), leaf, layer.base)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.endswith("e_score_correction_bias"))
    model.weight_version = secrets.randbits(62)


def _refuse_experts(path: str, module: nn.Module, options: Options) -> None:
    """Routed experts are stacks, in MXFP4 where they are packed: no linear layers."""
    if not isinstance(module, Experts) or options.targets == ALL:
        return
    names: Sequence[str] = [path, *(f"{path}.{leaf}" for leaf in ("w1", "w2", "w3"))]
    if any(options.matches(name) for name in names):
        kind = "packed in MXFP4" if module.packed else "stacked in one tensor"
        raise RequestError(
            f"an adapter goes on linear layers: {path} holds routed experts, {kind}; "
            "name attention, shared experts or latent projections instead"
        )


def _linear(model: Model) -> list[str]:
    """Paths of linear layers; a single row, such as a query over depth, is none."""
    return [
        path
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear) and min(module.weight.shape) > 1
    ]


def _leaves(model: Model) -> list[str]:
    return sorted({path.rpartition(".")[2] for path in _linear(model)})
