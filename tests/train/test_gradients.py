"""Gradients of every module: finite differences in float64, and both kernels in fp32.

tests/agree compares the same modules with the gradients of the spec.
"""

import pytest
import small
import torch

from k3.kernels import choose
from k3.model.attn_res import Depth
from k3.model.taps import Taps

TOKENS = 7
PACKED = (2, 0, 5)
GRIDS = torch.tensor([[1, 2, 4], [3, 4, 2]])
STEP = 1e-6


@pytest.fixture(scope="module")
def net():
    made = small.config(vision={}, num_nextn_predict_layers=1)
    return small.model(torch.float64, made)


def drawn(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _mixer(index):
    def part(net, lens):
        module = net.language_model.model.layers[index].self_attn
        return module, lambda m, x: m(x, None, lens), drawn(1, TOKENS, 26)

    return part


def _embedding(net, lens):
    model, ids = net.language_model.model, small.ids(1, TOKENS)
    return model.embed_tokens, lambda m, x: m(ids) + x, drawn(1, TOKENS, 26)


def _moe(net, lens):
    module = net.language_model.model.layers[1].block_sparse_moe
    return module, lambda m, x: m(x), drawn(1, TOKENS, 26)


def _mlp(net, lens):
    """SiTU between its projections."""
    module = net.language_model.model.layers[0].mlp
    return module, lambda m, x: m(x), drawn(1, TOKENS, 26)


def _norm(net, lens):
    module = net.language_model.model.norm
    return module, lambda m, x: m(x), drawn(1, TOKENS, 26)


def _attn_res(net, lens):
    """A retrieval from two blocks and the running sum."""
    layer = net.language_model.model.layers[1]
    module = torch.nn.ModuleList([layer.mlp_res_norm, layer.mlp_res_proj])

    def run(m, x):
        depth = Depth(prefix=x[:1], eps=1e-5)
        depth.commit()
        depth.add(x[1:2])
        depth.commit()
        depth.add(x[2:])
        return depth.retrieve(m[0], m[1], x.dtype)

    return module, run, drawn(3, TOKENS, 26)


def _tower(net, lens):
    items = [tuple(grid) for grid in GRIDS.tolist()]
    size = sum(t * h * w for t, h, w in items)
    return net.vision_tower, lambda m, x: m(x, items), drawn(size, 3, 14, 14)


def _projector(net, lens):
    with torch.no_grad():
        tower, run, pixels = _tower(net, lens)
        features = run(tower, pixels)
    return net.mm_projector, lambda m, x: m(x), features


def _mtp(net, lens):
    module, ids = net.language_model.model.layers[-1], small.ids(1, TOKENS)
    return module, lambda m, x: m(ids, x, lens), drawn(1, TOKENS, 26)


def _whole(net, lens):
    """All parts at once: pictures, packed documents, the trunk and the MTP layer."""
    ids = small.ids(1, TOKENS)
    ids[0, 3:6] = small.MEDIA
    bounds = torch.tensor([0, *(lens or (TOKENS,))]).cumsum(0) if lens else None
    grids = torch.tensor([[1, 2, 4], [1, 2, 2]])

    def run(m, x):
        taps: Taps = {}
        seen = m.encode_images(x, grids)
        logits = m(ids, features=seen, cu_seqlens=bounds, taps=taps)
        layer = m.language_model.model.layers[-1]
        return logits + layer(ids, taps["output_attn_res"], lens)

    return net, run, drawn(12, 3, 14, 14)


PARTS = {
    "embedding": _embedding,
    "KDA": _mixer(0),
    "MLA": _mixer(3),
    "MoE": _moe,
    "SiTU": _mlp,
    "norm": _norm,
    "AttnRes": _attn_res,
    "tower": _tower,
    "projector": _projector,
    "MTP": _mtp,
    "whole": _whole,
}
CASES = [
    (name, lens)
    for name in PARTS
    for lens in (None, PACKED)
    if lens is None or name in ("KDA", "MLA", "MTP", "whole")
]


def gradients(module, run, x):
    """The output against fixed numbers, and gradients of x and of all parameters."""
    x = x.clone().requires_grad_()
    leaves = {"x": x} | {n: p for n, p in module.named_parameters() if p.requires_grad}
    out = run(module, x)
    loss = (out * drawn(*out.shape, seed=1).to(out.dtype)).sum()
    found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    return dict(zip(leaves, found, strict=True))


def groups(name, leaves):
    """Leaves that are moved together: each alone, of a whole model those of a part."""
    found = {}
    for leaf in leaves:
        part = leaf.partition(".")[0] if name == "whole" else leaf
        found.setdefault(part, []).append(leaf)
    return found


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_gradients_are_finite_differences(net, name, lens):
    module, run, x = PARTS[name](net, lens)
    given = gradients(module, run, x)
    values = {n: x if n == "x" else module.get_parameter(n).data for n in given}
    shake = None

    def loss():
        nonlocal shake
        with torch.no_grad():
            out = run(module, x)
        shake = drawn(*out.shape, seed=1) if shake is None else shake
        return float((out * shake).sum())

    for part, leaves in groups(name, given).items():
        ways = {n: drawn(*values[n].shape, seed=2 + i) for i, n in enumerate(leaves)}
        kept = {n: values[n].clone() for n in leaves}
        sides = []
        for sign in (1, -1):
            for n in leaves:
                values[n].copy_(kept[n] + sign * STEP * ways[n])
            sides.append(loss())
        for n in leaves:
            values[n].copy_(kept[n])
        used = [n for n in leaves if given[n] is not None]
        wanted = (sides[0] - sides[1]) / (2 * STEP)
        found = sum(float((given[n] * ways[n]).sum()) for n in used)
        scale = sum(float(given[n].norm() * ways[n].norm()) for n in used)
        assert abs(found - wanted) <= 1e-6 * max(scale, 1e-2), (part, found, wanted)


@pytest.mark.parametrize("kernels", ["torch", "native"])
@pytest.mark.parametrize(("name", "lens"), CASES)
def test_single_precision_of_either_kernel_is_float64(net, name, lens, kernels):
    if kernels == "native":
        from k3.kernels.native import library

        assert library.load() is not None, library.absent()
    wanted = gradients(*PARTS[name](net, lens))
    single = small.model(torch.float32, net.config)
    module, run, x = PARTS[name](single, lens)
    with choose.use(kernels):
        found = gradients(module, run, x.float())
    for leaf, gradient in wanted.items():
        if gradient is None:
            assert found[leaf] is None
        else:
            assert small.gap(found[leaf], gradient) < 1e-4, leaf
