"""Keys: images by content, chains that grow, and what is refused."""

import pytest
import torch

from k3.errors import RequestError
from k3.serve import Image, keys


def test_report_13_two_thousand_images_have_two_thousand_keys():
    generator = torch.Generator().manual_seed(0)
    shape = (4, 3, 2, 2)
    made = {
        keys.content(torch.rand(shape, generator=generator), (1, 2, 2))
        for _ in range(2000)
    }
    assert len(made) == 2000
    assert {len(digest) for digest in made} == {32}
    flat = torch.zeros(shape)
    assert keys.content(flat, (1, 2, 2)) != keys.content(flat, (1, 1, 4))


def test_a_chain_grows_as_it_was_made_whole():
    root = keys.root(b"weights")
    whole = keys.Chain(root, 16).extend(range(100))
    grown = keys.Chain(root, 16)
    for start in range(0, 100, 7):
        grown.extend(range(start, min(start + 7, 100)))
    assert grown.keys == whole.keys
    assert (len(whole), len(whole.keys), len(set(whole.keys))) == (100, 6, 6)
    assert len(keys.Chain(root, 16).extend(range(96)).reusable()) == 5


def test_parts_of_the_root_are_kept_apart():
    made = {
        keys.root(b"ab", b"c"),
        keys.root(b"a", b"bc"),
        keys.root(b"abc"),
        keys.root(b"abc", salt=b"tenant"),
        keys.root(b"abc", salt=b"tenant" * 20),
    }
    assert len(made) == 5


def test_images_are_checked():
    digest = bytes(32)
    with pytest.raises(RequestError, match="digest of 32 bytes: got 0, 1 and 2 bytes"):
        Image(start=0, tokens=1, digest=b"16")
    images = [
        Image(start=0, tokens=4, digest=digest),
        Image(start=3, tokens=4, digest=digest),
    ]
    with pytest.raises(RequestError, match=r"starts at 3, before the end of .* at 4"):
        keys.Chain(keys.root(), 16, images)
