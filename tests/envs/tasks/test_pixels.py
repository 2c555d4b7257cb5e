"""The module that goes into sandboxes: the same numbers as Pillow's."""

import io

import numpy as np
import pytest
from PIL import Image

from k3.data.tasks import drawing
from k3.envs.tasks import pixels
from k3.envs.tasks.pixels import Picture


@pytest.fixture
def array():
    return np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def as_array(picture):
    shape = (picture.height, picture.width, 3)
    return np.frombuffer(picture.data, np.uint8).reshape(shape)


def test_what_is_loaded_cropped_zoomed_and_shown(array, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "picture.ppm").write_bytes(b"P6 7 5 255\n" + array.tobytes())
    picture = pixels.load()
    assert np.array_equal(as_array(picture), array)
    assert picture.at(6, 4) == tuple(array[4, 6])
    cut = picture.crop(2, 1, 3, 2)
    assert np.array_equal(as_array(cut), array[1:3, 2:5])
    assert as_array(picture.crop(5, 3, 100, 100)).shape == (2, 2, 3)
    wide = cut.zoom(3)
    assert np.array_equal(as_array(wide), array[1:3, 2:5].repeat(3, 0).repeat(3, 1))
    wide.show("wide")
    stored = (tmp_path / "show" / "wide.png").read_bytes()
    assert np.array_equal(np.array(Image.open(io.BytesIO(stored))), as_array(wide))


def test_bytes_that_look_like_blanks_are_kept(tmp_path):
    path = tmp_path / "a.ppm"
    path.write_bytes(b"P6 1 1 255\n" + b"\n \t")
    assert pixels.load(str(path)).at(0, 0) == (10, 32, 9)
    path.write_bytes(b"P5 1 1 255\n...")
    with pytest.raises(ValueError, match="no P6 file"):
        pixels.load(str(path))


def test_parts_are_boxes_and_their_colours_are_those_of_the_drawings():
    shapes = [("square", "red", 3, 4, 12), ("circle", "red", 30, 8, 16)]
    shapes.append(("square", "blue", 20, 40, 12))
    painted = drawing.paint(shapes)
    picture = Picture(*painted.size, painted.tobytes())
    assert picture.parts("red") == [(3, 4, 14, 15), (30, 8, 45, 23)]
    assert picture.box("red") == (3, 4, 45, 23)
    assert picture.box("yellow") is None
    assert pixels.COLOURS == {**drawing.COLOURS, "white": (255, 255, 255)}
