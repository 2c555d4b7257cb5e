"""The transformers interface over k3.model: the same tokens, logits and files."""

import copy
import filecmp
from functools import cache

import pytest
import small
import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, DynamicCache

import k3
from k3.errors import CheckpointError, RequestError
from k3.hf import KimiK3ForConditionalGeneration, StateCache
from k3.model.generate import GenerateOptions, generate

PROMPTS = ([3, 17, 44, 5, 9, 8, 21], [30, 2], [7])


@cache
def released():
    return AutoModelForCausalLM.from_pretrained(small.TINY, dtype=torch.float32)


def padded(side="left", prompts=PROMPTS):
    width, ids, mask = max(map(len, prompts)), [], []
    for prompt in prompts:
        gap = width - len(prompt)
        ids.append([255] * gap + prompt if side == "left" else prompt + [255] * gap)
        mask.append([0] * gap + [1] * len(prompt))
        mask[-1] = mask[-1] if side == "left" else mask[-1][::-1]
    return torch.tensor(ids), torch.tensor(mask)


def alone(prompt):
    with torch.no_grad():
        return released().core(torch.tensor([prompt]))[0]


def near(a, b):
    assert a.shape == b.shape
    assert (a - b).abs().max() <= 2e-5 * b.abs().max()


def test_auto_classes_give_the_released_layout_without_remote_code():
    model = released()
    assert type(model) is KimiK3ForConditionalGeneration
    assert "auto_map" in AutoConfig.from_pretrained(small.TINY).to_dict()
    assert not model.training
    assert model.dtype == model.core.dtype == torch.float32
    mine = k3.load(small.TINY, dtype=torch.float32).state_dict()
    assert {n: x.shape for n, x in model.state_dict().items()} == {
        n: x.shape for n, x in mine.items()
    }
    ids = torch.tensor([PROMPTS[0]])
    near(model(ids).logits[0].detach(), alone(PROMPTS[0]))


def test_dtype_is_the_files_unless_asked_and_fp32_tensors_stay_so():
    model = AutoModel.from_pretrained(small.TINY, dtype="auto", device_map="auto")
    assert model.dtype == torch.bfloat16
    kept = {n for n, x in model.state_dict().items() if x.dtype == torch.float32}
    endings = ("A_log", "dt_bias", "e_score_correction_bias", "o_norm.weight")
    assert any(n.endswith("conv1d.weight") for n in kept)
    assert all(any(n.endswith(e) for n in kept) for e in endings)
    assert model.to(torch.bfloat16).state_dict().keys() >= kept
    assert all(model.state_dict()[n].dtype == torch.float32 for n in kept)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_masked_token_is_not_there(side):
    ids, mask = padded(side)
    with torch.no_grad():
        out = released()(ids, attention_mask=mask)
        other = released()(torch.where(mask.bool(), ids, 11), attention_mask=mask)
    assert torch.equal(out.logits, other.logits)
    for row, prompt in enumerate(PROMPTS):
        near(out.logits[row][mask[row].bool()], alone(prompt))
        near(out.logits[row, -1], alone(prompt)[-1])
    if side == "left":
        assert not out.logits[1, 0].any()


def test_a_mask_of_the_past_and_a_token_masked_on_the_way():
    ids, mask = padded()
    with torch.no_grad():
        first = released()(ids[:, :4], attention_mask=mask[:, :4])
        out = released()(ids[:, 4:], attention_mask=mask, cache=first.cache)
        again = released()(ids[:, 4:], mask[:, 4:], past_key_values=StateCache())
    assert out.cache is first.cache
    assert out.cache.get_seq_length() == ids.shape[1]
    assert out.cache.state.lens == (7, 2, 1)
    near(out.logits[0], alone(PROMPTS[0])[4:])
    near(again.logits[1, -1], alone(PROMPTS[1])[-1])


@pytest.mark.parametrize("side", ["left", "right"])
def test_greedy_equals_k3(side):
    ids, mask = padded(side)
    wanted = generate(
        released().core, PROMPTS, GenerateOptions(max_tokens=4, temperature=0.0)
    )
    made = released().generate(ids, attention_mask=mask, max_new_tokens=4)
    same_tokens(made[:, ids.shape[1] :], wanted)


def test_a_seed_gives_the_tokens_that_it_gives_in_k3():
    ids, mask = padded()
    seeds = [5, 6, 5]
    each = [
        GenerateOptions(max_tokens=5, temperature=0.9, top_k=40, seed=s) for s in seeds
    ]
    wanted = generate(released().core, PROMPTS, each)
    how = {"max_new_tokens": 5, "temperature": 0.9, "top_k": 40}
    made = released().generate(ids, attention_mask=mask, seed=seeds, **how)
    same_tokens(made[:, ids.shape[1] :], wanted)
    other = released().generate(ids, attention_mask=mask, seed=9, **how)
    assert not torch.equal(made, other)
    with pytest.raises(RequestError, match="seed is one number, or one for each row"):
        released().generate(ids, attention_mask=mask, seed=[1, 2], **how)


def same_tokens(made, wanted):
    pad = released().generation_config.pad_token_id
    for row, completion in zip(made.tolist(), wanted, strict=True):
        end = len(completion.ids)
        assert row[:end] == completion.ids
        assert set(row[end:]) <= {pad}


def test_beams_carry_the_state_of_their_row():
    ids = torch.tensor([PROMPTS[0]])
    how = {"num_beams": 2, "max_new_tokens": 3, "do_sample": False}
    with_cache = released().generate(ids, **how)
    without = released().generate(ids, use_cache=False, **how)
    assert torch.equal(with_cache, without)


