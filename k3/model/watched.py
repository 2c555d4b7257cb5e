"""What a prepared native step relies on: modules, weights and where they lie."""

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from k3.kernels import choose, moe
from k3.kernels.native import fetch, marks
from k3.model.decoder import LanguageModel, Layer
from k3.model.experts import Experts
from k3.model.kda import KDA, Conv1d, HeadNorm
from k3.model.linear import RMSNorm
from k3.model.mla import MLA
from k3.model.mlp import MLP
from k3.model.moe import Gate, MoE
from k3.model.stored import FILES, StoredEmbedding, StoredLinear

FLOAT = torch.float32
FLOAT32 = ("A_log", "dt_bias", "e_score_correction_bias")
FLOAT32_MODULES = (Conv1d, HeadNorm)
KINDS = {
    *(nn.Linear, nn.Embedding, RMSNorm, HeadNorm, Conv1d),
    *(Layer, KDA, MLA, MLP, MoE, Gate, Experts),
    *(StoredLinear, StoredEmbedding),
}
MATRICES = (nn.Linear, nn.Embedding, Gate, Experts)
UNSTORED = (nn.Linear, nn.Embedding)
"""Modules that refuse a weight narrower than what they multiply."""

TRUNKS = ((FLOAT, FLOAT), (FILES, FILES), (FLOAT, FILES))
"""Dtypes of the trunk and of its matrices that the native step knows."""

QUERY = "res_proj"
"""How depth queries are called: they are read with the norms, not as matrices."""


class Watched:
    """Modules, weights and where the weights lie, to be compared before each step."""

    def __init__(self, text: LanguageModel) -> None:
        parts = list(_parts(text))
        above = (text, text.model, text.model.layers)
        pairs = [pair for module in (*above, *parts) for pair in _held(module)]
        self._dicts = [held for held, _ in pairs]
        self._names = [name for _, name in pairs]
        self._values = self._now()
        self._hooks = [
            hooks for m in parts for hooks in (m._forward_hooks, m._forward_pre_hooks)
        ]
        self.weights = [x for x in self._values if isinstance(x, Tensor)]
        self._at = list(map(Tensor.data_ptr, self.weights))
        self.trunk = text.model.norm.weight.dtype
        self.matrices = text.lm_head.weight.dtype
        queries = {m for name, m in text.named_modules() if name.endswith(QUERY)}
        self.plain = all(
            self._reads(module, name, x, module in queries)
            for module in parts
            for held in (module._parameters, module._buffers)
            for name, x in held.items()
            if x is not None
        )
        self.plain = self.plain and not any(self._hooks) and all(map(_known, parts))
        seen = [*self._dicts, *self._hooks] if self.plain else []
        self._objects = fetch.Objects(seen, self.weights if self.plain else [])
        self._mark()

    def unchanged(self) -> bool:
        """Whether all is as it was: nothing replaced, moved or hooked."""
        if self._marks.stand():
            return True
        self._objects.fetch()
        same = (
            all(map(operator.is_, self._now(), self._values))
            and list(map(Tensor.data_ptr, self.weights)) == self._at
            and not any(self._hooks)
        )
        if same:
            self._mark()
        return same

    def _reads(self, module: nn.Module, name: str, x: Tensor, query: bool) -> bool:
        """Whether a weight lies in memory as the native step reads it."""
        wide = name in FLOAT32 or isinstance(module, FLOAT32_MODULES)
        matrix = isinstance(module, MATRICES) and not query
        wanted = self.matrices if matrix else self.trunk
        wanted = torch.float32 if wide else wanted
        wanted = torch.uint8 if name.endswith(("_packed", "_scale")) else wanted
        narrow = self.matrices != self.trunk
        widens = not narrow or not matrix or type(module) not in UNSTORED
        return (
            type(x) in choose.PLAIN
            and (self.trunk, self.matrices) in TRUNKS
            and x.dtype == wanted
            and widens
            and x.is_cpu
            and x.is_contiguous()
        )

    def _mark(self) -> None:
        """Remember how all that matters looks now."""
        seen = [*self._dicts, *self._hooks] if self.plain else []
        self._marks = marks.Marks(seen, self.weights if self.plain else [])

    def _now(self) -> list[Any]:
        return list(map(dict.get, self._dicts, self._names))


def _parts(text: LanguageModel) -> Iterator[nn.Module]:
    """The modules whose code the native step stands for."""
    last = text.model
    yield from text.lm_head.modules()
    for name, module in last.named_children():
        if name != "layers":
            yield from module.modules()
    for layer in last.layers[: last.num_layers]:
        yield from layer.modules()


def _held(module: nn.Module) -> Iterator[tuple[dict[str, Any], str]]:
    """The dicts and names under which a module holds its parts."""
    for held in (module._modules, module._parameters, module._buffers):
        for name in held:
            yield held, name
    if isinstance(module, MoE):
        yield vars(module), "dispatch"
    if isinstance(module, Experts):
        yield vars(module), "activations"


def _known(module: nn.Module) -> bool:
    """Whether the native step does what this module does."""
    exact = type(module) in KINDS and "forward" not in vars(module)
    if type(module) is Experts and module.activations != "plain":
        return False
    if type(module) is not MoE:
        return exact
    return exact and module.dispatch is moe.combine and module.choose is None
