"""Absorbed heads: both sides of the theorem are the spec's two forms."""

import random
from fractions import Fraction

import numpy as np
import pytest

from k3.logic.falsify import evaluate
from k3.logic.match import opened
from k3.proof import absorbed
from k3.spec import mla as spec
from k3.spec import ops

SIZES = [(1, 1, 1, 1), (2, 3, 2, 1), (4, 2, 3, 2)]


def made(rng, *shape):
    values = [Fraction(rng.randint(-4, 4), 4) for _ in range(np.prod(shape))]
    return np.array(values, dtype=object).reshape(shape)


def entries(x):
    return lambda *where: x[where]


def sides(theorem, given):
    variables, body = opened(theorem())
    env = {v: given[str(v.data).split("#")[0]] for v in variables}
    assert evaluate(body.args[0], env)
    return [evaluate(side, env) for side in body.args[1].args]


@pytest.mark.parametrize(("tokens", "latent", "content", "width"), SIZES)
def test_both_sides_are_the_two_heads_of_the_spec(tokens, latent, content, width):
    rng = random.Random(f"{tokens} {latent} {content}")
    latents, shared = made(rng, tokens, latent), made(rng, tokens, width)
    q, W = made(rng, content + width), made(rng, content + 2, latent)
    weights = {}

    def grade(score):
        """Softmax in floats, its weights kept exactly: the same for both sides."""
        scale = float(score) / (content + width) ** 0.5
        return weights.setdefault(score, Fraction(np.exp(scale)))

    given = {"tokens": tokens, "latent": latent, "content": content, "width": width}
    given |= {"rows": entries(latents), "shared": entries(shared)}
    given |= {"q": entries(q[:content]), "r": entries(q[content:]), "grade": grade}
    given |= {"K": lambda i, c: W[c, i], "W": lambda i, e: W[content + e, i]}
    floats = [np.array(x, dtype=float) for x in (q, W, latents, shared)]
    forms = [spec.expanded(*floats), spec.absorbed(*floats)]
    for e in range(2):
        left, right = sides(absorbed.head_equals_expanded, given | {"e": e})
        assert left == right
        for form in forms:
            assert float(left) == pytest.approx(float(form[e]), abs=1e-12)


@pytest.mark.parametrize(("tokens", "latent", "content", "width"), SIZES)
def test_values_of_the_mix_are_exact(tokens, latent, content, width):
    rng = random.Random(f"{content} {tokens}")
    latents, W = made(rng, tokens, latent), made(rng, latent, width)
    weight = made(rng, tokens)
    given = {"tokens": tokens, "latent": latent, "weight": entries(weight)}
    given |= {"rows": entries(latents), "W": entries(W)}
    for e in range(width):
        found = sides(absorbed.value_after_mix, given | {"e": e})
        expected = (
            (weight @ (latents @ W))[e],
            (ops.transpose(W) @ (weight @ latents))[e],
        )
        assert tuple(found) == expected
