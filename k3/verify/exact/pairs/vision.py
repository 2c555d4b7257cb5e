"""MoonViT-V2 with its projector: patches of pictures and clips to feature rows."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from k3.model import Model
from k3.spec import norm, ops
from k3.spec import vision as spec
from k3.spec.weights import under
from k3.verify.exact import cut
from k3.verify.exact.pairs.decoder import Runs, after
from k3.verify.exact.pairs.layout import by_sequence
from k3.verify.exact.pairs.pair import Pair, Shadows

Grid = tuple[int, int, int]


def features(model: Model, grids: Sequence[Grid]) -> Pair:
    """model.encode_images against spec.vision, item by item."""
    vision = model.config.vision
    assert vision is not None
    counts = [t * h * w for t, h, w in grids]
    size = vision.patch_size

    def forward(m: Model, patches: Tensor) -> Any:
        return m.encode_images(patches, torch.tensor(grids))

    def reference(
        weights: Mapping[str, Any], patches: Any, tap: cut.Tap = cut.keep
    ) -> Any:
        own = {n.removeprefix("model."): w for n, w in weights.items()}
        items = [patches[at] for at in by_sequence(counts)]
        return _rows(own, list(zip(items, grids, strict=True)), model, tap)

    given: dict[str, Any] = {"patches": Shadows(11).normal(sum(counts), 3, size, size)}
    given["weights"] = {
        f"model.{n}": p.detach()
        for n, p in model.named_parameters()
        if not n.startswith("language_model")
    }
    name = f"vision tower on {list(grids)}"
    return Pair(name, Runs(model, forward), reference, given, attach)


def _rows(
    weights: Mapping[str, Any], items: Sequence[Any], model: Model, tap: cut.Tap
) -> Any:
    """spec.vision.features with cut points: all items pass a block before the next."""
    vision, eps = model.config.vision, _eps(model)
    assert vision is not None
    tower = under(weights, "vision_tower.")
    attention = cast(spec.Attention, vision.attention)
    xs = [spec.embed(tower, patches, grid) for patches, grid in items]
    for b in range(vision.vt_num_hidden_layers):
        own = under(tower, f"encoder.blocks.{b}.")
        for i, (_, grid) in enumerate(items):
            y = spec.block(
                own,
                xs[i],
                grid,
                heads=vision.vt_num_attention_heads,
                attention=attention,
                eps=eps,
            )
            xs[i] = tap(f"encoder.blocks.{b}", y)
    scale = tower["encoder.final_layernorm.weight"]
    xs = [tap("encoder", norm.rms_norm(x, scale, eps)) for x in xs]
    merged = [spec.merge(x, g) for x, (_, g) in zip(xs, items, strict=True)]
    own = under(weights, "mm_projector.")
    return ops.concat([spec.project(own, x) for x in merged])


def attach(module: nn.Module, tap: cut.Tap) -> list[Any]:
    """Cut the tower behind every block and behind the encoder."""
    model: Any = module.model
    encoder = model.vision_tower.encoder
    handles = [
        after(block, f"encoder.blocks.{b}", tap)
        for b, block in enumerate(encoder.blocks)
    ]
    return [*handles, after(encoder, "encoder", tap)]


def _eps(model: Model) -> Any:
    """The tower's norms have no eps: torch takes the step of the dtype."""
    return spec.EPS if model.dtype is torch.float32 else torch.finfo(model.dtype).eps
