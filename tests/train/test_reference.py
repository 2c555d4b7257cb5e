"""A model whose layers are read as they are needed: the same bits, two layers held."""

import threading

import pytest
import torch
from small import config, ids, model, schedule

from k3.checkpoint.load import load
from k3.checkpoint.save import save
from k3.errors import CheckpointError, RequestError
from k3.train import reference

pytestmark = pytest.mark.usefixtures("unchecked")


EVEN = config(num_hidden_layers=4, linear=schedule(4))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Seven layers, all experts dense."""
    where = tmp_path_factory.mktemp("whole")
    save(model(), where)
    return where


def logits(net, seed=1, **options):
    with torch.no_grad():
        return net(ids(1, 23, seed=seed), **options)


@pytest.mark.parametrize("layers", [7, 4])
def test_answers_are_bit_for_bit_those_of_the_whole_model(folder, layers, tmp_path):
    dtype = torch.float32 if layers == 7 else None
    if layers == 4:
        folder = tmp_path / "even"
        save(model(made=EVEN), folder)
    whole = load(folder, dtype=dtype)
    bounds = torch.tensor([0, 9, 23])
    with reference.streamed(folder, dtype=dtype) as net:
        for seed in range(3):
            assert torch.equal(logits(net, seed), logits(whole, seed))
        packed = logits(net, cu_seqlens=bounds)
        assert torch.equal(packed, logits(whole, cu_seqlens=bounds))
        assert not net(ids(1, 5)).requires_grad
        assert net.weight_version == whole.weight_version


@pytest.mark.parametrize("experts", ["packed", "dequantized"])
def test_experts_of_the_shipped_model(experts):
    whole = load("tiny", experts=experts)
    with reference.streamed("tiny", experts=experts) as net:
        assert torch.equal(logits(net), logits(whole))


def storage_bytes(layers):
    tensors = [x for m in layers for x in (*m.parameters(), *m.buffers())]
    held = {x.untyped_storage().data_ptr(): x.untyped_storage() for x in tensors}
    return sum(x.nbytes() for x in held.values())


def test_two_layers_are_in_memory_and_no_more():
    whole = load("tiny")
    each = [storage_bytes([x]) for x in whole.language_model.model.layers]
    with reference.streamed("tiny") as net:
        held = storage_bytes(net.language_model.model.layers)
    assert 2 * max(each) <= held <= 2.05 * max(each)
    assert held < sum(each) / 3


def test_the_next_layer_is_read_while_one_computes(folder):
    """The pass stops in each layer until the read of the following one has begun."""
    with reference.streamed(folder, dtype=torch.float32) as net:
        begun = {at: threading.Event() for at in range(7)}
        layers = net.language_model.model.layers
        original = reference.load.read

        def read(given, source, name, **options):
            if ".layers." in name:
                begun[int(name.split(".layers.")[1].split(".")[0])].set()
            return original(given, source, name, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reference.load, "read", read)
            for at, layer in enumerate(layers[:-1]):
                layer.self_attn.register_forward_hook(
                    lambda *_, at=at: None if begun[at + 1].wait(20) else 1 / 0
                )
            assert logits(net).isfinite().all()


def test_a_pass_that_fails_spoils_none_after_it(folder):
    whole = load(folder, dtype=torch.float32)
    with reference.streamed(folder, dtype=torch.float32) as net:
        norm = net.language_model.model.layers[-1].input_layernorm

        def fail(*_):
            raise InterruptedError

        hook = norm.register_forward_pre_hook(fail)
        with pytest.raises(InterruptedError):
            logits(net)
        hook.remove()
        assert torch.equal(logits(net), logits(whole))


def test_passes_of_many_threads_wait_for_one_another(folder):
    whole, found = load(folder, dtype=torch.float32), {}
    with reference.streamed(folder, dtype=torch.float32) as net:

        def work(seed):
            found[seed] = logits(net, seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(torch.equal(found[seed], logits(whole, seed)) for seed in range(6))


def test_a_file_that_is_cut_meanwhile_is_told(folder, tmp_path):
    save(load(folder), tmp_path / "copy")
    with reference.streamed(tmp_path / "copy") as net:
        logits(net)
        for file in (tmp_path / "copy").glob("*.safetensors"):
            with file.open("r+b") as stream:
                stream.truncate(9000)
        with pytest.raises(CheckpointError, match="became shorter while it was read"):
            logits(net)


def test_mapped_experts_are_refused():
    with (
        pytest.raises(RequestError, match="are 'packed' or 'dequantized': got 'mmap'"),
        reference.streamed("tiny", experts="mmap"),
    ):
        raise AssertionError
