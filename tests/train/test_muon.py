"""Muon: which matrices move, how straight their updates are, and what is left alone."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from k3.train import matrices, muon, pretrain
from k3.train.masters import Masters
from k3.train.matrices import Cut
from k3.train.muon import Muon

KINDS = (torch.float32, torch.bfloat16)


def singular(W, cut):
    """The singular values of all matrices of a parameter, over their update scale."""
    return [
        torch.linalg.svdvals(block) / muon.update_scale(*block.shape)
        for view in cut.views(W.contiguous())
        for block in view
    ]


def test_report_46_every_matrix_is_orthogonalized_once_a_step(small):
    model = pretrain.fresh(small)
    masters = Masters(model, betas=(0.9, 0.9), weight_decay=0.0, optimizer="muon")
    before = {n: w.detach().clone() for n, w in masters.weights.items()}
    torch.manual_seed(1)
    masters.step([torch.randn_like(p) for p in masters.parameters.values()], 1.0, 1e9)
    cuts = matrices.cuts(model)
    want = sum(c.num_matrices(before[n].shape) for n, c in cuts.items())
    assert masters.muon.orthogonalized == want == 183
    for name, cut in cuts.items():
        for values in singular(before[name] - masters.weights[name].detach(), cut):
            assert values.max() < 1.3, name
            # A random square matrix has a value near 0, which five rounds leave low.
            assert values.median() > 0.65, name


def test_report_46_table_of_what_moves_what(small):
    table = matrices.table(pretrain.fresh(small))
    leaves = {}
    for name, mover in table.items():
        leaves.setdefault(mover.partition(":")[0], set()).add(name.split("layers.")[-1])
    ends = {n.split(".", 1)[-1].removesuffix(".weight") for n in leaves["muon"]}
    assert {"self_attn.q_proj", "block_sparse_moe.experts.w2", "mlp.up_proj"} <= ends
    for part in ("embed_tokens", "lm_head", "norm", "conv1d", "A_log", "dt_bias"):
        assert any(part in name for name in leaves["adamw"])
    for name in leaves["muon"]:
        assert not any(
            part in name
            for part in ("embed", "head", "norm", "conv1d", "A_log", "gate.weight")
        )
    assert any(n.endswith("block_sparse_moe.gate.weight") for n in leaves["adamw"])
    assert not any("e_score" in name for name in table)
    assert table["language_model.model.layers.0.self_attn.q_proj.weight"] == (
        "muon: 3 of 12 by 32"
    )
    assert table["language_model.model.layers.3.self_attn.kv_b_proj.weight"] == (
        "muon: 4 of 8 by 16 and 12 by 16"
    )


GATED = Cut((5,) * 4 + (5,) * 4 + (5, 3), groups=2)
"""Four gates, four queries, a key and a value of each group."""


def fused_update(G):
    held = {"fused": torch.zeros_like(G)}
    optimizer = Muon(held, {"fused": GATED}, decay=0.0, dtype=torch.float32)
    optimizer.step({"fused": G}, 1.0)
    assert optimizer.orthogonalized == 20
    return held["fused"]


def test_report_47_fused_gate_and_heads_are_handled_alone():
    torch.manual_seed(0)
    G = torch.randn(96, 16)
    got, start = fused_update(G), 0
    for size in GATED.sizes * 2:
        alone = muon.newton_schulz(G[start : start + size][None])[0]
        want = -muon.update_scale(size, 16) * alone
        torch.testing.assert_close(got[start : start + size], want)
        start += size
    assert start == len(G)


def test_report_47_a_loud_head_does_not_drown_the_others():
    torch.manual_seed(0)
    G = torch.randn(96, 16)
    G[20:25] *= 100
    norms = fused_update(G)[:40].view(8, 5, 16).norm(dim=(1, 2))
    assert norms.max() < 1.5 * norms.min()


def test_report_47_another_number_of_rows_is_our_mistake():
    with pytest.raises(AssertionError):
        GATED.views(torch.zeros(80, 4))


SHAPES = [(1, 9), (9, 1), (1, 1), (40, 3), (7, 7)]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_report_89_any_gradient_has_a_finite_update(shape, dtype):
    torch.manual_seed(0)
    rank_one = torch.outer(torch.randn(shape[0]), torch.randn(shape[1]))
    for size in (1.0, 1e-20, 1e20, 1e-38, 1e38):
        out = muon.newton_schulz(size * rank_one[None], dtype=dtype)
        assert out.isfinite().all()
        assert 0.6 < torch.linalg.matrix_norm(out[0], 2) < 1.3
    mixed = torch.stack([rank_one, 0 * rank_one, 1e-30 * rank_one])
    out = muon.newton_schulz(mixed, dtype=dtype)
    assert not out[1].any()
    torch.testing.assert_close(out[2], out[0], atol=0.02, rtol=0.02)


@pytest.mark.parametrize("dtype", KINDS)
def test_report_89_idle_and_frozen_matrices_are_skipped(dtype):
    torch.manual_seed(0)
    held = {"experts": torch.randn(4, 6, 5), "frozen": torch.randn(3, 4)}
    before = {n: w.clone() for n, w in held.items()}
    cuts = {"experts": Cut((6,)), "frozen": Cut((3,))}
    optimizer = Muon(held, cuts, decay=0.1, dtype=dtype)
    G = torch.randn(4, 6, 5)
    optimizer.step({"experts": G.clone(), "frozen": None}, 0.1)
    assert optimizer.orthogonalized == 4
    after = held["experts"].clone()
    G[[0, 2]] = 0
    optimizer.step({"experts": G, "frozen": None}, 0.1)
    assert optimizer.orthogonalized == 2
    same = (held["experts"] == after).flatten(1).all(1)
    assert same.tolist() == [True, False, True, False]
    assert torch.equal(held["frozen"], before["frozen"])
    optimizer.step({"experts": torch.zeros_like(G)}, 0.1)
    assert optimizer.orthogonalized == 0
    assert held["experts"].isfinite().all()


def test_bf16_products_are_near_those_of_fp32():
    torch.manual_seed(0)
    X = torch.randn(3, 16, 40)
    near, exact = muon.newton_schulz(X, dtype=torch.bfloat16), muon.newton_schulz(X)
    assert (near - exact).norm() < 0.02 * exact.norm()
    assert near.dtype == torch.float32


def test_batches_and_threads_change_no_bit(monkeypatch):
    torch.manual_seed(0)
    start = {f"w{i}": torch.randn(3, 8, 12) for i in range(5)}
    cuts = dict.fromkeys(start, Cut((8,)))
    G = {n: torch.randn_like(w) for n, w in start.items()}

    def run(pool, room):
        monkeypatch.setattr(muon, "BATCH_VALUES", room)
        held = {n: w.clone() for n, w in start.items()}
        optimizer = Muon(held, cuts, decay=0.1, dtype=torch.float32)
        for _ in range(2):
            optimizer.step({n: g.clone() for n, g in G.items()}, 0.1, pool)
        assert optimizer.orthogonalized == 15
        return held

    want = run(None, 2**21)
    with ThreadPoolExecutor(3) as pool:
        for room in (1, 200, 700):
            for name, w in run(pool, room).items():
                assert torch.equal(w, want[name])
