"""The spec over a finite field: identities for all inputs at once, up to chance."""

import numpy as np
import pytest
from readings import models, residue

from k3.spec import attn_res, context, kda, mla, model, moe


def tokens(T, K=4, V=3):
    q, k, alpha = (residue.array(n, (T, K)) for n in ("q", "k", "alpha"))
    S, v = residue.array("S", (K, V)), residue.array("v", (T, V))
    return S, q, k, v, alpha, residue.array("beta", (T,))


@pytest.mark.parametrize("sizes", [[1], [9], [4, 5], [2, 1, 6]])
def test_chunks_are_the_recurrence(sizes):
    S, q, k, v, alpha, beta = tokens(sum(sizes))
    one = kda.recurrent(S, q, k, v, alpha=alpha, beta=beta)
    two = kda.chunked(S, q, k, v, alpha=alpha, beta=beta, sizes=sizes)
    assert (one[0] == two[0]).all()
    assert (one[1] == two[1]).all()
    # Decay after the correction is another function.
    late = alpha[0][:, None] * kda.update(S, k[0], v[0], alpha[0] * 0 + 1, beta[0])
    assert (late != kda.update(S, k[0], v[0], alpha[0], beta[0])).any()


def test_segments_are_the_recurrence():
    S, q, k, v, alpha, beta = tokens(7)
    last = kda.recurrent(S, q, k, v, alpha=alpha, beta=beta)[0]
    assert (context.act(context.segment(k, v, alpha, beta), S) == last).all()


def test_absorbed_is_expanded():
    args = [
        residue.array(n, shape)
        for n, shape in {"q": (6,), "W": (10, 4), "l": (5, 4), "s": (5, 2)}.items()
    ]
    assert (mla.expanded(*args) == mla.absorbed(*args)).all()


def test_phases_are_the_mix():
    q, values = residue.array("q", (5,)), residue.array("values", (4, 5))
    parts = [attn_res.phase(q, part) for part in (values[:3], values[3:])]
    assert (attn_res.merge(parts) == attn_res.retrieve(q, values)).all()


def test_common_offsets_keep_the_weights():
    scores = residue.array("scores", (6,))
    chosen, p = moe.route(scores, scores * 0, 3, tiny=0)
    assert sum(p) == residue.residue(1)
    assert chosen == moe.top_k(scores, 3)


def test_the_decoder_runs_by_token_and_by_layer():
    running = models.random(models.config())
    names = models.by_name(dict(running.named_parameters()))
    weights = {name: residue.array(name, tuple(p.shape)) for name, p in names.items()}
    text = running.config.text
    embeddings = model.embed(weights["model.embed_tokens.weight"], [3, 1, 4])
    states = model.empty_states(weights, text)
    by_token = model.run(weights, text, states, embeddings)[1]
    assert (by_token == model.run_by_layer(weights, text, embeddings)).all()
    assert np.unique([x.n for x in by_token.flat]).size == by_token.size
