"""Weights held as stored: the bits of widened ones, the bytes of the files."""

import copy

import pytest
import torch
from small import gap, ids, state_gap

from k3.checkpoint.load import load
from k3.checkpoint.save import save
from k3.errors import RequestError
from k3.kernels import choose
from k3.model import stored
from k3.model.stored import StoredEmbedding, StoredLinear
from k3.parallel import context, expert, pipeline
from k3.parallel.ranks import Axis
from k3.train import lora
from k3.train.masters import Masters
from k3.verify.enclose import run as enclose
from k3.verify.exact.pairs import decoder

FORMS = ("widened", "stored")


def both(folder, **options):
    return [
        load(folder, dtype=torch.float32, weights=form, **options) for form in FORMS
    ]


def steps(model, tokens, prompt=4):
    """Logits of steps after a prompt, its own logits, and the state at the end."""
    with torch.inference_mode():
        first, state = model(tokens[:, :prompt], state=model.init_state(len(tokens)))
        outs = []
        for t in range(prompt, tokens.shape[1]):
            logits, state = model.step(tokens[:, t : t + 1], state)
            outs.append(logits)
    return first, torch.cat(outs, 1), state


@pytest.mark.parametrize("experts", ["packed", "dequantized", "mmap"])
@pytest.mark.parametrize("batch", [1, 5])
def test_a_step_has_the_bits_of_widened_weights(tiny, experts, batch):
    (_, want, _), (_, got, state) = (
        steps(m, ids(batch, 9)) for m in both(tiny, experts=experts)
    )
    assert torch.equal(got, want)
    assert state.caches[0].window.dtype == got.dtype == torch.float32


@pytest.mark.parametrize("kind", ["torch", "native"])
@pytest.mark.parametrize("experts", ["packed", "dequantized"])
def test_a_prompt_has_the_values_of_widened_weights(tiny, kind, experts):
    wide, narrow = both(tiny, experts=experts)
    with choose.use(kind):
        want, got = (steps(m, ids(2, 12), 11) for m in (wide, narrow))
    assert gap(got[0], want[0]) < 1e-6
    assert state_gap(got[2], want[2]) < 1e-6


def test_any_number_of_threads_gives_the_same_bits(tiny):
    model, found = load(tiny, dtype=torch.float32, weights="stored"), []
    with torch.inference_mode():
        _, begun = model(ids(3, 4), state=model.init_state(3))
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(model.step(ids(3, 1), begun.fork())[0])
    torch.set_num_threads(1)
    assert torch.equal(*found)


def test_matrices_alone_are_narrow(tiny, tensors_of):
    model, files = load(tiny, dtype=torch.float32, weights="stored"), tensors_of(tiny)
    narrow = set(stored.names(model))
    for name, parameter in model.named_parameters():
        vector = parameter.dim() < 2 or "res_proj" in name or "conv1d" in name
        own = files[name].dtype if name in narrow else torch.float32
        assert parameter.dtype == own
        assert not parameter.requires_grad
        table = ("pos_emb", "patch_embed")
        assert (name in narrow) is not (vector or any(part in name for part in table))
    assert model.dtype == torch.float32
    held = sum(x.nbytes for x in model.state_dict().values())
    assert held < 1.1 * sum(x.nbytes for x in files.values())


def test_a_save_gives_the_files_again(tiny, tmp_path):
    save(load(tiny, dtype=torch.float32, weights="stored"), tmp_path / "stored")
    save(load(tiny), tmp_path / "plain")
    for path in (tmp_path / "plain").iterdir():
        assert path.read_bytes() == (tmp_path / "stored" / path.name).read_bytes()


def test_a_copy_and_a_cast_follow(tiny):
    wide, narrow = both(tiny)
    want = steps(wide, ids(1, 7))[1]
    again = copy.deepcopy(narrow)
    assert torch.equal(steps(again, ids(1, 7))[1], want)
    again.float()
    assert not any(stored.names(again))
    assert torch.equal(steps(again, ids(1, 7))[1], want)
    again.bfloat16()
    assert again.dtype == steps(again, ids(1, 7))[2].caches[0].window.dtype
    assert again.dtype == torch.bfloat16
    double = narrow.double()
    assert gap(steps(double, ids(1, 7))[1], want) < 1e-5


def test_pictures_are_read_by_stored_weights(tiny):
    wide, narrow = both(tiny)
    pixels, grid = torch.rand(16, 3, 14, 14), torch.tensor([[1, 4, 4]])
    with torch.no_grad():
        want, got = (m.encode_images(pixels, grid) for m in (wide, narrow))
    assert gap(got, want) < 1e-6


def test_other_weights_are_taken_where_nothing_is_rounded(tiny):
    wide, narrow = both(tiny)
    name = "language_model.lm_head.weight"
    values = wide.state_dict()
    values[name] = -values[name]
    narrow.load_state_dict(values)
    assert torch.equal(narrow.get_parameter(name).float(), values[name])
    values[name] = values[name] * (1 + 1e-3)
    with pytest.raises(RequestError, match="got values that this would round; load"):
        narrow.load_state_dict(values)


def test_experts_that_would_be_rounded_are_refused_one_by_one(tiny):
    wide, narrow = both(tiny, experts="dequantized")
    values = wide.state_dict()
    narrow.load_state_dict(values)
    name = next(name for name in values if ".experts.1.w2" in name)
    values[name] = values[name] * (1 + 1e-3)
    with pytest.raises(RequestError, match=rf"{name} is held in bfloat16"):
        narrow.load_state_dict(values)


def test_a_plain_layer_in_a_stored_model_is_not_read_as_a_stored_one(tiny):
    wide, narrow = both(tiny)
    want = steps(wide, ids(1, 6))[1]
    layer = "language_model.model.layers.0.self_attn"
    owner, own = (m.get_submodule(layer) for m in (narrow, wide))
    owner.q_proj = own.q_proj
    assert gap(steps(narrow, ids(1, 6))[1], want) < 1e-5


def test_bfloat16_has_nothing_to_widen(tiny):
    model = load(tiny, weights="stored")
    kinds = (StoredLinear, StoredEmbedding)
    assert not any(isinstance(m, kinds) for m in model.modules())


def test_an_unknown_form_is_refused(tiny):
    with pytest.raises(RequestError, match="got 'wide'"):
        load(tiny, weights="wide")


def test_what_changes_weights_refuses_stored_ones(tiny):
    model = load(tiny, dtype=torch.float32, weights="stored")
    two = Axis(size=2)
    for what, run in {
        "training": lambda: Masters(model, betas=(0.9, 0.95), weight_decay=0.1),
        "an adapter": lambda: lora.attach(model, lora.Options()),
        "a split over ranks": lambda: expert.split(model, two),
        "splitting a row over ranks": lambda: context.split(model, two),
        "a stage of a pipeline": lambda: pipeline.cut(model, lambda *_: None),
        "exact arithmetic": lambda: decoder.whole(model, [1, 2]),
        "enclose": lambda: enclose(model, [1, 2]),
    }.items():
        with pytest.raises(RequestError, match=f"{what} needs weights in the trunk's"):
            run()
