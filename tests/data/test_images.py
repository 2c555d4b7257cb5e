"""Odd files: converted by rule, or refused with a sentence."""

import contextlib
import io
import struct
import sys
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from k3.data import images
from k3.errors import RequestError

LIMIT = 89_478_485


def _file(image, kind="PNG", **options):
    stored = io.BytesIO()
    image.save(stored, kind, **options)
    return stored.getvalue()


def _png(width, height, data=b""):
    """A PNG header that promises a size, without the pixels."""

    def part(name, body):
        check = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + check

    header = part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + part(b"IDAT", data) + part(b"IEND", b"")


@pytest.fixture
def photo():
    levels = np.random.default_rng(3).integers(0, 256, (37, 41, 3), np.uint8)
    return Image.fromarray(levels)


def test_paths_bytes_and_images_are_the_same(photo, tmp_path):
    path = tmp_path / "photo.png"
    path.write_bytes(_file(photo))
    for source in (path, str(path), path.read_bytes(), photo):
        found = images.read(source, LIMIT)
        assert found.mode == "RGB"
        assert np.array_equal(np.asarray(found), np.asarray(photo))


@pytest.mark.parametrize("mode", ["1", "L", "CMYK", "YCbCr", "HSV", "LAB"])
def test_colour_kinds_become_rgb(mode):
    assert images.read(Image.new(mode, (5, 3)), LIMIT).mode == "RGB"


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA", "La", "RGBa"])
def test_alpha_is_kept(mode):
    assert images.read(Image.new(mode, (5, 3)), LIMIT).mode == "RGBA"


def test_cmyk_jpeg_has_its_colours():
    stored = _file(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG")
    red, green, blue = images.read(stored, LIMIT).getpixel((5, 5))
    assert red > 220
    assert max(green, blue) < 40


def test_palettes_give_colours_and_their_transparency():
    picture = Image.new("P", (4, 4), 1)
    picture.putpalette([0, 0, 0, 10, 20, 30])
    assert images.read(_file(picture), LIMIT).getpixel((0, 0)) == (10, 20, 30)
    seen = images.read(_file(picture, transparency=1), LIMIT)
    assert seen.getpixel((0, 0)) == (10, 20, 30, 0)


def test_one_transparent_colour_gives_alpha():
    stored = _file(Image.new("RGB", (4, 4), (9, 9, 9)), transparency=(9, 9, 9))
    assert images.read(stored, LIMIT).getpixel((0, 0)) == (9, 9, 9, 0)


def test_sixteen_bit_grey_keeps_its_high_byte():
    levels = (np.arange(64, dtype=np.uint16) * 1024 + 1023).reshape(8, 8)
    for stored in (
        _file(Image.fromarray(levels)),
        b"P5 8 8 65535\n" + levels.byteswap().tobytes(),
    ):
        found = np.asarray(images.read(stored, LIMIT))
        assert np.array_equal(found[..., 0], (levels >> 8).astype(np.uint8))


def test_orientation_tags_are_not_applied(photo):
    exif = Image.Exif()
    exif[0x0112] = 6
    found = images.read(_file(photo, exif=exif), LIMIT)
    assert found.size == photo.size
    assert np.array_equal(np.asarray(found), np.asarray(photo))


def test_of_several_frames_the_first_is_used():
    frames = [Image.new("L", (4, 4), level) for level in (10, 200)]
    stored = _file(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert images.read(stored, LIMIT).getpixel((0, 0)) == (10, 10, 10)


def test_grey_levels_beyond_sixteen_bits_are_refused():
    picture = Image.fromarray(np.array([[70_000, 1]], np.int32))
    with pytest.raises(RequestError, match="must fit 16 bits: got 1 to 70000"):
        images.read(picture, LIMIT)


def test_float_pixels_are_refused():
    with pytest.raises(RequestError, match="got a float image"):
        images.read(Image.new("F", (2, 2)), LIMIT)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"])
def test_truncated_files_are_refused(photo, kind, tmp_path):
    whole = _file(photo, kind)
    path = tmp_path / "cut.img"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RequestError, match=r"known format: cut\.img is not \("):
        images.read(path, LIMIT)


@pytest.mark.parametrize("stored", [b"", b"\0" * 500, b"not an image", _png(0, 5)])
def test_other_bytes_are_refused(stored):
    with pytest.raises(RequestError, match="the image is not"):
        images.read(stored, LIMIT)


@given(st.integers(0, 1500), st.integers(0, 255))
def test_a_broken_byte_gives_an_image_or_a_sentence(place, level):
    stored = bytearray(_file(Image.new("RGB", (40, 40), (1, 2, 3)), "JPEG"))
    stored[place % len(stored)] = level
    # Any exception but RequestError fails the test.
    with warnings.catch_warnings(), contextlib.suppress(RequestError):
        warnings.simplefilter("ignore")
        assert images.read(bytes(stored), LIMIT).mode in ("RGB", "RGBA")


def test_decompression_bombs_are_refused_from_the_header():
    with pytest.raises(RequestError, match="DecompressionBombError"):
        images.read(_png(20_000, 20_000), LIMIT)
    with pytest.raises(RequestError, match="1 to 1000 pixels: the image is 100x11"):
        images.read(_png(100, 11), 1000)


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(RequestError, match=r"nothing\.png' is none"):
        images.read(tmp_path / "nothing.png", LIMIT)
    with pytest.raises(RequestError, match="is none; give its path"):
        images.read(tmp_path, LIMIT)


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(RequestError, match=r"pip install 'k3\[vision\]'"):
        images.read(b"anything", LIMIT)


def test_another_kind_of_source_is_named():
    with pytest.raises(RequestError, match="a path, bytes or a Pillow image: got int"):
        images.read(3, LIMIT)


def test_an_image_that_pillow_cannot_convert_is_refused(photo, monkeypatch):
    def fail(mode):
        raise ValueError("conversion from RGB is not supported")

    monkeypatch.setattr(photo, "load", lambda: fail("RGB"))
    with pytest.raises(RequestError, match="conversion from RGB is not supported"):
        images.read(photo, LIMIT)


@pytest.mark.parametrize("action", ["error", "ignore"])
def test_large_images_are_refused_whatever_the_warning_filter(action):
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        with pytest.raises(RequestError, match="the image is"):
            images.read(_png(10_000, 10_000), LIMIT)
