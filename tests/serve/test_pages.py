"""Pages are taken all or none, counted, and never freed twice."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from k3.errors import RequestError
from k3.serve.pages import Memory, Pages


def test_all_or_none():
    pages = Pages(5)
    first = pages.allocate(3)
    assert sorted(first) == [0, 1, 2]
    assert pages.allocate(3) is None
    assert (pages.num_free, pages.num_used) == (2, 3)
    assert len(pages.allocate(2)) == 2
    assert pages.allocate(0) == ()
    assert pages.allocate(1) is None


def test_a_shared_page_outlives_its_first_holder():
    pages = Pages(2)
    taken = pages.allocate(2)
    pages.share(taken[:1])
    pages.release(taken)
    assert pages.num_free == 1
    pages.release(taken[:1])
    assert pages.num_free == 2


def test_nothing_is_freed_twice():
    pages = Pages(2)
    taken = pages.allocate(1)
    pages.release(taken)
    with pytest.raises(AssertionError, match="released before"):
        pages.release(taken)
    with pytest.raises(AssertionError, match="cannot be shared"):
        pages.share(taken)


def test_no_pages_is_an_error():
    with pytest.raises(RequestError, match="at least one page: got 0; give it more"):
        Pages(0)


@given(st.lists(st.integers(0, 6)), st.randoms())
def test_counts_add_up(sizes, random):
    pages, held = Pages(13), []
    for size in sizes:
        taken = pages.allocate(size)
        if taken is None:
            assert size > pages.num_free
            pages.release(held.pop(random.randrange(len(held))))
        else:
            held.append(taken)
        used = [page for each in held for page in each]
        assert len(set(used)) == len(used) == pages.num_used
        assert pages.num_used + pages.num_free == 13


def test_tensors_of_two_types_behind_each_other(poisoned):
    memory = Memory(7, 48)
    state, window = torch.randn(2, 3, 4), torch.randn(3, 5).bfloat16()
    memory.write((6, 0, 3), [state, window])
    flat = memory.read((6, 0, 3))
    assert torch.equal(flat[:96].view(torch.float32).view(2, 3, 4), state)
    assert torch.equal(flat[96:126].view(torch.bfloat16).view(3, 5), window)
    flat.zero_()
    assert torch.equal(memory.read((6,)).view(torch.float32)[:12], state.flatten()[:12])
    with pytest.raises(AssertionError, match="12 bytes too few"):
        memory.write((1,), [torch.zeros(15)])


def test_pages_as_rows():
    memory = Memory(3, 40)
    rows = memory.rows(torch.float32, 5)
    assert rows.shape == (3, 2, 5)
    rows[1, 1] = 7.0
    assert torch.equal(memory.read((1,)).view(torch.float32)[5:], torch.full((5,), 7.0))
