"""Routed experts under the names of the other storage: packed or dense, one by one."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor

from k3.checkpoint.names import Table
from k3.checkpoint.source import DTYPES
from k3.checkpoint.survey import EXPERT
from k3.config import K3Config, published
from k3.errors import CheckpointError, RequestError, ShapeError
from k3.kernels import mx

STORAGE = ("packed", "dense")


class Recode:
    """`value(name)` in the storage and dtypes of `table`, from tensors held otherwise.

    Packing rounds to MXFP4; what was unpacked from MXFP4 packs again without loss.
    Dense values are rounded to the dtype of the table.
    """

    def __init__(
        self, get: Callable[[str], Tensor], table: Table, held: str, wanted: str
    ) -> None:
        self.get, self.table = get, table
        self.held, self.wanted = held, wanted
        self._last: tuple[str, tuple[Tensor, Tensor]] | None = None

    def __call__(self, name: str) -> Tensor:
        """Return one tensor."""
        if self.held == self.wanted or not EXPERT.fullmatch(name):
            return self.get(name).to(DTYPES[self.table[name][1]])
        if self.wanted == "dense":
            packed, scale = self.get(f"{name}_packed"), self.get(f"{name}_scale")
            return mx.decode(packed, scale, torch.bfloat16)
        weight, _, part = name.rpartition("_")
        # The two halves of one matrix are asked for one after the other.
        if self._last is None or self._last[0] != weight:
            self._last = weight, self._encode(weight)
        return self._last[1][part == "scale"]

    def _encode(self, weight: str) -> tuple[Tensor, Tensor]:
        try:
            return mx.encode(self.get(weight))
        except ShapeError as error:
            raise CheckpointError(f"{weight} cannot be packed: {error}") from None


def check(experts: str | None) -> None:
    """Refuse an unknown storage of experts."""
    if experts is not None and experts not in STORAGE:
        raise RequestError(
            f"experts must be one of {STORAGE}, or None to keep them: got {experts!r}"
        )


def follow(config: K3Config, table: Table, experts: str) -> K3Config:
    """Return the config of the same model with its experts packed or dense.

    `quantization_config` goes when nothing is packed, and comes as the release writes
    it when something is; one that is there and right stays as it is.
    """
    if not any(EXPERT.match(name) for name in table):
        return config
    values = config.to_dict()
    text = values if config.bare else values["text_config"]
    if experts == "dense":
        text.pop("quantization_config", None)
        values.pop("quantization_config", None)
    elif config.text.quantization_config is None:
        text["quantization_config"] = copy.deepcopy(published.QUANTIZATION)
    else:
        return config
    return K3Config.from_dict(values)
