"""Names of the files and memory of the model: each has exactly one of the other."""

import pytest
import torch

from k3.checkpoint import places
from k3.checkpoint.load import load
from k3.checkpoint.save import save
from k3.checkpoint.survey import table
from k3.config import K3Config
from k3.model import Model


def configs(tiny, small_config) -> dict[str, K3Config]:
    whole = K3Config.load(tiny)
    divided = whole.to_dict()
    divided["vision_config"]["attention"] = "divided"
    return {
        "released": whole,
        "divided": K3Config.from_dict(divided),
        "mtp": small_config(num_nextn_predict_layers=1),
        "bare": small_config(bare=True),
        "dense": small_config(first_k_dense_replace=4),
        "wide values": small_config(linear={"value_head_dim": 12}),
    }


@pytest.mark.parametrize(
    "kind",
    ["released", "divided", "mtp", "bare", "dense", "wide values"],
)
def test_every_name_has_one_place(kind, tiny, small_config):
    config = configs(tiny, small_config)[kind]
    for storage, experts in (("dense", "dequantized"), ("packed", "packed")):
        model = Model(config, device="meta", experts=experts)
        entries = table(config, storage)
        state = model.state_dict()
        assert {places.in_model(config, name) for name in entries} == state.keys()
        for name, (shape, _) in entries.items():
            if name.endswith(".A_log"):
                owner = places.kda_of(model, name)
                assert owner.A_log_stored == shape[0] >= owner.heads
            else:
                assert places.place(model, name).shape == shape, name


def test_mtp_layers_travel(small, tmp_path):
    model = small(num_nextn_predict_layers=1)
    assert "language_model.model.layers.4.eh_proj.weight" in model.state_dict()
    save(model, tmp_path, experts="packed")
    save(load(tmp_path, experts="dequantized"), tmp_path / "dense")
    again = load(tmp_path / "dense")
    for name, tensor in again.state_dict().items():
        if ".experts." not in name:
            assert torch.equal(tensor, model.state_dict()[name]), name


def test_models_are_made_without_a_random_start():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with places.Unfilled():
        layer = torch.nn.Linear(3, 4, bias=False)
        torch.nn.Embedding(5, 3)
    assert torch.equal(torch.get_rng_state(), before)
    assert layer.weight.shape == (4, 3)
