"""The vision tower: grids, clips, positions, merging, and the way into the text."""

import pytest
import torch
import torch.nn.functional as F
from small import MEDIA, config, gap, ids, model

from k3.errors import RequestError, ShapeError
from k3.model import vision

IMAGE, CLIP = (1, 4, 6), (3, 4, 4)


@pytest.fixture(scope="module")
def net():
    return model(torch.float64, config(vision={}))


@pytest.fixture(scope="module")
def divided():
    return model(torch.float64, config(vision={"attention": "divided"}))


def pixels(*grids, seed=0):
    generator = torch.Generator().manual_seed(seed)
    total = sum(t * h * w for t, h, w in grids)
    return torch.randn(total, 3, 14, 14, generator=generator).double()


def encode(net, patches, *grids):
    return net.encode_images(
        patches, torch.tensor(grids, dtype=torch.int64).view(-1, 3)
    )


def test_items_are_encoded_alone(net, divided, poisoned):
    grids = [IMAGE, CLIP, (1, 10, 2), (2, 2, 2)]
    patches = pixels(*grids)
    for tower in (net, divided):
        whole, start, row = encode(tower, patches, *grids), 0, 0
        assert whole.shape == (6 + 4 + 5 + 1, 26)
        for t, h, w in grids:
            n, m = t * h * w, h * w // 4
            alone = encode(tower, patches[start : start + n], (t, h, w))
            assert gap(whole[row : row + m], alone) < 1e-12
            start, row = start + n, row + m


def test_report_64_clips_do_not_attend_to_each_other(net):
    grids = [CLIP, CLIP, (1, 4, 4)]
    patches = pixels(*grids)
    before = encode(net, patches, *grids)
    # (h/2)(w/2) tokens, whatever the number of frames; odd numbers of them too.
    assert before.shape[0] == 12
    patches[:48] = patches[:48] + 1
    after = encode(net, patches, *grids)
    assert torch.equal(after[4:], before[4:])
    assert gap(after[:4], before[:4]) > 1e-3


@pytest.mark.parametrize("tower", ["net", "divided"])
def test_report_64_the_order_of_frames_matters(tower, request):
    tower = request.getfixturevalue(tower)
    patches = pixels(CLIP).view(3, 16, 3, 14, 14)
    before = encode(tower, patches.flatten(0, 1), CLIP)
    after = encode(tower, patches.flip(0).flatten(0, 1), CLIP)
    assert gap(after, before) > 1e-4


def test_report_65_a_one_frame_clip_is_an_image(net):
    """Our choice, the release's: only several frames get a time embedding."""
    embed = net.vision_tower.patch_embed
    alone = embed.pos_emb((1, 4, 6))
    first, *_ = embed.pos_emb((2, 4, 6)).split(24)
    constant = vision.time_embedding(1, 32)
    assert gap(first - alone, constant.expand(24, -1)) < 1e-12
    assert constant[0, :16].abs().max() == 0
    assert (constant[0, 16:] == 1).all()


def test_report_65_temporal_attention_over_one_frame_still_acts(divided):
    block = divided.vision_tower.encoder.blocks[0]
    x = torch.randn(24, 32, dtype=torch.float64)
    turn = torch.zeros(24, 8, dtype=torch.float64)
    spatial = (
        x
        + vision.attend(block.norm0(x)[None], block.wqkv, block.wo, block.heads, turn)[
            0
        ]
    )
    # Over one frame, attention is the value projection of the place itself.
    value = block.wqkv_time(block.norm_time(spatial))[:, 96:]
    want = spatial + block.wo_time(value)
    want = want + block.mlp(block.norm1(want))
    assert gap(block(x, [(1, 4, 6)], [turn]), want) < 1e-12


def test_divided_attention_has_its_own_weights(net, divided):
    names = {n for n, _ in divided.named_parameters()} - {
        n for n, _ in net.named_parameters()
    }
    block = "vision_tower.encoder.blocks.0."
    want = {f"{block}{n}.weight" for n in ("norm_time", "wqkv_time", "wo_time")}
    assert {n for n in names if n.startswith(block)} == want


def test_divided_is_spatial_within_frames_then_temporal_within_places(divided):
    """Frame 1 reaches another place of frame 0 only through a second block."""
    block = divided.vision_tower.encoder.blocks[0]
    x = torch.randn(2, 6, 32, dtype=torch.float64)
    turn = torch.zeros(12, 8, dtype=torch.float64)

    def run(y):
        return block(y.flatten(0, 1), [(2, 2, 3)], [turn]).view(2, 6, 32)

    before = run(x)
    x[1, 4] += 1
    after = run(x)
    moved = (after - before).abs().amax(-1) > 1e-9
    assert moved[1].all()
    # Places of frame 0 see the places of frame 1, each its own, all of which moved.
    assert moved[0].all()
    assert gap(after[0, 4], before[0, 4]) > gap(after[0, 0], before[0, 0])


