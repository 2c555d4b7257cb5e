"""A row split over ranks = one process: logits, gradients, weights; bytes counted."""

import context_on_ranks as work
import pytest
import small
import torch

from k3.parallel import Mesh

STEPS = 5
ROWS_OF = {
    "inside one document": (41,),
    "a boundary between ranks": (20, 20),
    "documents of a token": (1, 1, 17, 3, 1, 18),
}


def same_training(told, want):
    losses, gradients, weights = want
    for got_losses, got_gradients, got_weights, _ in told:
        assert small.gap(got_losses, losses) < 1e-9
        assert set(got_gradients) == set(gradients)
        for name, g in gradients.items():
            assert small.gap(got_gradients[name], g) < 1e-7, name
        for name, w in weights.items():
            assert small.gap(got_weights[name], w) < 1e-5, name


@pytest.mark.parametrize("lens", ROWS_OF.values(), ids=list(ROWS_OF))
def test_report_71_two_ranks_train_as_one_process(two, lens):
    steps = STEPS if lens == ROWS_OF["documents of a token"] else 1
    told = two(Mesh(context=2), work.trained, lens, steps)
    same_training(told, work.alone(lens, steps))


@pytest.mark.slow
@pytest.mark.parametrize("lens", [(41,), (5, 2, 30, 1, 4), (10, 10, 10, 10), (3, 2)])
def test_report_71_four_ranks_train_as_one_process(four, lens):
    told = four(Mesh(context=4), work.trained, lens, STEPS)
    same_training(told, work.alone(lens, STEPS))


def test_report_71_the_order_of_ranks_matters(two):
    lens = (41,)
    ids, _, _, cu = work.row(0, lens)
    want = work.made()(ids, cu_seqlens=cu)
    right = two(Mesh(context=2), work.logits, lens)
    wrong = two(Mesh(context=2), work.logits, lens, True)
    for told, close in ((right, True), (wrong, False)):
        got = torch.cat([part for part, _ in told], 1)
        assert (small.gap(got, want) < 1e-9) == close


def test_single_precision_is_as_close(two):
    told = two(Mesh(context=2), work.trained, (41,), 1, torch.float32)
    losses, gradients, _ = work.alone((41,), 1, torch.float32)
    for got_losses, got_gradients, _, _ in told:
        assert small.gap(got_losses, losses) < 1e-5
        for name, g in gradients.items():
            assert small.gap(got_gradients[name], g) < 1e-4, name


def test_summaries_do_not_grow_with_the_row_and_rows_do(two):
    """Bytes of one forward pass: 3 KDA layers, 1 MLA layer, one document."""
    made = work.config().text
    sizes = made.linear_attn_config
    H, K, V = sizes.num_heads, sizes.head_dim, sizes.v_dim
    wide = 8
    for tokens in (16, 48):
        first, last = two(Mesh(context=2), work.logits, (tokens,))
        half = tokens // 2
        assert first[1] == {
            "summaries": 3 * H * (K + V) * K * wide,
            "window": 3 * 3 * H * (2 * K + V) * wide,
            "rows": half * made.mla_row_scalars * wide,
        }
        assert last[1]["summaries"] == first[1]["summaries"]
        assert last[1]["window"] == last[1]["rows"] == 0


def test_documents_apart_send_no_rows(two):
    first, _ = two(Mesh(context=2), work.logits, (20, 20))
    assert first[1]["rows"] == first[1]["window"] == 0


def test_a_share_of_another_length_is_refused(two):
    said = two(Mesh(context=2), work.refused)
    assert "got (1, 4) on rank 1 of 2 for 9 tokens; pass [1, 5]" in said[1]
