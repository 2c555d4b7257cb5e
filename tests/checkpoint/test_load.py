"""Loading: whole checkpoints in every mode, and refusals that name everything."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tolerances
import torch
from small import gap

from k3.checkpoint import places
from k3.checkpoint.load import load
from k3.checkpoint.save import save
from k3.config import K3Config
from k3.errors import CheckpointError, RequestError
from k3.kernels import choose

MODES = ["packed", "dequantized", "mmap"]
MOE = "language_model.model.layers.1.block_sparse_moe."
KDA = "language_model.model.layers.1.self_attn."
INDEX = "model.safetensors.index.json"


def shard(number: int) -> str:
    return f"model-0000{number}-of-000003.safetensors"


def poison(monkeypatch):
    """Fill fresh memory with NaN, or bytes that mean NaN."""

    def poisoned(tensor, device):
        value = 255 if tensor.dtype == torch.uint8 else torch.nan
        return torch.full(tensor.shape, value, dtype=tensor.dtype, device=device)

    monkeypatch.setattr(places, "unwritten", poisoned)


@pytest.mark.parametrize("mode", ["packed", "mmap"])
def test_loaded_is_what_the_files_hold(mode, tiny, tensors_of, monkeypatch):
    poison(monkeypatch)
    state = load(tiny, experts=mode).state_dict()
    stored = tensors_of(tiny)
    assert state.keys() == stored.keys()
    for name, tensor in stored.items():
        tensor = tensor[:5] if name.endswith("A_log") else tensor
        assert state[name].dtype == tensor.dtype, name
        assert torch.equal(state[name], tensor), name


@pytest.mark.parametrize("dtype", [None, torch.float32, torch.float64])
def test_dequantized_is_exact(dtype, tiny, tensors_of, monkeypatch):
    poison(monkeypatch)
    state = load(tiny, dtype=dtype, experts="dequantized").state_dict()
    stored = tensors_of(tiny)
    for name, tensor in state.items():
        if ".experts." not in name:
            assert torch.equal(tensor, stored[name][: len(tensor)].to(tensor.dtype))
            continue
        packed, scale = (stored[f"{name}_{p}"].numpy() for p in ("packed", "scale"))
        codes = np.stack([packed & 15, packed >> 4], -1).reshape(len(packed), -1)
        values = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
        values *= np.repeat(scale.view(ml_dtypes.float8_e8m0fnu), 32, -1)
        assert tensor.dtype == (dtype or torch.bfloat16)
        assert torch.equal(tensor.double(), torch.from_numpy(values)), name


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_gives_the_same_logits(mode, tiny):
    ids = torch.tensor([[7, 19, 3, 101, 5]])
    want, got = (load(tiny, dtype=torch.float32, experts=m) for m in ("packed", mode))
    with torch.no_grad():
        near = gap(got(ids), want(ids))
        with choose.use("torch"):
            assert torch.equal(got(ids), want(ids))
    assert near <= tolerances.of("packed", torch.float32)


def test_report_5_bias_stays_fp32(tiny, tmp_path):
    bias = f"{MOE}gate.e_score_correction_bias"

    def check(model):
        value = model.get_parameter(bias)
        assert value.dtype == torch.float32
        assert value[:2].tolist() == [7.0, np.float32(7.01)]

    model = load(tiny)
    model.get_parameter(bias).data[:2] = torch.tensor([7.0, 7.01])
    check(model)
    check(model.to(torch.bfloat16))
    save(model, tmp_path / "again")
    again = load(tmp_path / "again")
    check(again)
    check(again.bfloat16())


def test_report_50_a_log_is_sliced_and_padded_back(small, tmp_path, tensors_of):
    model = small()
    name = "language_model.model.layers.0.self_attn"
    heads = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    layer = model.get_submodule(name)
    assert layer.A_log_stored == 8
    layer.A_log.data.copy_(heads)
    save(model, tmp_path / "a")
    stored = tensors_of(tmp_path / "a")[f"{name}.A_log"]
    assert torch.equal(stored, torch.cat([heads, torch.zeros(2)]))
    again = load(tmp_path / "a")
    A_log = again.get_parameter(f"{name}.A_log")
    assert [part.tolist() for part in A_log.chunk(2)] == [
        heads[:3].tolist(),
        heads[3:].tolist(),
    ]
    save(again, tmp_path / "b")
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


@pytest.mark.parametrize("length", [5, 8, 16])
def test_report_50_known_lengths_are_kept(length, copied, edit, tmp_path, tensors_of):
    def pad(tensors):
        A_log = tensors[f"{KDA}A_log"][:5]
        tensors[f"{KDA}A_log"] = torch.cat([A_log, torch.zeros(length - 5)])

    edit(copied, 1, pad)
    save(load(copied), tmp_path / "again")
    stored = tensors_of(tmp_path / "again")[f"{KDA}A_log"]
    assert torch.equal(stored, tensors_of(copied)[f"{KDA}A_log"])


def test_report_52_smallest_scale_is_not_zero(copied, edit):
    def smallest(tensors):
        tensors[f"{MOE}experts.2.w1.weight_packed"].fill_(0x22)
        tensors[f"{MOE}experts.2.w1.weight_scale"].zero_()

    edit(copied, 1, smallest)
    experts = load(copied, experts="dequantized").get_submodule(f"{MOE}experts")
    assert experts.w1[2].float().unique().tolist() == [2.0**-127]


def test_experts_are_found_by_presence_not_by_config(copied, tiny):
    values = json.loads((copied / "config.json").read_text())
    values["text_config"]["quantization_config"]["ignore"] = ["re:.*experts.*"]
    (copied / "config.json").write_text(json.dumps(values))
    state, want = load(copied).state_dict(), load(tiny).state_dict()
    assert all(torch.equal(state[name], want[name]) for name in want)
    del values["text_config"]["quantization_config"]
    (copied / "config.json").write_text(json.dumps(values))
    assert load(copied).state_dict().keys() == want.keys()


@pytest.mark.parametrize("bare", [False, True])
def test_dense_experts_load(bare, small, tmp_path):
    model = small(bare=bare)
    save(model, tmp_path, experts="dense")
    assert K3Config.load(tmp_path).bare == bare
    for mode in ("packed", "dequantized"):
        state = load(tmp_path, experts=mode).state_dict()
        for name, tensor in model.state_dict().items():
            assert torch.equal(state[name], tensor), name
    with pytest.raises(RequestError, match="maps MXFP4 experts"):
        load(tmp_path, experts="mmap")


def test_bare_packed_text_model(small, tmp_path, tensors_of):
    model = small(bare=True)
    save(model, tmp_path, experts="packed")
    assert "model.embed_tokens.weight" in tensors_of(tmp_path)
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        logits = [load(tmp_path, experts=mode)(ids) for mode in MODES]
    assert torch.equal(logits[0], logits[1])
    assert torch.equal(logits[0], logits[2])


def test_mapped_experts_are_views_of_the_file(copied):
    model = load(copied, experts="mmap")
    experts = model.get_submodule(f"{MOE}experts")
    one, other = experts.w1_packed[0], experts.w1_packed[1]
    assert one.untyped_storage().nbytes() == one.numel()
    assert 0 < abs(one.data_ptr() - other.data_ptr()) < 10**6
    maps = Path("/proc/self/maps").read_text()
    assert str(copied / shard(1)) in maps
    assert not any(".experts." in name for name, _ in model.named_buffers())


def test_progress_rises_to_the_total(tiny):
    seen = []
    load(tiny, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 604
    assert seen == sorted(seen)
    assert seen[-1] == (1_427_360, 1_427_360)


def test_options_are_refused_by_name(tiny):
    with pytest.raises(RequestError, match=r"experts must be one of .* got 'lazy'"):
        load(tiny, experts="lazy")
    with pytest.raises(RequestError, match=r"dtype must be .* got torch.float16"):
        load(tiny, dtype=torch.float16)
    with pytest.raises(RequestError, match="on the CPU: got device cuda"):
        load(tiny, experts="mmap", device="cuda")


def test_a_shard_that_shrinks_while_it_is_read(copied, monkeypatch):
    def cut(found_model, device):
        with (copied / shard(3)).open("r+b") as stream:
            stream.truncate(50_000)
        return materialize(found_model, device)

    materialize = places.materialize
    monkeypatch.setattr(places, "materialize", cut)
    with pytest.raises(CheckpointError, match="became shorter while it was read"):
        load(copied)
