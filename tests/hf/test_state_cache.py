"""A DecodeState as transformers' Cache."""

import copy

import pytest
import small
import torch

from k3.errors import RequestError
from k3.hf import StateCache


def run(cache, model, ids):
    with torch.no_grad():
        logits, state = model(ids, state=cache.begin(model, len(ids)))
    cache.moved(state, ids.shape[1])
    return logits


def test_it_counts_forks_selects_and_resets():
    model, ids = small.model(), torch.tensor([[1, 2, 3], [4, 5, 6]])
    cache = StateCache()
    assert (len(cache), cache.batch_size, cache.get_seq_length()) == (0, -1, 0)
    run(cache, model, ids)
    assert (len(cache), cache.batch_size, cache.get_seq_length()) == (7, 2, 3)
    assert cache.get_mask_sizes(2, 0) == (5, 0)
    assert cache.get_max_length() == -1
    assert repr(cache) == "StateCache(2 sequences, 3 columns)"
    assert (cache.is_compileable, cache.is_initialized) == (False, True)
    branch, deep = copy.copy(cache), copy.deepcopy(cache)
    swapped = cache.fork()
    swapped.reorder_cache(torch.tensor([1, 1]))
    swapped.batch_repeat_interleave(2)
    more = torch.tensor([[7], [8]])
    wanted = run(branch, model, more)
    assert torch.equal(run(deep, model, more), wanted)
    out = run(swapped, model, torch.tensor([[8]] * 4))
    assert (out - wanted[1]).abs().max() <= 2e-5 * wanted.abs().max()
    cache.reset()
    assert cache.batch_size == -1


def test_it_takes_back_what_was_kept():
    model, ids = small.model(), torch.tensor([[1, 2, 3, 4]])
    cache = StateCache(model.init_state(1, keep_inputs=3))
    assert cache.is_croppable
    run(cache, model, ids[:, :2])
    wanted = run(cache.fork(), model, ids[:, 2:3])
    run(cache, model, ids[:, 2:])
    cache.crop(-2)
    assert cache.get_seq_length() == 2
    again = run(cache, model, ids[:, 2:3])
    assert (again - wanted).abs().max() <= 2e-5 * wanted.abs().max()
    with pytest.raises(RequestError, match="takes no keys and values of a layer"):
        cache.update(None, None, 0)
