"""A row split over ranks = one process: logits, gradients, weights; bytes counted."""

import context_on_ranks as work
import pytest
import small
import torch

from k3.parallel import Mesh, traffic

STEPS = 5
ROWS_OF = {
    "inside one document": (41,),
    "a boundary between ranks": (20, 20),
    "documents of a token": (1, 1, 17, 3, 1, 18),
}


def same_training(told, want, parts=1):
    """With `parts`, each of two neighbours holds half of the experts."""
    losses, gradients, weights = want
    for rank, (got_losses, got_gradients, got_weights, _) in enumerate(told):
        assert small.gap(got_losses, losses) < 1e-9
        assert set(got_gradients) == set(gradients)
        for name, g in gradients.items():
            if ".experts.w" in name and parts > 1:
                g = g.chunk(parts)[rank * parts // len(told)]
            assert small.gap(got_gradients[name], g) < 1e-7, name
        for name, w in got_weights.items():
            assert small.gap(w, weights[name]) < 1e-5, name


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


@pytest.mark.slow
@pytest.mark.parametrize("recompute", [False, True])
def test_experts_and_context_together_train_as_one_process(four, recompute):
    lens = (5, 2, 30, 1, 4)
    told = four(Mesh(expert=2, context=2), work.combined, lens, STEPS, recompute)
    same_training(told, work.combined_alone(lens, STEPS), 2)


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
    """Bytes of one forward pass of 3 KDA layers and 1 MLA layer, as k3 plan says."""
    text, wide = work.config().text, 8
    for tokens in (16, 48):
        first, last = two(Mesh(context=2), work.logits, (tokens,))
        assert first[1] == {
            "summaries": 3 * traffic.summaries(text, 2, wide)[0],
            "window": 3 * traffic.window(text, wide),
            "rows": traffic.latent_rows(text, tokens // 2, 2, wide),
        }
        assert last[1]["summaries"] == first[1]["summaries"]
        assert last[1]["window"] == last[1]["rows"] == 0


def test_a_backward_pass_sends_what_k3_plan_says(two):
    text, wide = work.config().text, 8
    told = two(Mesh(context=2), work.trained, (48,), 1)
    there, back = traffic.summaries(text, 2, wide)
    assert {t[3]["summaries"] for t in told} == {3 * (there + back)}
    # Rows and windows go one way forward, and their gradients the other way.
    rows, window = traffic.latent_rows(text, 24, 2, wide), traffic.window(text, wide)
    assert [t[3]["rows"] for t in told] == [rows, rows]
    assert [t[3]["window"] for t in told] == [3 * window, 3 * window]


def test_documents_apart_send_no_rows(two):
    first, _ = two(Mesh(context=2), work.logits, (20, 20))
    assert first[1]["rows"] == first[1]["window"] == 0


def test_a_share_of_another_length_is_refused(two):
    said = two(Mesh(context=2), work.refused)
    assert "got (1, 4) on rank 1 of 2 for 9 tokens; pass [1, 5]" in said[1]
