"""fla's reference KDA, and any function with its signature."""

import torch

from k3.kernels import kda
from k3.verify.exact.pairs import fla


def ours(q, k, v, g, beta, *, initial_state, output_final_state):
    """Our chunk form behind fla's signature."""
    tokens = q[0] * q.shape[-1] ** -0.5, k[0], v[0], g[0], beta[0]
    assert output_final_state
    state = initial_state.transpose(-1, -2)
    out, state = kda.chunk(*tokens, state=state, lens=(q.shape[1],))
    return out[None], state.transpose(-1, -2)


def test_ours_in_their_layout():
    assert fla.memory(ours, 5).check(seeds=1, covering=False)


def test_a_transposed_state_is_different():
    def wrong(q, k, v, g, beta, *, initial_state, output_final_state):
        return ours(
            *(q, k, v, g, beta),
            initial_state=initial_state.mT.contiguous(),
            output_final_state=output_final_state,
        )

    report = fla.memory(wrong, 5, K=3, V=3).check(seeds=1, covering=False)
    assert report.first == "out[0]"


def test_fla_recurrent(naive):
    report = fla.memory(naive.naive_recurrent_kda, 7).check(seeds=2, covering=False)
    assert report, report


def test_fla_chunk(naive):
    pair = fla.memory(naive.naive_chunk_kda, 8, chunk_size=4)
    report = pair.check(seeds=2, covering=False)
    assert report, report
    assert torch.get_default_dtype() is torch.float32
