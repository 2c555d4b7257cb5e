"""Which frames of a clip look like the one before."""

import io

import numpy as np
import pytest

from k3.data import frames
from k3.data.images import pillow


def picture(levels):
    return pillow().fromarray(np.asarray(levels, np.uint8))


def scene(seed, size=64):
    """A smooth pattern: a coarse one, enlarged."""
    levels = np.random.default_rng(seed).integers(0, 256, (9, 9))
    return picture(levels).resize((size, size), pillow().Resampling.BICUBIC)


def test_bits_say_where_it_grows_brighter():
    rising = picture(np.tile(np.arange(90), (80, 1)))
    assert frames.hashed(rising).bits == 2**64 - 1
    falling = picture(np.tile(np.arange(90)[::-1], (80, 1)))
    assert frames.hashed(falling).bits == 0
    assert frames.hashed(rising).distance(frames.hashed(falling)) == 64


@pytest.mark.parametrize("seed", range(5))
def test_noise_scale_and_compression_change_little(seed):
    base = scene(seed)
    noise = np.random.default_rng(seed).normal(0, 3, (64, 64))
    noisy = picture((np.asarray(base, float) + noise).clip(0, 255))
    file = io.BytesIO()
    base.save(file, "JPEG", quality=60)
    squeezed = pillow().open(file)
    others = (noisy, squeezed, base.resize((200, 150)), base.convert("RGB"))
    for other in others:
        assert frames.hashed(base).near(frames.hashed(other))


def test_other_scenes_are_far():
    found = [frames.hashed(scene(seed)) for seed in range(12)]
    pairs = [(a, b) for i, a in enumerate(found) for b in found[:i]]
    assert min(a.distance(b) for a, b in pairs) > frames.BITS


def test_a_clip_keeps_the_first_of_each_scene():
    a, b = scene(1), scene(2)
    assert frames.distinct([a, a, b, b, b, a]) == [0, 2, 5]
    assert frames.distinct([]) == []


def test_flat_pictures_differ_by_their_level():
    flat = [picture(np.full((9, 9), level)) for level in (0, 5, 200)]
    assert frames.distinct(flat) == [0, 2]
