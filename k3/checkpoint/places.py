"""Where a checkpoint's tensor lives in a model, and how the model's memory comes."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from k3.checkpoint.survey import EXPERT
from k3.config import K3Config
from k3.model import stored
from k3.model.experts import Experts
from k3.model.kda import KDA
from k3.model.model import Model
from k3.model.moe import Gate

PARTS = ("w1_packed", "w1_scale", "w2_packed", "w2_scale", "w3_packed", "w3_scale")


def place(model: Model, name: str) -> Tensor:
    """Return the model's tensor of a checkpoint name; one matrix of a stack."""
    path = in_model(model.config, name)
    expert = EXPERT.fullmatch(path)
    if expert is None:
        parameter: Tensor = model.get_parameter(path)
        return parameter.detach()
    experts, number, matrix, part = expert.groups()
    module = model.get_submodule(experts)
    stack = getattr(module, matrix + (part or ""))
    matrix_of: Tensor = stack[int(number)]
    return matrix_of.detach()


def kda_of(model: Model, name: str) -> KDA:
    """Return the module that owns an A_log."""
    owner = in_model(model.config, name).rpartition(".")[0]
    module = model.get_submodule(owner)
    assert isinstance(module, KDA), owner
    return module


def in_model(config: K3Config, name: str) -> str:
    """Return the model's name of a tensor: a bare text checkpoint has no prefix."""
    return f"language_model.{name}" if config.bare else name


def expert_storage(model: Model) -> str:
    """Return "packed" or "dense", as the model holds its routed experts."""
    experts = (m for m in model.modules() if isinstance(m, Experts))
    return "packed" if any(m.packed for m in experts) else "dense"


class Unfilled(TorchFunctionMode):
    """Modules made inside skip the random start of torch.nn: a file will follow.

    On "meta" that start computes nothing, yet imports 80 MB of symbolic shapes.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Return the tensor of a torch.nn.init call as it is."""
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def hold_stored(model: Model) -> None:
    """Let a model on "meta" hold its matrices in the dtype of the files.

    Depth queries stay in the trunk's: they are vectors, and norms fold into them.
    """
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear and not name.endswith("res_proj"):
                setattr(parent, name, stored.linear(child))
            elif type(child) is nn.Embedding:
                setattr(parent, name, stored.embedding(child))
        if isinstance(parent, Gate | Experts):
            for name, parameter in parent._parameters.items():
                if parameter is not None and parameter.dim() > 1:
                    narrow = torch.empty(
                        parameter.shape, dtype=stored.FILES, device=parameter.device
                    )
                    parent._parameters[name] = nn.Parameter(narrow)
    model.requires_grad_(False)


def materialize(model: Model, device: torch.device) -> None:
    """Give every parameter and buffer of a model on "meta" its memory, unwritten."""
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                empty = unwritten(parameter, device)
                module._parameters[name] = nn.Parameter(
                    empty, requires_grad=parameter.requires_grad
                )
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = unwritten(buffer, device)


def unwritten(like: Tensor, device: torch.device) -> Tensor:
    """Return memory for a tensor that is on "meta"; empty_like imports much there."""
    return torch.empty(like.shape, dtype=like.dtype, device=device)


def hold_mapped(model: Model, views: dict[str, Tensor]) -> None:
    """Replace the stacks of packed experts by lists of views of the file."""
    for path, module in model.named_modules():
        if not isinstance(module, Experts):
            continue
        prefix = path.removeprefix("language_model.") if model.config.bare else path
        for attribute in PARTS:
            matrix, part = attribute.split("_")
            del module._buffers[attribute]
            stack = [
                views[f"{prefix}.{number}.{matrix}.weight_{part}"]
                for number in range(module.num_experts)
            ]
            setattr(module, attribute, stack)
