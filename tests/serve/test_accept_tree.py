"""The rule for trees on laws of three tokens: whatever is drawn, texts have p's law."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.errors import RequestError
from k3.serve import accept
from k3.serve.tree import Tree

WORDS, LENGTH = 3, 3
SHAPES = {
    "chain": Tree.of([1, 1]),
    "branching": Tree.of([2, 2]),
    "wide": Tree.of([3]),
    "paths": Tree.of([[0], [1], [0, 0], [0, 1], [1, 0]]),
}


def table(seed):
    """A law of the next token after every short text."""
    generator = torch.Generator().manual_seed(seed)
    made = {}
    for n in range(LENGTH):
        for text in product(range(WORDS), repeat=n):
            law = torch.rand(WORDS, generator=generator, dtype=torch.float64).pow(2)
            made[text] = law / law.sum()
    return made


P, Q = table(1), table(2)


def drawn(tree, generator, certain):
    """Candidates of a tree without replacement, and what led to each."""
    ids, laws, texts = [], [], []
    for node, above in enumerate(tree.parents):
        text = texts[above] if above >= 0 else ()
        law = Q[text].clone()
        gone = [ids[n] for n in range(node) if tree.parents[n] == above]
        law[gone] = 0
        law = law / law.sum()
        token = (
            int(law.argmax())
            if certain
            else int(law.multinomial(1, generator=generator))
        )
        ids.append(token)
        laws.append(law)
        texts.append((*text, token))
    return ids, None if certain else torch.stack(laws), texts


def text_of(tree, generator, certain=False):
    """A text of three tokens: a round over the tree, then the target alone."""
    ids, q, texts = drawn(tree, generator, certain)
    p = [P[text] for text in ((), *texts)]
    numbers = accept.uniforms(len(ids) + 1, generator)
    path, last = accept.verify_tree(ids, tree.parents, p, q, numbers)
    text = (*(ids[n] for n in path), last)
    while len(text) < LENGTH:
        text = (*text, int(P[text].multinomial(1, generator=generator)))
    return text


def chi_square(tree, count, certain=False):
    """(statistic - degrees) / its deviation over all texts of three tokens."""
    generator, seen = torch.Generator().manual_seed(5), {}
    for _ in range(count):
        text = text_of(tree, generator, certain)
        seen[text] = seen.get(text, 0) + 1
    value, degrees = 0.0, WORDS**LENGTH - 1
    for text in product(range(WORDS), repeat=LENGTH):
        want = count * float(
            P[()][text[0]] * P[text[:1]][text[1]] * P[text[:2]][text[2]]
        )
        value += (seen.get(text, 0) - want) ** 2 / want
    return (value - degrees) / (2 * degrees) ** 0.5


@pytest.mark.parametrize("certain", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_texts_have_the_targets_law(shape, certain):
    assert chi_square(SHAPES[shape], 800, certain) < 4


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_hundred_thousand_texts_have_the_targets_law(shape):
    assert chi_square(SHAPES[shape], 100_000) < 4


REAL = accept.correction
MUTANTS = {
    "no correction": lambda p, token, q: p,
    "half a correction": lambda p, token, q: REAL(p, token, q) + p / 2,
    "only the token goes": lambda p, token, q: REAL(p, token, None),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_of_the_correction_has_another_law(monkeypatch, name):
    monkeypatch.setattr(accept, "correction", MUTANTS[name])
    assert chi_square(SHAPES["branching"], 800) > 6


def test_a_second_candidate_drawn_as_if_it_were_the_first_has_another_law():
    """The law of the second must be given the first: here it is that of the first."""
    tree, generator, seen = (
        SHAPES["wide"],
        torch.Generator().manual_seed(5),
        [0] * WORDS,
    )
    for _ in range(800):
        ids, q, _ = drawn(tree, generator, False)
        numbers = accept.uniforms(len(ids) + 1, generator)
        q = Q[()].expand(3, -1)
        path, last = accept.verify_tree(ids, tree.parents, [P[()]] * 4, q, numbers)
        seen[ids[path[0]] if path else last] += 1
    want = [800 * float(x) for x in P[()]]
    value = sum((n - w) ** 2 / w for n, w in zip(seen, want, strict=True))
    assert value > 20


@settings(max_examples=100)
@given(st.integers(0, 4), st.integers(1, 5), st.integers(0, 10**6), st.booleans())
def test_of_a_chain_it_is_the_rule_of_chains(block, words, seed, certain):
    generator = torch.Generator().manual_seed(seed)
    raw = torch.rand(2, block + 1, words, generator=generator).mul(4).floor()
    raw[..., 0] += raw.sum(-1) == 0
    p, q = raw / raw.sum(-1, keepdim=True)
    ids = [int(law.multinomial(1, generator=generator)) for law in q[:block]]
    numbers = accept.uniforms(block + 1, generator)
    law = None if certain else q[:block]
    want, accepted = accept.verify(ids, p, law, numbers)
    path, last = accept.verify_tree(ids, range(-1, block - 1), list(p), law, numbers)
    assert path == list(range(accepted))
    assert [*(ids[n] for n in path), last] == want


def test_behind_a_place_without_a_law_nothing_follows():
    p = [torch.tensor([0.0, 1.0]), None, torch.tensor([1.0, 0.0])]
    assert accept.verify_tree([1, 0], [-1, 0], p, None, [0.5] * 3) == ([0], None)
    assert accept.verify_tree([0, 1], [-1, -1], p, None, [0.5] * 3) == ([1], 0)


def test_a_token_without_a_chance_is_refused():
    p, q = [torch.tensor([0.5, 0.5])] * 2, torch.tensor([[1.0, 0.0]])
    with pytest.raises(
        RequestError, match=r"got token 1 with chance 0.0; give the law"
    ):
        accept.verify_tree([1], [-1], p, q, [0.5, 0.5])
