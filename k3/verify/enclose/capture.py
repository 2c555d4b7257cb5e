"""The modules of a run with the inputs that the machine gave them, and what they made.

A retrieval over depth is no module of the model: Retrieval makes it one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from k3.model import Model
from k3.model.attn_res import Depth
from k3.verify.enclose.ball import mapped


@dataclass(slots=True)
class Call:
    """One call of a module: copies of its arguments before, of all it made after."""

    name: str
    program: Any
    args: tuple[Any, ...]
    got: dict[str, Tensor] = field(default_factory=dict)


class Retrieval(nn.Module):
    """Eq. 8-9 as a sublayer does it: sources [B T D] to its input before the norm."""

    def __init__(self, norm: Any, proj: Any, eps: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.norm, self.proj, self.eps, self.dtype = norm, proj, eps, dtype

    def forward(self, sources: list[Tensor], prefix: Tensor | None) -> Tensor:
        """Complete the sources one by one, then retrieve beside the running sum."""
        depth = Depth(prefix=None, eps=self.eps)
        for source in sources:
            depth.prefix = source
            depth.commit()
        depth.prefix = prefix
        return depth.retrieve(self.norm, self.proj, self.dtype)


def copied(x: Any) -> Any:
    """Lists, dicts and dataclasses of tensors, all copied."""
    return mapped(x, lambda t: t.detach().clone())


def results(out: Any, args: Any) -> dict[str, Any]:
    """What a call made, by name: its output, and the tensors of caches that it filled.

    A cache is any dataclass among the arguments; integers are left out.
    """
    found: dict[str, Any] = {}

    def visit(name: str, x: Any) -> None:
        if isinstance(x, np.ndarray) or (
            isinstance(x, Tensor) and x.is_floating_point()
        ):
            found[name] = x
        elif isinstance(x, dict):
            for key, value in x.items():
                visit(f"{name}.{key}", value)
        elif isinstance(x, list | tuple):
            for i, value in enumerate(x):
                visit(f"{name}[{i}]", value)

    visit("out", out)
    for arg in args:
        for key in getattr(arg, "__dataclass_fields__", ()):
            visit(key, getattr(arg, key))
    return found


@contextmanager
def calls(model: Model) -> Iterator[list[Call]]:
    """Every call of a module of the text decoder while this lasts, in order."""
    made: list[Call] = []
    text: Any = model.language_model
    handles, named = [], {}
    for i, layer in enumerate(text.model.layers[: text.model.num_layers]):
        kind = "block_sparse_moe" if layer.sparse else "mlp"
        for name in ("input_layernorm", "self_attn", "post_attention_layernorm", kind):
            handles += _watch(getattr(layer, name), f"layers.{i}.{name}", made)
        for name in ("self_attention_res", "mlp_res"):
            named[id(getattr(layer, f"{name}_norm"))] = f"layers.{i}.{name}"
    named[id(text.model.output_attn_res_norm)] = "output_attn_res"
    handles += _watch(text.model.norm, "norm", made)
    handles += _watch(text.lm_head, "lm_head", made)
    before = Depth.retrieve
    Depth.retrieve = _watched(before, named, made)  # type: ignore[method-assign]
    try:
        yield made
    finally:
        Depth.retrieve = before  # type: ignore[method-assign]
        for handle in handles:
            handle.remove()


def _watch(module: nn.Module, name: str, made: list[Call]) -> list[Any]:
    def before(_: Any, args: Any) -> None:
        # A sparse layer is also given the taps and its name.
        kept = args[:1] if name.endswith("block_sparse_moe") else args
        made.append(Call(name, module, copied(kept)))

    def after(_: Any, args: Any, out: Any) -> None:
        made[-1].got = copied(results(out, args))

    return [
        module.register_forward_pre_hook(before),
        module.register_forward_hook(after),
    ]


def _watched(original: Any, named: dict[int, str], made: list[Call]) -> Any:
    def retrieve(self: Depth, norm: Any, proj: Any, dtype: torch.dtype) -> Tensor:
        if self.blocks is None or id(norm) not in named:
            return original(self, norm, proj, dtype)
        args = copied((list(self.blocks.unbind(-2)), self.prefix))
        call = Call(named[id(norm)], Retrieval(norm, proj, self.eps, dtype), args)
        out: Tensor = original(self, norm, proj, dtype)
        call.got = {"out": out.clone()}
        made.append(call)
        return out

    return retrieve
