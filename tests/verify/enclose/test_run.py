"""A whole run: its true error, flipped routes as such, a wrong program as such."""

import json
from functools import cache

import kills
import pytest
import small
import torch
from mutants import checks

from k3.errors import RequestError, ShapeError
from k3.verify import enclose
from k3.verify.enclose import truth

IDS = [3, 14, 15]


@cache
def report(dtype):
    return enclose.run(kills.model(0.3, dtype), IDS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_run_is_enclosed(dtype):
    found = report(dtype)
    assert found, found
    assert 0 < found.error < {torch.float32: 1e-5, torch.bfloat16: 0.5}[dtype]
    assert found.radius < truth.ENOUGH
    assert len(found.margins) == 3 * len(IDS)
    assert found.greedy_margin > 0
    assert len(found.modules) == 4 * 6 - 1 + 3
    assert all(m.equation for m in found.modules)


def test_a_report_prints_and_is_json():
    found = report(torch.float32)
    text = str(found)
    assert text.startswith("enclose: INSIDE (float32, 3 tokens, ")
    for part in (
        "true error of the logits: ",
        "nearest route: margin ",
        "nearest greedy token: margin ",
        "modules inside their balls: 26 of 26",
        "routes certain from a module's own inputs: 9 of 9",
        "assumed: a ball over the whole program is useless",
    ):
        assert part in text
    assert enclose.lines(found) == text.split("\n")
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert values["ok"]
    assert values["verdict"] == "INSIDE"
    assert len(values["modules"]) == 26


def near_tie(gap):
    """A bf16 model whose sparse layer 1 has a tie of about `gap` at token 2."""
    running, at = kills.model(0.3, torch.bfloat16), (1, 2)
    best = truth.decoder(running, IDS).routed[at]
    bias = running.language_model.model.layers[1].block_sparse_moe.gate
    bias = bias.e_score_correction_bias.data
    # The margin is that of the least expert taken: find it, and lower all taken ones.
    bias[list(best.taken)] -= best.margin - gap
    return running


def test_a_flipped_route_is_reported_as_such_and_is_no_failure():
    # bf16 sees a margin of its own, so one side of so near a tie must flip.
    runs = [enclose.run(near_tie(gap), IDS, equation=False) for gap in (1e-6, -1e-6)]
    flipped = [r for r in runs if any((f.layer, f.token) == (1, 2) for f in r.flips)]
    assert len(flipped) == 1
    found = flipped[0]
    flip = next(f for f in found.flips if (f.layer, f.token) == (1, 2))
    assert found
    assert found.verdict.startswith(f"INSIDE, {len(found.flips)} route")
    assert -1e-5 < flip.margin < 0
    assert len(set(flip.run) ^ set(flip.spec)) == 2
    assert (
        f"route flipped: layer 1, token 2: the run took experts {flip.run[0]}"
        in str(found)
    )
    assert found.error_on_route < found.error


def test_a_wrong_module_is_outside_and_named():
    mutant = next(m for m in checks.MUTANTS if m.name == "scaling factor dropped")
    running = kills.model(0.3, torch.float32)
    with kills.mutated(mutant, running):
        found = enclose.run(running, IDS[:1])
    assert not found
    assert found.verdict == "OUTSIDE"
    assert found.first.name == "layers.1.block_sparse_moe"
    assert "equation  out: OUTSIDE" in str(found)
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_the_decoder_in_arb_is_the_spec_in_floats():
    from k3.spec import model as spec
    from k3.verify.exact.pairs import layout

    running = small.model(
        torch.float64, small.config(linear=small.schedule(4), num_hidden_layers=4)
    )
    named = {n: p.detach().numpy() for n, p in running.named_parameters()}
    named = layout.checkpoint_names(named)
    want = spec.logits(named, running.config.text, [5, 7])
    got = truth.decoder(running, [5, 7])
    assert abs(got.logits.numpy() - want).max() < 1e-11
    assert {at for at, _ in got.routed.items()} == {
        (i, t) for i in (1, 2, 3) for t in (0, 1)
    }


def test_a_given_route_is_gone_and_its_loss_told():
    running = kills.model(0.3, torch.float32)
    own = truth.decoder(running, IDS)
    other = next(e for e in range(5) if e not in own.routed[1, 0].best)
    given = [other, *own.routed[1, 0].best[:2]]
    found = truth.decoder(running, IDS, {(1, 0): given})
    assert found.routed[1, 0].taken == tuple(sorted(given))
    assert found.routed[1, 0].best == own.routed[1, 0].best
    assert found.routed[1, 0].margin < 0 < own.routed[1, 0].margin
    assert float((found.logits[0] - own.logits[0]).abs().max()) > 1e-4


def test_a_run_on_given_routes_starts_at_the_first_flip():
    running = kills.model(0.3, torch.float32)
    own = truth.decoder(running, IDS)
    routes = {at: r.best for at, r in own.routed.items()}
    same = truth.both(running, IDS, routes)
    assert same[0] is same[1]
    other = next(e for e in range(5) if e not in routes[2, 1])
    routes[2, 1] = (other, *routes[2, 1][:2])
    best, along = truth.both(running, IDS, routes)
    assert torch.equal(best.logits, own.logits)
    alone = truth.decoder(running, IDS, routes)
    assert torch.equal(along.logits, alone.logits)
    assert along.routed == alone.routed
    assert not torch.equal(along.logits[1], best.logits[1])


def test_more_bits_are_taken_where_needed(monkeypatch):
    running = kills.model(0.3, torch.float32)
    monkeypatch.setattr(truth, "BITS", 32)
    assert truth.decoder(running, [1]).bits in (64, 128, 256)
    monkeypatch.setattr(truth, "MOST_BITS", 32)
    with pytest.raises(RequestError, match="with 32 bits a radius is still above"):
        truth.decoder(running, [1])


@pytest.mark.parametrize("tokens", [[], [1.5], [True], ["a"], torch.zeros(2, 2)])
def test_what_are_no_tokens_is_refused(tokens):
    with pytest.raises(RequestError, match="one sequence of at least one token id"):
        enclose.run(kills.model(0.3, torch.float32), tokens)


def test_unknown_tokens_and_weights_that_are_not_finite_are_refused():
    running = kills.model(0.3, torch.float32)
    with pytest.raises((RequestError, ShapeError), match="9999"):
        enclose.run(running, [9999])
    running.language_model.model.norm.weight.data[2] = torch.nan
    with pytest.raises(RequestError, match=r"not in language_model\.model\.norm"):
        enclose.run(running, IDS)


def test_a_tensor_of_one_row_is_a_sequence():
    running = kills.model(0.02, torch.float32)
    found = enclose.run(running, torch.tensor([[3]]), modules=False)
    assert found.tokens == 1
    assert found.modules == []
