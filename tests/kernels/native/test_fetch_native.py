"""Bringing objects near changes nothing, whatever has become of them."""

import gc

import pytest
import torch
from torch import nn

from k3.kernels.native import fetch, library

pytestmark = pytest.mark.skipif(
    library.load() is None, reason="needs the native kernels"
)


def test_what_is_brought_near_stays_as_it_is():
    held = nn.Linear(3, 5)._parameters
    before = {name: x.clone() for name, x in held.items()}
    fetch.Objects([held, {}], held.values()).fetch()
    assert held.keys() == before.keys()
    assert all(torch.equal(held[name], x) for name, x in before.items())


def test_a_table_or_storage_that_is_gone_is_no_matter():
    held = {"w": torch.zeros(1 << 20)}
    objects = fetch.Objects([held], [held["w"]])
    held["w"].set_(torch.zeros(3).untyped_storage())
    held.update({str(i): i for i in range(1000)})
    gc.collect()
    objects.fetch()
    assert len(held) == 1001


def test_nothing_of_nothing():
    fetch.Objects([], []).fetch()
