"""The selection bias: what is counted, which rule moves it, what keeps it exact."""

import dataclasses

import pytest
import torch
import toy
from torch.utils.checkpoint import checkpoint

from k3.data.packing import concatenate, pack
from k3.errors import RequestError
from k3.train import balance, pretrain
from k3.train.balance import Balance, Tally
from k3.train.masters import Masters


@pytest.fixture
def model(small):
    return pretrain.fresh(small)


def ids(rows=2, tokens=33):
    generator = torch.Generator().manual_seed(rows)
    return torch.randint(3, 300, (rows, tokens), generator=generator)


def tally_of(model, held, tokens, real=None, **options):
    taps = {}
    model(tokens, taps=taps, **options)
    return held.tally(taps, real)


def same(one, other):
    return torch.equal(one.counts, other.counts)


def test_loads_and_histograms_count_every_token_once(model):
    held = Balance(model, bins=50)
    tally = tally_of(model, held, ids())
    assert tally.counts.shape == (4, 8, 51)
    assert (tally.loads.sum(1) == 2 * 66).all()
    assert (tally.counts[:, :, 1:].sum(2) == 66).all()


def test_report_74_padding_is_not_counted(model):
    held = Balance(model)
    packed = pack([example(5, "a"), example(9, "b")], 20, pad_id=555)
    alone = concatenate([pack([example(5, "a"), example(9, "b")], 14, pad_id=555)])
    tallies = [
        tally_of(model, held, row.ids, row.real, cu_seqlens=row.cu_seqlens)
        for row in (packed, alone)
    ]
    assert same(*tallies)
    assert int(tallies[0].loads[0].sum()) == 2 * 14


def example(length, domain):
    from k3.data.examples import Example

    generator = torch.Generator().manual_seed(length)
    tokens = torch.randint(3, 300, (length,), generator=generator)
    learned = torch.arange(length) > 0
    return Example(ids=tokens, learned=learned, domain=domain)


def test_report_74_eight_passes_of_one_row_are_one_pass_of_eight(model):
    taps = {}
    model(ids(8, 9), taps=taps)
    for bins in (0, 100):
        held = Balance(model, bins=bins)
        whole = held.tally(taps)
        parts = [
            held.tally({n: t[start : start + 9] for n, t in taps.items()})
            for start in range(0, 72, 9)
        ]
        pooled = balance.pool(parts)
        assert same(pooled, whole)
        assert all(map(torch.equal, pooled.exact, whole.exact))
        assert len(whole.exact) == (0 if bins else 4)


def test_report_74_a_pass_that_is_run_again_counts_once(model):
    held, taps = Balance(model), {}

    def run(tokens):
        return model(tokens, taps=taps)

    logits = checkpoint(run, ids(), use_reentrant=False)
    logits.sum().backward()
    assert same(held.tally(taps), tally_of(model, held, ids()))


def test_report_74_two_workers_are_one_and_reduce_once(model):
    held = Balance(model)
    parts = [tally_of(model, held, row[None]) for row in ids()]
    calls = []

    def all_reduce(counts):
        assert not counts.is_floating_point()
        calls.append(counts.numel())
        counts += parts[1].counts

    loads = held.update_(parts[0], all_reduce=all_reduce)
    assert calls == [4 * 8 * 1001]
    two = [b.clone() for b in held.biases]
    for b in held.biases:
        b.zero_()
    whole = balance.pool(parts)
    assert torch.equal(held.update_(whole), loads)
    assert all(map(torch.equal, two, held.biases))


def test_report_74_nothing_counted_moves_nothing(model):
    for rule in balance.RULES:
        held = Balance(model, rule)
        held.biases[1].add_(torch.linspace(-1, 1, 8))
        before = [b.clone() for b in held.biases]
        held.update_(tally_of(model, held, ids(), torch.zeros(2, 33, dtype=torch.bool)))
        held.update_(held.tally({}))
        assert all(map(torch.equal, before, held.biases))


def test_report_74_exact_scores_are_not_exchanged(model):
    held = Balance(model, bins=0)
    tally = tally_of(model, held, ids())
    with pytest.raises(RequestError, match="set balance_bins to at least 1"):
        held.update_(tally, all_reduce=lambda counts: None)


def test_report_91_counts_are_compared_with_their_mean():
    loads = torch.tensor([10.0, 2, 0, 4])
    assert balance.excess(loads).tolist() == [-1, 1, 1, 0]
    assert torch.equal(balance.excess(loads / 7), balance.excess(loads))


def test_report_91_the_mean_of_the_bias_stays_zero(model):
    held = Balance(model, "sign", rate=0.01)
    held.gates = dict(list(held.gates.items())[:1])
    for counts in torch.randint(0, 50, (1000, 1, 8, 1)):
        held.update_(Tally(counts))
    assert abs(float(held.biases[0].mean())) < 1e-6
    assert held.biases[0].abs().max() < 0.01 * 1000


