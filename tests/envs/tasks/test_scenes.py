"""Scenes: what is asked is drawn, and nothing touches."""

import random

import pytest

from k3.envs.tasks import scenes
from k3.envs.tasks.pixels import Picture


@pytest.mark.parametrize("kind", range(4))
def test_shapes_are_apart_and_where_they_are_said_to_be(kind):
    for seed in range(3):
        rng = random.Random(seed)
        scene = scenes.draw(rng, kind)
        painted = scenes.paint(scene, rng)
        picture = Picture(*painted.size, painted.tobytes())
        for colour in ("red", "green", "blue", "yellow"):
            own = {
                (left, top, left + side - 1, top + side - 1)
                for _, shade, left, top, side in scene.shapes
                if shade == colour
            }
            found = [b for b in picture.parts(colour) if b[2] - b[0] + 1 >= 6]
            assert set(found) == own or scene.strip
            assert len(found) == len(own) or scene.strip


def test_a_distance_is_between_centres():
    scene = scenes.draw(random.Random(1), 1)
    (_, _, left, top, side), (_, _, other_left, other_top, other_side) = scene.shapes[
        :2
    ]
    x, other_x = left + (side - 1) / 2, other_left + (other_side - 1) / 2
    y, other_y = top + (side - 1) / 2, other_top + (other_side - 1) / 2
    assert scene.right == str(round(((x - other_x) ** 2 + (y - other_y) ** 2) ** 0.5))


def test_shapes_that_are_two_pixels_apart_do_not_touch():
    one = ("square", "red", 10, 10, 6)
    assert not scenes._touch(one, ("square", "red", 18, 10, 6))
    assert scenes._touch(one, ("square", "red", 17, 10, 6))
    assert not scenes._touch(one, ("circle", "red", 10, 2, 6))
