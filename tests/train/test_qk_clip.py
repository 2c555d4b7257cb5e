"""QK-Clip: the largest logit that was seen, and weights brought to the limit."""

import copy

import pytest
import torch
import toy

from k3.kernels import mla
from k3.train import pretrain
from k3.train.masters import Masters
from k3.train.qk_clip import QKClip

LAYER = "language_model.model.layers.3.self_attn"


def logits_of(q, k, scale):
    T = q.shape[2]
    seen = torch.ones(T, T, dtype=torch.bool).tril()
    return (q @ k.mT * scale).masked_fill(~seen, -torch.inf).amax((0, 2, 3))


@pytest.mark.parametrize("rows", [1, 3, 512])
def test_largest_logits_are_exact_above_the_limit_and_bounds_below(monkeypatch, rows):
    monkeypatch.setattr(mla, "LOGIT_ROWS", rows)
    torch.manual_seed(0)
    q, k = torch.randn(2, 3, 7, 5), torch.randn(2, 3, 7, 5)
    q[:, 1] *= 40
    want = logits_of(q, k, 0.3)
    got = mla.largest_logits(q, k, 0.3, 20.0)
    torch.testing.assert_close(got[1], want[1])
    assert (want[[0, 2]] <= got[[0, 2]]).all()
    assert (got[[0, 2]] <= 20).all()


def passes(model, watch):
    """Largest logits of layer 3 in one pass over two packed documents."""
    ids = torch.arange(11)[None] * 3 % 300
    model(ids, cu_seqlens=torch.tensor([0, 4, 11]))
    return watch.largest()[LAYER]


def loud(scale):
    torch.manual_seed(0)
    model = pretrain.fresh(toy.recipe())
    with torch.no_grad():
        model.get_submodule(LAYER).q_b_proj.weight[:12] *= scale
    return model


def test_a_head_above_the_limit_comes_down_to_it_and_no_other_moves():
    model = loud(3e3)
    watch = QKClip(model, 4.0)
    before = passes(model, watch)
    assert before[0] > 40
    weights = dict(model.named_parameters())
    held = {n: p.detach().clone() for n, p in weights.items()}
    assert watch.scale_(weights, {LAYER: before}) == 1
    assert passes(model, watch)[0] == pytest.approx(4.0, rel=1e-5)
    gamma = 4 / float(before[0])
    q = weights[f"{LAYER}.q_b_proj.weight"] / held[f"{LAYER}.q_b_proj.weight"]
    kv = weights[f"{LAYER}.kv_b_proj.weight"] / held[f"{LAYER}.kv_b_proj.weight"]
    # Eight rows meet the head's own key, four the shared one; the rest is head 1.
    torch.testing.assert_close(q[:8], torch.full((8, 16), gamma**0.5))
    torch.testing.assert_close(q[8:12], torch.full((4, 16), gamma))
    torch.testing.assert_close(kv[:8], torch.full((8, 16), gamma**0.5))
    assert (q[12:] == 1).all()
    assert (kv[8:] == 1).all()
    moved = [n for n, p in weights.items() if not torch.equal(p, held[n])]
    assert moved == [f"{LAYER}.q_b_proj.weight", f"{LAYER}.kv_b_proj.weight"]


def test_below_the_limit_nothing_moves():
    model = loud(1.0)
    watch = QKClip(model)
    weights = {n: p.detach().clone() for n, p in model.named_parameters()}
    assert watch.scale_(weights, {LAYER: passes(model, watch)}) == 0
    assert all(torch.equal(w, model.get_parameter(n)) for n, w in weights.items())


def test_passes_without_gradients_are_not_watched_and_a_copy_has_its_own_list():
    model = loud(1.0)
    watch = QKClip(model)
    with torch.no_grad():
        model(torch.tensor([[1, 2]]))
    assert watch.largest() == {}
    copy.deepcopy(model)


def test_masters_clip_after_the_step():
    model = loud(3e3)
    masters = Masters(model, betas=(0.9, 0.9), weight_decay=0.0, qk_clip=4.0)
    model(torch.arange(11)[None] * 3 % 300)
    masters.step([torch.zeros_like(p) for p in masters.parameters.values()], 0.0, 1.0)
    assert masters.clipped_heads == 1
    model(torch.arange(11)[None] * 3 % 300)
    assert masters.qk_clip.largest()[LAYER][0] == pytest.approx(4.0, rel=0.02)
