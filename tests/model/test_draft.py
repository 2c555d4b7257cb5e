"""The EAGLE-3 draft: how it begins, its unroll is its decoding, and what it reads."""

import pytest
import torch
from small import config, gap, ids, model

from k3.config.draft import DraftConfig
from k3.errors import CheckpointError, RequestError
from k3.model.draft import Draft, features

MADE = config(attn_res_block_size=1)


@pytest.fixture(scope="module")
def net():
    return model(made=MADE)


def fresh(net, seed=3, **options):
    draft = Draft(DraftConfig(text=net.config.text, **options), torch.float32)
    draft.start_(net, seed)
    with torch.no_grad():
        for name, p in draft.named_parameters():
            if p.dim() > 1 and name != "fc.weight":
                p.mul_(8)
    return draft


def run(net, tokens):
    taps = {}
    with torch.no_grad():
        logits = net(tokens, taps=taps)
    return logits, taps


def test_it_starts_from_the_final_block_and_the_targets_head(net):
    draft, D = fresh(net), MADE.text.hidden_size
    _, taps = run(net, ids(1, 5))
    read = features(taps, draft.config.layers)
    assert read.shape == (1, 5, 3 * D)
    assert torch.equal(draft.fuse(read), taps["layers.6.out_prefix"])
    assert torch.equal(read[..., :D], taps["layers.0.out_prefix"])
    assert torch.equal(read[..., D : 2 * D], taps["layers.3.out_prefix"])


def test_it_starts_where_the_mtp_layer_ended():
    made = config(attn_res_block_size=1, num_nextn_predict_layers=1)
    net = model(made=made)
    draft = Draft(DraftConfig(text=made.text, experts=True), torch.float32).start_(net)
    mtp = dict(net.language_model.model.layers[-1].named_parameters())
    own = dict(draft.named_parameters())
    assert set(own) - set(mtp) == {"fc.weight"}
    assert set(mtp) <= set(own)
    assert all(torch.equal(own[name], value) for name, value in mtp.items())


def test_report_58_a_tap_holds_the_number_of_its_layer():
    taps = {f"layers.{i}.out_prefix": torch.full((1, 2, 4), float(i)) for i in range(7)}
    config_ = DraftConfig(text=MADE.text, taps=(1, 4, 5), taps_of="layer")
    read = features(taps, config_.layers)
    assert read[0, 0].tolist() == [1.0] * 4 + [4.0] * 4 + [5.0] * 4


@pytest.mark.parametrize("options", [{}, {"experts": True}, {"layout": "fused"}])
def test_the_unroll_is_what_decoding_does(net, options):
    """At each position: the past from true features, then its own tokens forward."""
    draft, tokens = fresh(net, **options), ids(1, 9)
    _, taps = run(net, tokens)
    read = features(taps, draft.config.layers)
    with torch.no_grad():
        steps = draft.unroll(tokens, read, (9,), 4)
        for t in range(4):
            cache = draft.init_cache(1)
            feature = draft.fuse(read[:, : t + 1])
            hidden, logits = draft(tokens[:, 1 : t + 2], feature, cache)
            assert gap(steps[0][:, t], logits[:, -1]) < 1e-5
            for j in range(1, 4):
                token = tokens[:, t + 1 + j : t + 2 + j]
                hidden, logits = draft(token, hidden[:, -1:], cache)
                assert gap(steps[j][:, t], logits[:, 0]) < 1e-5


def test_packed_sequences_do_not_see_each_other(net):
    draft, tokens = fresh(net), ids(1, 9)
    _, taps = run(net, tokens)
    read = features(taps, draft.config.layers)
    packed = draft.unroll(tokens, read, (4, 5), 3)
    alone = draft.unroll(tokens[:, 4:], read[:, 4:], (5,), 3)
    for j in range(3):
        assert gap(packed[j][:, 4 : 8 - j], alone[j][:, : 4 - j]) < 1e-6


def test_report_59_each_step_feeds_the_ones_after_it(net):
    """Seven proposals: another token at step j changes step j and no earlier one."""
    draft, tokens = fresh(net), ids(1, 12)
    _, taps = run(net, tokens)
    read = features(taps, draft.config.layers)
    with torch.no_grad():
        plain = [x[0, 0] for x in draft.unroll(tokens, read, (12,), 7)]
        for j in range(7):
            other = tokens.clone()
            other[0, 1 + j] = (other[0, 1 + j] + 1) % 57
            moved = [x[0, 0] for x in draft.unroll(other, read, (12,), 7)]
            changed = [not torch.equal(a, b) for a, b in zip(plain, moved, strict=True)]
            assert changed == [False] * j + [True] * (7 - j)


def test_a_fused_draft_adds_to_the_feature(net):
    """MLA reads [norm(e) | norm(f)], and f is the residual: without MLA it stays."""
    draft, D = fresh(net, layout="fused"), MADE.text.hidden_size
    tokens, feature = ids(1, 1), torch.randn(1, 1, D)
    with torch.no_grad():
        draft.self_attn.o_proj.weight.zero_()
        draft.mlp.down_proj.weight.zero_()
        hidden, logits = draft(tokens, feature)
        assert torch.equal(hidden, feature)
        assert torch.equal(logits, draft.shared_head(feature))
    assert draft.self_attn.q_a_proj.weight.shape[1] == 2 * D
    head = net.language_model.lm_head.weight
    # fresh makes matrices eight times larger.
    assert torch.equal(draft.shared_head.head.weight, 8 * head)


def test_report_38_the_table_holds_offsets(net):
    draft = Draft(DraftConfig(text=MADE.text, draft_vocab_size=4), torch.float32)
    draft.d2t.copy_(torch.tensor([0, 2, 5, 6]))
    assert draft.target_ids().tolist() == [0, 3, 7, 9]
    draft.check_table()
    draft.start_(net)
    head = net.language_model.lm_head.weight
    assert torch.equal(draft.shared_head.head.weight, head[[0, 3, 7, 9]])
    for wrong in ([0, 2, 5, 58], [0, -1, 5, 6], [0, 2, 5, 4], [-1, 2, 5, 6]):
        draft.d2t.copy_(torch.tensor(wrong))
        with pytest.raises(CheckpointError, match="d2t holds offsets"):
            draft.check_table()


def test_a_target_of_another_width_is_refused(net):
    other = config(attn_res_block_size=1, hidden_size=32)
    draft = Draft(DraftConfig(text=other.text), torch.float32)
    with pytest.raises(RequestError, match="width and tokens of its target"):
        draft.start_(net)
