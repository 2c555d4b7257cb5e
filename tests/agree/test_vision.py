"""MoonViT and its projector against the spec, both attentions, with gradients."""

import pytest
import torch
from readings import agree, models, tensor  # noqa: F401

from k3.spec import vision as spec

# In float64 the running tower's norms take the step of float64.
EPS = 2.0**-52


def tower(attention):
    return models.random(models.config(vision=attention))


@pytest.mark.parametrize("attention", ["joint", "divided"])
@pytest.mark.parametrize("grids", [[(1, 2, 6)], [(3, 4, 2), (1, 8, 8)]], ids=str)
def test_features_and_gradients(attention, grids):
    running = tower(attention)
    vit = running.config.vision
    count = sum(t * h * w for t, h, w in grids)
    patches = torch.randn(count, 3, vit.patch_size, vit.patch_size)
    fast = running.encode_images(patches, torch.tensor(grids))
    parameters = models.leaves(running)
    weights, rows, start = models.by_name(parameters), [], 0
    for grid in grids:
        stop = start + grid[0] * grid[1] * grid[2]
        rows.append(
            spec.features(
                weights,
                patches[start:stop],
                grid,
                heads=vit.vt_num_attention_heads,
                blocks=vit.vt_num_hidden_layers,
                attention=attention,
                eps=EPS,
            )
        )
        start = stop
    slow = torch.cat(rows)
    agree.close(fast, slow, 1e-9, "features")
    shake = torch.randn_like(slow)
    (fast * shake).sum().backward()
    (slow * shake).sum().backward()
    for name, p in running.named_parameters():
        if name.startswith(("vision_tower", "mm_projector")):
            agree.close(p.grad, parameters[name].grad, 1e-8, name)