def test_patches_are_a_convolution(net):
    embed, patches = net.vision_tower.patch_embed, pixels(IMAGE)
    got = embed(patches, [IMAGE]) - embed.pos_emb(IMAGE)
    assert gap(got, embed.proj(patches).flatten(1)) < 1e-12


@pytest.mark.parametrize("size", [(2, 2), (4, 6), (8, 8), (16, 10), (3, 5)])
def test_positions_are_stretched_with_clamped_centres(net, size):
    table = net.vision_tower.patch_embed.pos_emb.weight.detach()
    got = net.vision_tower.patch_embed.pos_emb((1, *size)).view(*size, -1)

    def line(n):
        at = ((torch.arange(n).double() + 0.5) * 8 / n - 0.5).clamp(0, 7)
        low = at.floor().long()
        return low, (low + 1).clamp(max=7), (at - low)[:, None]

    (a, b, u), (c, d, v) = line(size[0]), line(size[1])
    rows = table[a] * (1 - u[:, None]) + table[b] * u[:, None]
    want = rows[:, c] * (1 - v) + rows[:, d] * v
    assert gap(got, want) < 1e-6


def test_merge_concatenates_neighbours_row_first_after_the_mean_over_time():
    t, h, w = 2, 4, 6
    place = torch.arange(h * w).view(h, w)
    frames = torch.stack([place, place + 1000]).double()
    got = vision.merge(frames.view(-1, 1), (t, h, w), (2, 2))
    want = [
        [place[i + a, j + b] + 500 for a in (0, 1) for b in (0, 1)]
        for i in range(0, h, 2)
        for j in range(0, w, 2)
    ]
    assert got.tolist() == torch.tensor(want).tolist()


def test_the_norm_takes_the_step_of_its_dtype():
    for dtype in (torch.float32, torch.bfloat16):
        norm = vision.ViTNorm(4, dtype)
        x = torch.full((1, 4), 1e-2, dtype=dtype)
        eps = torch.finfo(dtype).eps
        want = x.double() / (x.double().square().mean() + eps).sqrt()
        assert gap(norm(x), want) < 1e-2


@pytest.mark.parametrize(
    "grid", [(1, 3, 4), (1, 4, 3), (0, 4, 4), (5, 4, 4), (1, 0, 4), (1, -2, 4)]
)
def test_grids_that_do_not_fit(net, grid):
    with pytest.raises(ShapeError, match=r"frames 1\.\.4, rows a multiple of 2"):
        encode(net, pixels((1, 4, 4)), grid)


def test_patches_that_do_not_fit_the_grids(net):
    with pytest.raises(ShapeError, match=r"need pixel_values \(24, 3, 14, 14\): got"):
        encode(net, pixels((1, 4, 4)), IMAGE)
    with pytest.raises(ShapeError, match=r"\(16, 3, 14, 14\): got \(16, 3, 13, 13\)"):
        encode(net, pixels((1, 4, 4))[:, :, 1:, 1:], (1, 4, 4))


def test_a_text_model_refuses_images():
    with pytest.raises(RequestError, match="has no vision tower: got an image; load"):
        encode(model(), pixels(IMAGE), IMAGE)


def test_no_image_at_all(net):
    none = encode(net, pixels())
    assert none.shape == (0, 26)
    assert torch.equal(net(ids(1, 3), features=none), net(ids(1, 3)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_towers(dtype):
    narrow = model(dtype, config(vision={}))
    out = encode(narrow, pixels(IMAGE, CLIP).float(), IMAGE, CLIP)
    wide = model(dtype, config(vision={})).double()
    assert out.dtype == dtype
    want = encode(wide, pixels(IMAGE, CLIP), IMAGE, CLIP)
    assert F.cosine_similarity(out.double(), want, dim=-1).min() > 0.99


def test_gradients_reach_every_weight_of_the_tower(divided):
    tokens = ids(1, 8)
    tokens[0, 1:5] = MEDIA
    features = encode(divided, pixels(CLIP), CLIP)
    divided(tokens, features=features).square().sum().backward()
    for name, p in divided.named_parameters():
        if not name.startswith("language_model"):
            assert p.grad.isfinite().all(), name
            assert p.grad.abs().max() > 0, name
    divided.zero_grad()
