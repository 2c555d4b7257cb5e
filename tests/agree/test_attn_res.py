import pytest
import torch
from readings import agree, tensor  # noqa: F401

from k3.kernels import attn_res as fast
from k3.spec import attn_res as spec


@pytest.mark.parametrize("sources", [1, 2, 5])
@pytest.mark.parametrize("partial", [True, False])
def test_mix(sources, partial):
    blocks, prefix = torch.randn(2, 3, sources, 7), torch.randn(2, 3, 7)
    norm, proj = torch.randn(7), torch.randn(1, 7)

    def mix(blocks, prefix, norm, proj):
        scale = fast.inverse_rms(blocks, 1e-5)
        query = fast.fold_query(norm, proj)
        return fast.mix(blocks, scale, prefix if partial else None, query, 1e-5)

    def by_token(blocks, prefix, norm, proj):
        weights = {"mlp_res_norm.weight": norm, "mlp_res_proj.weight": proj}
        q = spec.query(weights, "mlp_res")
        rows = []
        for b in range(2):
            for t in range(3):
                last = prefix[b, t][None] if partial else prefix[:0, 0]
                rows.append(spec.retrieve(q, torch.cat([blocks[b, t], last])))
        return torch.stack(rows).view(2, 3, 7) + 0 * prefix.sum()

    def plain(*x):
        return mix(*x) + 0 * x[1].sum()

    agree.same(plain, by_token, [blocks, prefix, norm, proj])
