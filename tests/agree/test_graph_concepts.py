"""Graphs that only the reader's figures use, against the spec at sizes of no figure."""

import numpy as np
import pytest

from k3.config import schedule as config_schedule
from k3.graph import balance as balance_graph
from k3.graph import cache as cache_graph
from k3.graph import context as context_graph
from k3.graph import evaluate
from k3.graph import loss as loss_graph
from k3.graph import muon as muon_graph
from k3.graph import primitives as p
from k3.graph import rl as rl_graph
from k3.graph import schedule as schedule_graph
from k3.graph import speculate as speculate_graph
from k3.graph.term import Block
from k3.spec import attn_res, balance, context, loss, mla, muon, rl, speculate


def run(outputs, env, sizes=None):
    block = Block("concept", "one concept", outputs)
    return evaluate(block, {k: np.asarray(v) for k, v in env.items()}, sizes or {})


def near(found, wanted):
    np.testing.assert_allclose(found, np.asarray(wanted, float), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_quantile_balancing_with_ties(seed):
    rng = np.random.default_rng(seed)
    margins = rng.integers(-3, 4, size=1 + 3 * seed) / 4
    target, theta = rng.integers(0, 9) / 2, rng.integers(-3, 4) / 4
    terms = p.real("margins", "M"), p.real("target", ""), p.real("theta", "")
    strict, weak = balance_graph.counts(terms[0], terms[2])
    found = run(
        {
            "objective": balance_graph.objective(*terms),
            "strict": strict,
            "weak": weak,
            "threshold": balance_graph.threshold(*terms[:2]),
        },
        {"margins": margins, "target": target, "theta": theta},
    )
    near(found["objective"], balance.coordinate_objective(margins, target, theta))
    near(found["strict"], balance.exceedance(margins, theta))
    near(found["weak"], balance.at_least(margins, theta))
    near(found["threshold"], balance.threshold(margins, target))


@pytest.mark.parametrize(("layers", "block"), [(1, 1), (5, 2), (13, 4), (29, 12)])
def test_schedule(layers, block):
    mixed = schedule_graph.sources(schedule_graph.layers(), p.real("block", ""))
    outputs = {"mla": schedule_graph.mla(p.real("every", "")), "mixed": mixed}
    found = run(outputs, {"every": 4.0, "block": float(block)}, {"N": layers})
    is_mla = [n in config_schedule.mla_layers(layers) for n in range(1, layers + 1)]
    near(found["mla"], is_mla)
    counts = [attn_res.source_count(n, block) for n in range(1, layers + 1)]
    near(found["mixed"], counts)


def test_cache_scalars_and_the_last_point_that_is_held():
    scalars = [p.real(name, "") for name in ("latent", "shared", "heads", "c", "v")]
    latent, shared, heads, content, value = scalars
    matched, block = p.real("matched", ""), p.real("block", "")
    found = run(
        {
            "row": cache_graph.row_scalars(latent, shared),
            "full": cache_graph.full_scalars(heads, content, shared, value),
            "at": cache_graph.restored(matched, block, p.real("kept", "N")),
        },
        {
            **{"latent": 5.0, "shared": 3.0, "heads": 7.0, "c": 4.0, "v": 6.0},
            **{"matched": 11.0, "block": 3.0, "kept": [1.0, 1.0, 0.0, 1.0, 1.0]},
        },
    )
    near(found["row"], mla.row_scalars(5, 3))
    near(found["full"], mla.expanded_scalars(7, 4, 3, 6))
    # Ends 3, 6, 9, 12, 15: rows reach 9, and 9 has no checkpoint.
    near(found["at"], 6)


def test_segments_compose():
    rng = np.random.default_rng(3)
    k, v, alpha = rng.random((2, 3)), rng.random((2, 5)), rng.random((2, 3))
    beta, S = rng.random(2), rng.random((3, 5))
    rows = [p.real(name, f"2, {x}") for name, x in (("k", "K"), ("v", "V"))]
    rows += [p.real("alpha", "2, K"), p.real("beta", "2")]
    terms = [context_graph.token(*(p.pick(x, i) for x in rows)) for i in range(2)]
    both = context_graph.compose(*terms)
    outputs = {"M": both.M, "B": both.B}
    outputs["S"] = context_graph.act(both, p.real("S", "K, V"))
    found = run(outputs, {"k": k, "v": v, "alpha": alpha, "beta": beta, "S": S})
    wanted = context.segment(k, v, alpha, beta)
    near(found["M"], wanted.M)
    near(found["B"], wanted.B)
    near(found["S"], context.act(wanted, S))


def test_masked_loss_and_its_gradient():
    rng = np.random.default_rng(4)
    logits, targets = rng.normal(size=(7, 5)), rng.integers(0, 5, size=7)
    mask = np.array([1, 0, 1, 1, 0, 0, 1])
    z, y, s = p.real("z", "T, W"), p.integer("y", "T", "W"), p.real("s", "T")
    losses = loss_graph.token_losses(z, y)
    found = run(
        {
            "each": losses,
            "mean": loss_graph.next_token_loss(losses, s),
            "gradient": loss_graph.logit_gradient(z, y, s),
        },
        {"z": logits, "y": targets, "s": mask.astype(float)},
    )
    near(
        found["each"],
        [loss.token_loss(*row) for row in zip(logits, targets, strict=True)],
    )
    near(found["mean"], loss.next_token_loss(logits, targets, mask == 1))
    near(found["gradient"], loss.logit_gradient(logits, targets, mask == 1))


def test_per_head_muon():
    M = np.random.default_rng(5).normal(size=(6, 5))
    found = run(
        {"out": muon_graph.per_head(p.real("M", "H*R, C"), "H", "R")},
        {"M": M},
        {"H": 3, "R": 2},
    )
    near(found["out"], muon.per_head(muon.newton_schulz, M, 3))


@pytest.mark.parametrize(("teacher", "student"), [(0.7, 0.08), (0.08, 0.7), (0.4, 0.4)])
def test_reward(teacher, student):
    terms = [p.real(name, "") for name in ("t", "s", "limit")]
    env = {"t": teacher, "s": student, "limit": 2.0}
    found = run({"out": rl_graph.reward(*terms)}, env)
    near(found["out"], rl.reward(teacher, student, 2.0))


def test_overlap_of_other_laws():
    rng = np.random.default_rng(6)
    weights = rng.random((2, 7))
    target, draft = (speculate_graph.scaled(p.real(n, "W")) for n in ("p", "q"))
    found = run(
        speculate_graph.overlap(target, draft), {"p": weights[0], "q": weights[1]}
    )
    laws = [row / row.sum() for row in weights]
    near(found["acceptance"], speculate.acceptance(*laws))
    near(found["correction"], speculate.correction(*laws))
    near(found["emitted"], laws[0])


@pytest.mark.parametrize(("uniforms", "accepted"), [([0.9, 0.1], 0), ([0.1, 0.1], 2)])
def test_rollback_ends_at_the_first_rejection(uniforms, accepted):
    terms = [p.real(name, "N") for name in ("u", "p", "q")]
    env = {"u": uniforms, "p": [0.2, 0.4], "q": [0.4, 0.4]}
    found = run(speculate_graph.rollback(*terms), env)
    assert found["accepted"] == accepted
    assert found["dropped"] == 2 - accepted
