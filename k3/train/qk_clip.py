"""QK-Clip: weights of MLA heads whose largest logit passed a limit are scaled down."""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels import mla
from k3.model import Model
from k3.model.mla import MLA

LIMIT = 100.0
"""K2's tau."""


class QKClip:
    """The largest logits of a step, seen in its forward passes, and what follows.

    KDA needs none: its queries and keys have length one.
    """

    def __init__(self, model: Model, limit: float = LIMIT) -> None:
        self.limit = limit
        self.layers = {
            path: module
            for path, module in model.named_modules()
            if isinstance(module, MLA)
        }
        self._seen: dict[str, list[Tensor]] = {path: [] for path in self.layers}
        for path, module in self.layers.items():
            module.watch = self._watch(path, module.scale)

    def largest(self) -> dict[str, Float[Tensor, " H"]]:
        """Return the largest logits since the last call, by layer; a bound if below."""
        found = {}
        for path, seen in self._seen.items():
            if seen:
                found[path] = torch.stack(seen).amax(0)
                seen.clear()
        return found

    @torch.no_grad()
    def scale_(
        self,
        weights: Mapping[str, Tensor],
        largest: Mapping[str, Tensor],
        first: Mapping[str, int] | None = None,
    ) -> int:
        """Scale heads by gamma = limit / largest; return how many passed the limit.

        As K2: the head's own parts of query and key by sqrt(gamma) each, and of the
        part that meets the shared key the query alone, by gamma. Of weights in shards
        `first` says which row is the first one here.
        """
        clipped = 0
        for path, logits in largest.items():
            gamma = factor(logits, self.limit)
            clipped += int((gamma < 1).sum())
            if bool((gamma < 1).any()):
                for leaf, scale in _rows(self.layers[path], gamma).items():
                    name = f"{path}.{leaf}.weight"
                    W, start = weights[name].data, (first or {}).get(name, 0)
                    W *= scale[start : start + len(W), None]
        return clipped

    def _watch(self, path: str, scale: float) -> Callable[[Tensor, Tensor], None]:
        # Appending is one step under the interpreter lock: threads share the list.
        seen, limit = self._seen[path], self.limit
        return lambda q, k: seen.append(mla.largest_logits(q, k, scale, limit))


def factor(largest: Float[Tensor, " H"], limit: float) -> Float[Tensor, " H"]:
    """min(1, limit / largest). Matches: spec.muon.clip_factor."""
    return torch.where(largest > limit, limit / largest, 1.0)


def _rows(layer: MLA, gamma: Float[Tensor, " H"]) -> dict[str, Float[Tensor, " rows"]]:
    """Return what each row of the projections is multiplied by."""
    own, queries, one = (
        x[:, None] for x in (gamma.sqrt(), gamma, gamma.new_ones(len(gamma)))
    )
    parts = {
        "q_b_proj": (own.expand(-1, layer.nope), queries.expand(-1, layer.rope)),
        "kv_b_proj": (own.expand(-1, layer.nope), one.expand(-1, layer.V)),
    }
    return {leaf: torch.cat(part, 1).flatten() for leaf, part in parts.items()}
