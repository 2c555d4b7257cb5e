"""The rule that verifies a drafted block, against its specification."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from readings import tensor  # noqa: F401

from k3.serve import accept
from k3.spec import speculate as spec


def laws(count, words, generator):
    """Laws with zeros, with equal entries, and certain ones."""
    raw = torch.rand(count, words, generator=generator).mul(4).floor()
    raw[:, 0] += raw.sum(-1) == 0
    return raw / raw.sum(-1, keepdim=True)


@settings(max_examples=200)
@given(st.integers(0, 4), st.integers(1, 5), st.integers(0, 10**6), st.booleans())
def test_verify(block, words, seed, certain):
    generator = torch.Generator().manual_seed(seed)
    p, q = laws(block + 1, words, generator), laws(block, words, generator)
    ids = [int(law.multinomial(1, generator=generator)) for law in q]
    if certain:
        q = torch.nn.functional.one_hot(torch.tensor(ids, dtype=torch.long), words).to(
            p
        )
    numbers = accept.uniforms(block + 1, generator)
    want = spec.verify(ids, list(p), list(q), [torch.tensor(u) for u in numbers])
    got, accepted = accept.verify(ids, p, None if certain else q, numbers)
    assert got == want
    assert accepted == len(want) - 1
    assert got[:accepted] == ids[:accepted]


@settings(max_examples=100)
@given(st.integers(2, 5), st.integers(0, 10**6), st.integers(1, 6))
def test_verify_tree(words, seed, count):
    generator = torch.Generator().manual_seed(seed)
    above = [int(torch.randint(-1, i, (), generator=generator)) for i in range(count)]
    p = laws(count + 1, words, generator).double()
    base = laws(count + 1, words, generator).double() + 0.01
    ids, q = [], []
    for i in range(count):
        law = base[above[i] + 1].clone()
        law[[ids[n] for n in range(i) if above[n] == above[i]]] = 0
        if not law.sum() > 0:
            above, p = above[:i], p[: i + 1]
            break
        q.append(law / law.sum())
        ids.append(int(law.multinomial(1, generator=generator)))
    numbers = accept.uniforms(len(ids) + 1, generator)
    exact = [torch.tensor(u, dtype=torch.float64) for u in numbers]
    path, last = accept.verify_tree(ids, above, list(p), torch.stack(q), numbers)
    want = spec.verify_tree(ids, above, list(p), q, exact)
    assert [*(ids[n] for n in path), last] == want


def test_correction():
    p, q = torch.tensor([0.5, 0.25, 0.25, 0.0]), torch.tensor([0.25, 0.5, 0.0, 0.25])
    rest = accept.correction(p, 1, q)
    assert torch.equal(rest / rest.sum(), spec.correction(p, q))
    sure = torch.tensor([0.0, 1.0, 0.0, 0.0])
    rest = accept.correction(p, 1, None)
    assert torch.allclose(rest / rest.sum(), spec.correction(p, sure))


def test_without_the_last_law_there_is_no_bonus_token():
    p = torch.tensor([[0.0, 1.0]])
    assert accept.verify([1], p, None, [0.5, 0.5]) == ([1], 1)
    assert accept.verify([0], p, None, [0.5, 0.5]) == ([1], 0)