def test_report_91_a_constant_in_all_biases_changes_no_choice_and_no_update(model):
    for rule in ("quantile", "sign"):
        found = []
        for constant in (0.0, 0.25):
            held = Balance(model, rule, rate=0.01)
            for b in held.biases:
                b.copy_(torch.linspace(-0.25, 0.25, 8) + constant)
            tally = tally_of(model, held, ids())
            held.update_(tally)
            found.append((tally.loads, [b.clone() for b in held.biases]))
        assert torch.equal(found[0][0], found[1][0])
        for one, other in zip(found[0][1], found[1][1], strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


def test_report_22_small_updates_are_not_lost_in_a_bf16_model(model):
    model = model.to(torch.bfloat16)
    held = Balance(model, "sign", rate=1e-3)
    (bias, *_) = held.biases
    bias.fill_(0.5)
    for _ in range(100):
        bias.add_(1e-3)
    assert bias.dtype == torch.float32
    assert (bias - 0.6).abs().max() < 1e-5


def test_report_22_no_optimizer_holds_the_bias_and_a_snapshot_does(small, model):
    held = Balance(model)
    masters = Masters(model, betas=(0.9, 0.9), weight_decay=0.1, optimizer="muon")
    assert not any("e_score" in name for name in masters.parameters)
    held.update_(tally_of(model, held, ids()))
    before = [b.clone() for b in held.biases]
    model(ids()).sum().backward()
    zeros = [torch.zeros_like(p) for p in masters.parameters.values()]
    masters.step(zeros, 1.0, 1.0)
    assert all(map(torch.equal, before, held.biases))
    gates = [m.gate for m in balance.routers(model).values()]
    assert all(gate.e_score_correction_bias.grad is None for gate in gates)
    saved = {n: b.clone() for n, b in held.state().items()}
    other_model = pretrain.fresh(small)
    other_model.load_state_dict(model.state_dict())
    for b in balance.biases(other_model):
        b.zero_()
    other = Balance(other_model)
    other.restore(saved)
    assert all(map(torch.equal, before, other.biases))
    assert same(tally_of(other_model, other, ids()), tally_of(model, held, ids()))


def test_bias_is_used_from_the_next_step_and_evens_loads(model):
    held = Balance(model, bins=0)
    skewed = torch.linspace(-0.4, 0.4, 8)
    for b in held.biases:
        b.copy_(skewed)
    assert held.loads is None
    first = held.update_(tally_of(model, held, ids(8)))
    assert balance.imbalance(first) > 2
    assert torch.equal(held.loads, first)
    for _ in range(3):
        loads = held.update_(tally_of(model, held, ids(8)))
    assert balance.imbalance(loads) < 1.3


def test_ema_keeps_a_share_of_the_old_bias(model):
    old = torch.linspace(-0.4, 0.4, 8)
    found = {}
    for ema in (0.0, 0.9):
        held = Balance(model, ema=ema)
        for b in held.biases:
            b.copy_(old)
        held.update_(tally_of(model, held, ids()))
        found[ema] = held.biases[0].clone()
    torch.testing.assert_close(found[0.9], 0.9 * old + 0.1 * found[0.0])


def test_none_and_experts_that_all_run_are_left_alone(model):
    held = Balance(model, "none")
    held.update_(tally_of(model, held, ids()))
    assert not any(b.any() for b in held.biases)
    held = Balance(model)
    held.k = 8
    assert tally_of(model, held, ids()).counts.shape == (4, 8, 1)


def test_an_unknown_rule_is_refused(model):
    with pytest.raises(RequestError, match="quantile, sign, none: got 'even'"):
        Balance(model, "even")


def test_mtp_layer_is_balanced_under_its_own_name():
    config = toy.config().to_dict()
    config["text_config"]["num_nextn_predict_layers"] = 1
    config = type(toy.config()).from_dict(config)
    model = pretrain.fresh(dataclasses.replace(toy.recipe(), config=config))
    held = Balance(model)
    assert list(held.gates)[-1] == "mtp.block_sparse_moe"
    taps = {}
    model(ids(), taps=taps)
    assert held.tally(taps).loads.sum(1).tolist() == [132] * 4 + [0]
    mtp = model.language_model.model.layers[-1]
    mtp(ids(), taps["output_attn_res"], taps=taps)
    loads = held.update_(held.tally(taps))
    assert loads.sum(1).tolist() == [132] * 5
    assert held.biases[-1].any()


def test_bias_falls_where_the_load_is_high_and_stays_centred(model):
    loads = torch.ones(4, 8)
    loads[1, 0] = 9.0
    balance.update_(model, loads, 0.1)
    found = balance.biases(model)
    assert not found[0].any()
    assert found[1][0] == pytest.approx(-0.175)
    assert found[1][1:].tolist() == pytest.approx([0.025] * 7)


def test_imbalance_is_that_of_the_worst_layer():
    loads = torch.tensor([[1.0, 1, 1, 1], [4, 0, 0, 0]])
    assert balance.imbalance(loads) == 4