def test_labels_give_the_mean_over_tokens_that_follow_one():
    ids, mask = padded()
    labels = ids.masked_fill(mask == 0, -100)
    out = released()(ids, attention_mask=mask, labels=labels)
    assert out.cache is None
    parts = [
        torch.nn.functional.cross_entropy(
            alone(p)[:-1], torch.tensor(p[1:]), reduction="sum"
        )
        for p in PROMPTS[:2]
    ]
    wanted = sum(parts) / (len(PROMPTS[0]) + len(PROMPTS[1]) - 2)
    near(out.loss.detach()[None], wanted[None])
    with torch.no_grad():
        pads_named = released()(ids, attention_mask=mask, labels=ids)
    near(pads_named.loss[None], wanted[None])


def test_a_loss_trains_every_dense_weight_it_uses():
    model = KimiK3ForConditionalGeneration.from_pretrained(
        small.TINY, dtype=torch.float32, experts="dequantized"
    )
    ids, mask = padded()
    model.train()
    model(ids, attention_mask=mask, labels=ids).loss.backward()
    missing = {n for n, x in model.named_parameters() if x.grad is None}
    unused = ("vision_tower", "mm_projector", "layers.0.self_attention_res_")
    assert {n for n in missing if not any(u in n for u in unused)} <= {
        n for n in missing if ".experts." in n or n.endswith("e_score_correction_bias")
    }
    assert model.core.language_model.lm_head.weight.grad.any()


def test_logits_to_keep_and_tuples():
    ids, mask = padded()
    with torch.no_grad():
        whole = released()(ids, attention_mask=mask).logits
        last = released()(ids, attention_mask=mask, logits_to_keep=1).logits
        two = released()(ids, attention_mask=mask, logits_to_keep=2).logits
        one = released()(ids, attention_mask=mask, logits_to_keep=torch.tensor([3]))
        logits, state = released()(ids, attention_mask=mask, return_dict=False)
    near(last, whole[:, -1:])
    assert torch.equal(two, whole[:, -2:])
    assert torch.equal(one.logits, whole[:, 3:4])
    assert torch.equal(logits, whole)
    assert isinstance(state, StateCache)


def test_saving_what_was_loaded_gives_the_same_files(tmp_path):
    model = AutoModelForCausalLM.from_pretrained(small.TINY)
    model.save_pretrained(tmp_path, max_shard_size="500KB")
    again, info = KimiK3ForConditionalGeneration.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert not any(info.values())
    assert filecmp.cmp(tmp_path / "config.json", small.TINY / "config.json") or (
        again.config.to_dict() == model.config.to_dict()
    )
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    state = model.state_dict()
    assert all(torch.equal(x, state[n]) for n, x in again.state_dict().items())
    assert again.generation_config.eos_token_id == 251


def test_a_fresh_model_of_a_config_and_a_copy():
    config = AutoConfig.from_pretrained(small.TINY)
    fresh = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    twin = copy.deepcopy(fresh)
    ids = torch.tensor([PROMPTS[0]])
    with torch.no_grad():
        before = fresh(ids).logits
        assert torch.equal(twin(ids).logits, before)
        twin.get_output_embeddings().weight.zero_()
        assert torch.equal(fresh(ids).logits, before)
    cache = fresh(ids, use_cache=True).cache
    fresh.load_state_dict(twin.state_dict())
    assert not fresh(ids).logits.any()
    with pytest.raises(RequestError, match="belongs to the weights that made it"):
        fresh(ids, cache=cache)


def test_images_are_spliced_in():
    model = released()
    grids = torch.tensor([[1, 4, 6]])
    pixels = torch.rand(24, 3, 14, 14)
    media = model.config.released.media_placeholder_token_id
    ids = torch.tensor([[5, *[media] * 6, 9]])
    with torch.no_grad():
        features = model.core.encode_images(pixels, grids)
        wanted = model.core(ids, features=features)
        assert torch.equal(
            model(ids, pixel_values=pixels, grid_thws=grids).logits, wanted
        )
    made = model.generate(ids, pixel_values=pixels, grid_thws=grids, max_new_tokens=3)
    (told,) = generate(
        model.core,
        ids.tolist(),
        GenerateOptions(max_tokens=3, temperature=0.0),
        features=features,
    )
    assert made[0, ids.shape[1] :].tolist() == told.ids
    with pytest.raises(
        RequestError, match="pixel_values and grid_thws belong together"
    ):
        model(ids, pixel_values=pixels)


def test_what_cannot_be_done_is_refused_by_name(tmp_path):
    model, ids = released(), torch.tensor([[1, 2]])
    with pytest.raises(RequestError, match="attention_mask is \\[batch, tokens\\]"):
        model(ids, attention_mask=torch.ones(1, 3))
    with pytest.raises(RequestError, match="old name of cache: give one of them"):
        model(ids, cache=StateCache(), past_key_values=StateCache())
    with pytest.raises(RequestError, match=r"cache must be a k3\.hf\.StateCache"):
        model(ids, cache=DynamicCache())
    with pytest.raises(RequestError, match="cache_implementation must be left out"):
        model.generate(ids, cache_implementation="static", max_new_tokens=1)
    with pytest.raises(ValueError, match="inputs_typo"):
        model.generate(ids, inputs_typo=1, max_new_tokens=1)
    with pytest.raises(TypeError, match="inputs_embeds"):
        model(input_ids=ids, inputs_embeds=ids)
    with pytest.raises(CheckpointError, match="reads local directories and no hub"):
        KimiK3ForConditionalGeneration.from_pretrained(tmp_path / "none")
