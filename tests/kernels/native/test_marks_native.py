"""Marks see every change of a dict and every move of a tensor's numbers."""

import gc
from collections import OrderedDict

import pytest
import torch
from torch import nn

from k3.kernels.native import library, marks

pytestmark = pytest.mark.skipif(
    library.load() is None or marks.words() is None,
    reason="needs the native kernels, and a CPython that counts changes of dicts",
)


class Holder:
    """Something with attributes."""


def scene():
    """Dicts of three kinds and two tensors, beside their marks."""
    holder = Holder()
    holder.first = 1
    dicts = {"w": object()}, OrderedDict(), vars(holder)
    tensors = torch.arange(12.0), nn.Parameter(torch.ones(3, 4))
    return dicts, tensors, marks.Marks(dicts, tensors)


def test_what_stays_stands():
    dicts, tensors, marked = scene()
    assert marked.stand()
    tensors[0].mul_(2)
    _ = dicts[0]["w"], [*dicts[1].items()], tensors[1].view(-1) + 1, len(dicts[2])
    assert marked.stand()


@pytest.mark.parametrize(
    "change",
    [
        lambda d, t: d[0].update(w=1),
        lambda d, t: d[0].pop("w"),
        lambda d, t: d[0].setdefault("other", 1),
        lambda d, t: d[1].update(hook=len),
        lambda d, t: d[2].update(first=2),
        lambda d, t: setattr(t[0], "data", torch.zeros(12)),
        lambda d, t: setattr(t[1], "data", torch.zeros(3, 4)),
        lambda d, t: t[0].set_(t[0].untyped_storage(), 1, (11,)),
        lambda d, t: t[0].resize_(100000),
        lambda d, t: torch.utils.swap_tensors(t[0], torch.ones(12)),
    ],
)
def test_a_change_is_seen(change):
    dicts, tensors, marked = scene()
    change(dicts, tensors)
    gc.collect()
    assert not marked.stand()


def test_an_attribute_set_in_a_hot_loop_is_seen():
    holder = Holder()
    holder.first = 0
    held = vars(holder)
    for i in range(1, 100):
        marked = marks.Marks([held], [])
        assert marked.stand()
        holder.first = i
        assert not marked.stand()


def test_a_modules_own_changes_are_seen():
    layer = nn.Linear(3, 5)
    dicts = layer._parameters, layer._modules, layer._forward_hooks
    changes = [
        lambda: setattr(layer, "weight", nn.Parameter(torch.ones(5, 3))),
        lambda: setattr(layer, "inner", nn.Identity()),
        lambda: layer.register_forward_hook(print),
        lambda: setattr(layer.bias, "data", torch.ones(5)),
        layer.double,
    ]
    for change in changes:
        marked = marks.Marks(dicts, [layer.weight, layer.bias])
        assert marked.stand()
        change()
        assert not marked.stand()


def test_where_words_are_not_found_nothing_stands(monkeypatch):
    monkeypatch.setattr(marks, "words", lambda: None)
    assert not marks.Marks([{}], [torch.ones(2)]).stand()


def test_words_that_an_experiment_does_not_find_are_none(monkeypatch):
    monkeypatch.setattr(marks, "_tensor", lambda x: ([16], [16], [], [16]))
    assert marks.words.__wrapped__() is None
    monkeypatch.setattr(marks.sys.implementation, "name", "another")
    assert marks.words.__wrapped__() is None


def test_nothing_of_nothing_stands():
    assert marks.Marks([], []).stand()
