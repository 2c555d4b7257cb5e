"""Matrices held as a checkpoint stores them: bf16 under a wider trunk.

Widening bf16 is exact, so what is computed is what widened weights give. They are read
in half of the bytes, and there is nothing in them to train.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from k3 import errors

FILES = torch.bfloat16
"""What files hold matrices in; MXFP4 decodes into it exactly too."""


class StoredLinear(nn.Linear):
    """A projection without bias whose weight is widened where it is used."""

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B F"]:
        """Return x W^T in the dtype of x."""
        return F.linear(x, widened(self.weight, x))


class StoredEmbedding(nn.Embedding):
    """Rows that are widened to `trunk`, the dtype of what reads them."""

    trunk: torch.dtype

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Follow a cast of the model."""
        self.trunk = fn(torch.empty(0, dtype=self.trunk)).dtype
        return super()._apply(fn, recurse)

    def forward(self, ids: Int[Tensor, "*B"]) -> Float[Tensor, "*B D"]:
        """Return the rows of ids."""
        return super().forward(ids).to(self.trunk)


def widened(
    weight: Float[Tensor, "*rows D"], x: Float[Tensor, "..."]
) -> Float[Tensor, "*rows D"]:
    """Return a weight as wide as x, itself where it is no narrower."""
    narrower = weight.dtype.itemsize < x.dtype.itemsize
    return weight.to(x.dtype) if narrower else weight


def linear(plain: nn.Linear) -> StoredLinear:
    """Return what stands for a Linear, its weight not written yet."""
    sizes, device = (plain.in_features, plain.out_features), plain.weight.device
    return StoredLinear(*sizes, bias=False, device=device, dtype=FILES)


def embedding(plain: nn.Embedding) -> StoredEmbedding:
    """Return what stands for an Embedding, its rows not written yet."""
    made = StoredEmbedding(
        plain.num_embeddings,
        plain.embedding_dim,
        padding_idx=plain.padding_idx,
        device=plain.weight.device,
        dtype=FILES,
    )
    made.trunk = plain.weight.dtype
    return made


def names(model: nn.Module) -> Iterator[str]:
    """Yield the matrices of a model that are narrower than its trunk."""
    trunk = [m.trunk for m in model.modules() if isinstance(m, StoredEmbedding)]
    for name, parameter in model.named_parameters():
        if trunk and parameter.dtype.itemsize < trunk[0].itemsize:
            yield name


def refuse(model: nn.Module, what: str) -> None:
    """Raise RequestError where `what` would need matrices that can be changed."""
    name = next(names(model), None)
    if name is not None:
        raise errors.RequestError(
            f"{what} needs weights in the trunk's dtype: got {name} in bfloat16, as it "
            "is stored; load the model with weights='widened'"
        )


def refuse_rounding(model: nn.Module, given: Mapping[str, Tensor]) -> None:
    """Raise RequestError where taking these values would round one of them."""
    if next(names(model), None) is None:
        return
    # Experts are given one by one, under names that their stacks do not have.
    for name, own in model.state_dict().items():
        x = given.get(name) if own.dtype == FILES else None
        if x is not None and not torch.equal(x.to(FILES).to(x.dtype), x):
            raise errors.RequestError(
                f"{name} is held in bfloat16, as it is stored: got values that this "
                "would round; load the model with weights='widened'"
            )
