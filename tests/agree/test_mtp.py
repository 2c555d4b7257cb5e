import torch
from readings import agree, models, tensor  # noqa: F401

from k3.spec import mtp as spec
from k3.spec.weights import under


def test_mtp_layer():
    running = models.random(models.config(num_nextn_predict_layers=1))
    layer = running.language_model.model.layers[5]
    ids, hidden = torch.tensor([[3, 1, 4, 1, 5]]), torch.randn(1, 5, 7)
    parameters = models.leaves(running)
    weights = under(models.by_name(parameters), "model.layers.5.")
    slow = spec.sequence(weights, running.config.text, ids[0].tolist(), hidden[0])
    fast = layer(ids, hidden)[0]
    agree.close(fast, slow, 1e-9)
    shake = torch.randn_like(slow)
    (fast * shake).sum().backward()
    (slow * shake).sum().backward()
    for name, p in layer.named_parameters():
        other = parameters[f"language_model.model.layers.5.{name}"].grad
        if p.grad is not None and other is not None:
            agree.close(p.grad, other, 1e-8, name)
