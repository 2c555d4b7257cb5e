"""Embedding with images: the logic's rows are the spec's."""

import random

import numpy as np
import pytest

from k3.logic.falsify import call
from k3.proof import embed
from k3.spec import model

SIZES = [1, 4, 11]
PLACEHOLDER = 2


@pytest.mark.parametrize("size", SIZES)
def test_the_rows_are_those_of_the_spec(size):
    rng = random.Random(size)
    table = np.arange(12.0).reshape(4, 3)
    for _ in range(20):
        ids = [rng.randrange(4) for _ in range(size)]
        images = ids.count(PLACEHOLDER)
        features = np.arange(100.0, 100.0 + 3 * images).reshape(images, 3)
        rows = model.embed(table, ids, features, PLACEHOLDER)
        inputs = [lambda t: ("text", t), lambda n: ("image", n), PLACEHOLDER]
        ours = call(embed.EMBED, [*inputs, 0, tuple(ids)])
        assert len(ours) == len(rows) == size
        for (kind, at), row in zip(ours, rows, strict=True):
            source = table if kind == "text" else features
            assert (row == source[at]).all()
        assert call(embed.IMAGES, [PLACEHOLDER, tuple(ids)]) == images
        for i, token in enumerate(ids):
            n = ids[:i].count(PLACEHOLDER)
            wanted = ("image", n) if token == PLACEHOLDER else ("text", token)
            assert ours[i] == wanted
