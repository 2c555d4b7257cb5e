"""Pixels to patches as released, and placeholders to rows."""

import random

import numpy as np
import pytest
from PIL import Image

from k3.data import media
from k3.data.limits import ImageLimits
from k3.errors import RequestError

RELEASED = ImageLimits()


def _noise(width, height, channels=3, seed=0):
    shape = (height, width, channels)
    levels = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    return Image.fromarray(levels)


def _photo(width, height):
    """Smooth shades with edges: what a photograph is to a resizer."""
    y, x = np.mgrid[:height, :width]
    waves = np.sin(x / 37) * np.cos(y / 53) * 90 + 128
    waves[(x // 64 + y // 64) % 3 == 0] += 30
    shades = np.stack([waves, waves[::-1], 255 - waves], axis=-1)
    return Image.fromarray(shades.clip(0, 255).astype(np.uint8))


def _unpatch(patches, grid):
    _, rows, columns = grid
    tiles = patches.reshape(rows, columns, 3, 14, 14).transpose(0, 3, 1, 4, 2)
    return tiles.reshape(rows * 14, columns * 14, 3)


@pytest.mark.parametrize(
    ("size", "grid"),
    [
        ((225, 223), (1, 16, 18)),
        ((224, 224), (1, 16, 16)),
        ((611, 437), (1, 32, 44)),
        ((1, 1), (1, 2, 2)),
        ((100_000, 100), (1, 2, 512)),
    ],
)
def test_patches_fill_the_grid(size, grid):
    patches, found = media.preprocess(Image.new("RGB", size, (255, 0, 51)))
    assert found == grid
    assert patches.shape == (grid[1] * grid[2], 3, 14, 14)
    assert patches.dtype == np.float32
    colour = patches[0, :, 0, 0].tolist()
    assert colour == pytest.approx([1, -1, -0.6], abs=1e-6)


def test_patches_are_the_pixels_in_raster_order():
    picture = _noise(41, 29)
    patches, grid = media.preprocess(picture)
    assert grid == (1, 4, 4)
    levels = _unpatch(patches, grid) * 127.5 + 127.5
    assert np.array_equal(levels[:29, :41].round(), np.asarray(picture))
    # Padding is level 0 before scaling, right and bottom.
    assert (levels[29:] == 0).all()
    assert (levels[:, 41:] == 0).all()


def test_scaled_values_follow_the_formula_in_float32():
    canvas = np.arange(256, dtype=np.uint8)[:, None, None].repeat(14, 1).repeat(3, 2)
    found = media.patchify(canvas[:252])
    levels = np.arange(252, dtype=np.float32)
    expected = (levels / np.float32(255) - np.float32(0.5)) / np.float32(0.5)
    assert np.array_equal(found[:, 0, :, 0].ravel(), expected)


@pytest.mark.parametrize("make", [_noise, _photo])
def test_report_61_resize_is_pillows_bicubic(make):
    """1024x1024 to 476x476, against Pillow's answer at that size."""
    limits = ImageLimits(patch_limit_on_one_side=34)
    picture = make(1024, 1024)
    found = media.pixels(picture, limits)
    assert found.dtype == np.uint8
    assert found.shape == (476, 476, 3)
    reference = picture.resize((476, 476), Image.Resampling.BICUBIC)
    gap = np.abs(found.astype(int) - np.asarray(reference).astype(int))
    assert gap.mean(axis=(0, 1)).max() <= 0.2
    assert gap.max() <= 5
    # Scaled values are whole levels: 8 bits came before normalising.
    patches, _ = media.preprocess(picture, limits)
    levels = patches.astype(np.float64) * 127.5 + 127.5
    assert np.abs(levels - levels.round()).max() < 1e-4


def test_report_61_downscaling_antialiases():
    """Pixel-wide stripes become even grey; without antialiasing they stay."""
    stripes = np.zeros((1024, 1024, 3), np.uint8)
    stripes[:, ::2] = 255
    limits = ImageLimits(patch_limit_on_one_side=16)
    found = media.pixels(Image.fromarray(stripes), limits)
    assert found.shape == (224, 224, 3)
    assert found[8:-8, 8:-8].std() < 8


def test_report_61_identity_size_keeps_the_pixels():
    picture = _noise(476, 476)
    assert np.array_equal(media.pixels(picture), np.asarray(picture))


def test_report_62_placeholders_equal_feature_rows():
    rng = random.Random(62)
    for _ in range(500):
        width, height = rng.randint(1, 4000), rng.randint(1, 4000)
        _, rows, columns = grid = (1, *RELEASED.grid(width, height))
        ids = media.expand_placeholders([5, 9, 6], [grid], 9)
        assert ids.count(9) == (rows // 2) * (columns // 2)
        assert len(ids) == RELEASED.num_tokens(width, height) + 2


@pytest.mark.parametrize("size", [(28, 28), (45, 61), (1, 1)])
def test_report_65_an_image_is_its_one_frame_clip(size):
    picture = _noise(*size)
    patches, grid = media.preprocess(picture)
    clip, clip_grid = media.preprocess_clip([picture])
    assert grid == clip_grid
    assert grid[0] == 1
    assert np.array_equal(patches, clip)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_clip_is_its_frames_one_after_another(count):
    frames = [_noise(30, 57, seed=seed) for seed in range(count)]
    patches, grid = media.preprocess_clip(frames)
    assert grid == (count, 6, 4)
    parts = np.split(patches, count)
    for part, frame in zip(parts, frames, strict=True):
        assert np.array_equal(part, media.preprocess(frame)[0])


@pytest.mark.parametrize("count", [0, 5])
def test_other_frame_counts_are_refused(count):
    with pytest.raises(RequestError, match=f"1 to 4 frames: got {count}"):
        media.preprocess_clip([_noise(28, 28)] * count)


def test_frames_of_two_sizes_are_refused():
    with pytest.raises(RequestError, match="must have one size"):
        media.preprocess_clip([_noise(28, 28), _noise(28, 29)])


def test_full_transparency_shows_the_chessboard():
    found = media.pixels(Image.new("RGBA", (28, 28), (1, 2, 3, 0)))
    assert (found[:8, :8] == 255).all()
    assert (found[:8, 8:16] == 180).all()
    assert (found[8:16, :8] == 180).all()
    assert (found[8:16, 8:16] == 255).all()
    assert (found[24:, 24:] == 255).all()


def test_alpha_mixes_and_truncates():
    found = media.pixels(Image.new("RGBA", (28, 28), (0, 100, 255, 128)))
    # 127/255 of the ground shows: 127 cut in float32, 177.2, 255 and 89.6.
    assert found[0, 0].tolist() == [126, 177, 255]
    assert found[0, 8].tolist() == [89, 139, 217]


def test_opaque_alpha_changes_nothing():
    picture = _noise(33, 30)
    opaque = picture.copy()
    opaque.putalpha(255)
    assert np.array_equal(media.pixels(picture), media.pixels(opaque))


def test_the_chessboard_is_filled_after_resizing():
    limits = ImageLimits(patch_limit_on_one_side=2)
    found = media.pixels(Image.new("RGBA", (56, 56), (0, 0, 0, 0)), limits)
    assert found.shape == (28, 28, 3)
    assert (found[0, ::8, 0] == [255, 180, 255, 180]).all()


def test_several_images_follow_one_another():
    pictures = [_noise(28, 28, seed=1), _noise(57, 28, seed=2)]
    patches, grids = media.preprocess_all(pictures)
    assert grids.tolist() == [[1, 2, 2], [1, 2, 6]]
    assert np.array_equal(patches[:4], media.preprocess(pictures[0])[0])
    assert np.array_equal(patches[4:], media.preprocess(pictures[1])[0])
    none, no_grids = media.preprocess_all([])
    assert none.shape == (0, 3, 14, 14)
    assert no_grids.shape == (0, 3)


def test_prompt_text_is_five_segments(tokenizer):
    text = media.prompt_text(1920, 1080)
    ids = tokenizer.encode(text, allow_special=True)
    specials = [i for i in ids if tokenizer.is_special(i)]
    names = ("media_begin", "media_content", "media_pad", "media_end")
    assert specials == [tokenizer.special_id(f"<|{name}|>") for name in names]
    assert "image 1920x1080" in tokenizer.decode(ids)


def test_placeholders_expand_in_order():
    grids = [(1, 2, 4), (3, 4, 4), (1, 2, 2)]
    ids = media.expand_placeholders([9, 1, 9, 2, 9], grids, 9)
    assert ids == [9] * 2 + [1] + [9] * 4 + [2] + [9]
    assert media.expand_placeholders([1, 2], [], 9) == [1, 2]
    assert media.expand_placeholders([9], np.array([[2, 2, 4]]), 9) == [9, 9]


@pytest.mark.parametrize("ids", [[1], [9, 9]])
def test_another_number_of_placeholders_is_refused(ids):
    with pytest.raises(RequestError, match=f"got {ids.count(9)} for 1 images"):
        media.expand_placeholders(ids, [(1, 2, 2)], 9)
