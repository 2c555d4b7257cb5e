import numpy as np
import torch
from readings.carriers import same

from k3.spec import attn_res


def test_retrieve_reads_alike_and_is_a_convex_mix(rng):
    q, values = rng.normal(size=5), rng.normal(size=(4, 5))
    h = same(attn_res.retrieve, q, values)
    assert (h <= values.max(0)).all()
    assert (h >= values.min(0)).all()
    np.testing.assert_allclose(attn_res.retrieve(q, values[:1]), values[0])
    inputs = [torch.tensor(x, requires_grad=True) for x in (q, values)]
    assert torch.autograd.gradcheck(attn_res.retrieve, inputs)


def test_query_folds_the_key_norm(rng):
    weights = {"mlp_res_norm.weight": rng.normal(size=3)}
    weights["mlp_res_proj.weight"] = rng.normal(size=(1, 3))
    q = same(attn_res.query, weights, "mlp_res", exact=True)
    values = rng.normal(size=(2, 3))
    keys = values / np.sqrt((values**2).mean(1, keepdims=True) + 1e-5)
    wanted = (keys * weights["mlp_res_norm.weight"]) @ weights["mlp_res_proj.weight"][0]
    np.testing.assert_allclose(attn_res.scores(q, values), wanted)


def test_block_state_is_the_plain_residual_sum(rng):
    e, block, layers = rng.normal(size=3), 3, 8
    state, plain, sums = attn_res.start(e), e, [e]
    for i in range(layers):
        assert len(attn_res.sources(state)) == len(sums)
        # The release commits at the start of layer i: the same sources.
        if i % block == 0:
            sums.append(np.zeros(3))
        y, f = rng.normal(size=(2, 3))
        state = attn_res.add(attn_res.add(state, y), f)
        sums[-1] = sums[-1] + y + f
        plain = plain + y + f
        np.testing.assert_allclose(attn_res.sources(state), np.stack(sums))
        state = attn_res.finish_layer(state, block)
        np.testing.assert_allclose(attn_res.sources(state).sum(0), plain)
        assert state.size == (i + 1) % block
    assert len(attn_res.sources(state)) == attn_res.source_count(layers, block)
    assert len(attn_res.outputs(state)) == 3
    assert attn_res.source_count(93, 12) == 9


def test_phases_merge_to_the_mix(rng):
    q, values = rng.normal(size=5), rng.normal(size=(4, 5))
    parts = [same(attn_res.phase, q, part) for part in (values[:3], values[3:])]
    mixed = attn_res.retrieve(q, values)
    np.testing.assert_allclose(same(attn_res.merge, parts), mixed)
    s = attn_res.scores(q, values)
    m, Z, N = s[0], s[0] * 0 + 1, values[0]
    for j in range(1, 4):
        m, Z, N = same(attn_res.online, m, Z, N, s[j], values[j])
    np.testing.assert_allclose(N / Z, mixed)
