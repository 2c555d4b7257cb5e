"""A small model of odd sizes, with its parameters under the names the spec reads."""

import json

import torch
from readings import released

from k3.config import K3Config
from k3.model import Model

SIZES = {
    "num_hidden_layers": 5,
    "moe_layer_freq": 2,
    "attn_res_block_size": 3,
    "hidden_size": 7,
    "intermediate_size": 9,
    "num_experts": 5,
    "num_experts_per_token": 2,
    "moe_intermediate_size": 32,
    "routed_expert_hidden_size": 32,
}
LINEAR = {"kda_layers": [1, 2, 3], "full_attn_layers": [4, 5], "num_heads": 3}
LINEAR |= {"head_dim": 5}


def config(vision=None, **changes):
    """Five layers, KDA and MLA with dense and sparse ones each; or the tower."""
    data = json.loads((released.PLACE / "config.json").read_text())
    if vision is None:
        del data["vision_config"]
        data["text_config"] |= SIZES | changes
        data["text_config"]["linear_attn_config"] |= LINEAR
    else:
        data["vision_config"]["attention"] = vision
    return K3Config.from_dict(data)


def random(made, seed=1):
    """A float64 model whose every parameter, norms included, is random."""
    model = Model(made, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(generator=generator)
            p.mul_(0.5)
            if "norm" in name:
                p.add_(1)
    return model


def leaves(model):
    """Fresh copies of the parameters, to ask the spec for their gradients."""
    return {
        name: p.detach().clone().requires_grad_()
        for name, p in model.named_parameters()
    }


def by_name(parameters):
    """The checkpoint's names without the text prefix; stacked experts taken apart."""
    out = {}
    for name, p in parameters.items():
        name = name.removeprefix("language_model.")
        stem, last = name.rsplit(".", 1)
        if stem.endswith(".experts"):
            out |= {f"{stem}.{e}.{last}.weight": p[e] for e in range(len(p))}
        else:
            out[name] = p
    return out
