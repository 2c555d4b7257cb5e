"""MXFP4 to NVFP4 and back: what is kept, what one outer scale means, how far it is."""

import pytest
import torch
import toy
from safetensors import safe_open

from k3.checkpoint.save import save
from k3.errors import ShapeError
from k3.kernels import mx, nvfp4, situ
from k3.train import pretrain


def expert(low, high, seed=0):
    """MXFP4 bytes [6 32] of 64 values a row, with scales from 2^low to 2^high."""
    generator = torch.Generator().manual_seed(seed)
    packed = torch.randint(0, 256, (6, 32), generator=generator, dtype=torch.uint8)
    scale = torch.randint(low, high + 1, (6, 2), generator=generator) + 127
    scale[0, 0] = high + 127
    return packed, scale.to(torch.uint8)


def values(found, outer):
    return nvfp4.decode(found[0], found[1], outer, torch.float64)


def test_report_94_gate_and_up_share_an_outer_scale_and_lose_nothing():
    gate, up = expert(-20, -12), expert(-9, -4, 1)
    outer = nvfp4.outer_exponent(gate[1], up[1])
    assert outer == -4 - 8
    for tensor in (gate, up):
        found = nvfp4.encode(*tensor, outer)
        assert found[2] == 1.0
        want = mx.decode(*tensor, torch.float64)
        assert torch.equal(values(found, outer), want)
        again = mx.encode(values(found, outer))
        assert torch.equal(mx.decode(*again, torch.float64), want)


def test_report_94_what_is_lost_is_counted_and_bounded():
    tensor = expert(-30, -4)
    outer = nvfp4.outer_exponent(tensor[1])
    found = nvfp4.encode(*tensor, outer)
    gap = (values(found, outer) - mx.decode(*tensor, torch.float64)).abs()
    small = tensor[1].int() - 127 - outer < nvfp4.LEAST
    assert 0 < gap.max() <= nvfp4.error_bound(outer)
    assert not gap.unflatten(-1, (-1, 32))[~small].any()
    lost = (gap.unflatten(-1, (-1, 16)) > 0).any(-1).double().mean()
    assert found[2] == pytest.approx(1 - float(lost))


def test_report_94_forward_difference_is_within_the_bound():
    gate, up = expert(-28, -4), expert(-30, -8, 1)
    outer = nvfp4.outer_exponent(gate[1], up[1])
    torch.manual_seed(0)
    x = torch.randn(64, dtype=torch.float64)
    step = nvfp4.error_bound(outer) * x.abs().sum()

    def products(tensors):
        return [w @ x for w in tensors]

    old = products([mx.decode(*t, torch.float64) for t in (gate, up)])
    new = products([values(nvfp4.encode(*t, outer), outer) for t in (gate, up)])
    for one, other in zip(old, new, strict=True):
        assert 0 < (one - other).abs().max() <= step
    # SiTU's factors are below 4 and 25, their slopes at most 1.2 and 1.
    gap = (situ.situ(*old, 4.0, 25.0) - situ.situ(*new, 4.0, 25.0)).abs().max()
    assert gap <= (1.2 * 25 + 4) * step


def test_report_94_an_outer_scale_of_one_half_does_not_cover_the_other():
    gate, up = expert(-20, -12), expert(-9, -4, 1)
    with pytest.raises(ShapeError, match="outer_exponent over all its tensors"):
        nvfp4.encode(*up, nvfp4.outer_exponent(gate[1]))
    with pytest.raises(ShapeError, match="got none"):
        nvfp4.outer_exponent()


def test_report_94_only_routed_experts_are_packed(tmp_path):
    save(pretrain.fresh(toy.recipe()), tmp_path, experts="packed")
    packed = set()
    for path in tmp_path.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118
                if file.get_slice(name).get_dtype() == "U8":
                    packed.add(name)
    assert packed
    assert all(".block_sparse_moe.experts." in name for name in packed)
