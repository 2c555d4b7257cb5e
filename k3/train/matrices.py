"""Which optimizer moves which parameter, and into which matrices a parameter is cut."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from k3.model import Model
from k3.model.experts import Experts
from k3.model.kda import KDA
from k3.model.mla import MLA
from k3.model.vision import Block

HEADS = ("lm_head", "shared_head.head")
"""Vocabulary heads: matrices, but AdamW's, as the embeddings are."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows of a stored matrix: `groups` times one matrix of each of `sizes` rows.

    A stack [E R C] is cut in each of its matrices.
    """

    sizes: tuple[int, ...]
    groups: int = 1

    def views(self, W: Float[Tensor, "*E rows C"]) -> list[Float[Tensor, "n R C"]]:
        """Return views of the matrices, one stack for each of `sizes`."""
        rows, columns = W.shape[-2:]
        assert rows == self.groups * sum(self.sizes), (rows, self)
        whole = W.view(-1, rows // self.groups, columns)
        return list(whole.split(self.sizes, 1))

    def num_matrices(self, shape: tuple[int, ...]) -> int:
        """How many matrices a parameter of this shape is cut into."""
        stack = shape[0] if len(shape) > 2 else 1
        return stack * self.groups * len(self.sizes)


def cuts(model: Model) -> dict[str, Cut]:
    """Return the parameters that Muon moves, each with its matrices.

    Per-Head Muon: Q, K and V are cut by heads, other matrices are whole, an expert is
    a matrix. The rest is AdamW's: embeddings, heads, norms, biases, convolutions,
    decays, the router, and single rows such as the queries over depth.
    """
    found: dict[str, Cut] = {}
    for path, module in model.named_modules():
        if isinstance(module, nn.Linear) and not path.endswith(HEADS):
            if min(module.weight.shape) > 1:
                found[f"{path}.weight"] = Cut((len(module.weight),))
        elif isinstance(module, Experts) and not module.packed:
            for leaf in ("w1", "w2", "w3"):
                found[f"{path}.{leaf}"] = Cut((getattr(module, leaf).shape[-2],))
    for path, module in model.named_modules():
        found |= {f"{path}.{leaf}.weight": c for leaf, c in _by_heads(module).items()}
    return {n: c for n, c in found.items() if model.get_parameter(n).requires_grad}


def _by_heads(module: nn.Module) -> dict[str, Cut]:
    """How the projections of a mixer are cut; {} for any other module.

    A query of MLA is one matrix: its two parts meet in one dot product, and no
    position is rotated into either. Keys and values lie side by side in kv_b_proj,
    and in kv_a_proj_with_mqa the latent and the key that all heads share.
    """
    if isinstance(module, KDA):
        keys, values = Cut((module.K,), module.heads), Cut((module.V,), module.heads)
        return {"q_proj": keys, "k_proj": keys, "v_proj": values}
    if isinstance(module, MLA):
        return {
            "q_b_proj": Cut((module.nope + module.rope,), module.heads),
            "kv_b_proj": Cut((module.nope, module.V), module.heads),
            "kv_a_proj_with_mqa": Cut((module.latent, module.rope)),
        }
    if isinstance(module, Block):
        size = len(module.wqkv.weight) // (3 * module.heads)
        names = ("wqkv", "wqkv_time") if module.divided else ("wqkv",)
        return dict.fromkeys(names, Cut((size,), 3 * module.heads))
    return {}


def table(model: Model) -> dict[str, str]:
    """Return for every trained parameter what moves it, in words to be shown."""
    muon = cuts(model)
    lines = {}
    for name, p in model.named_parameters():
        if name in muon:
            cut = muon[name]
            shapes = " and ".join(f"{size} by {p.shape[-1]}" for size in cut.sizes)
            lines[name] = f"muon: {cut.num_matrices(p.shape)} of {shapes}"
        elif p.requires_grad:
            lines[name] = "adamw"
    return lines
