"""The chunk form: the logic's functions are the spec's, and so is what is proved."""

import random
from fractions import Fraction

import numpy as np
import pytest

from k3.logic.falsify import call, evaluate
from k3.logic.match import opened
from k3.proof import chunk, chunks, decay, substitution
from k3.spec import kda as spec

SIZES = [(1, 1), (2, 3), (3, 2), pytest.param(5, 3, marks=pytest.mark.slow)]


def made(rng, *shape):
    values = [Fraction(rng.randint(-4, 4) or 1, 3) for _ in range(np.prod(shape))]
    return np.array(values, dtype=object).reshape(shape)


def entries(x):
    return lambda *where: x[where]


def sides(given):
    """Both sides of both equations of the theorem, evaluated."""
    variables, body = opened(chunk.chunk_equals_recurrence())
    env = {v: given[str(v.data).split("#")[0]] for v in variables}
    assert evaluate(body.args[0], env)
    pairs = [equation.args for equation in body.args[1].args]
    return [tuple(evaluate(side, env) for side in pair) for pair in pairs]


@pytest.mark.parametrize(("tokens", "width"), SIZES)
def test_both_sides_are_those_of_the_spec(tokens, width):
    rng = random.Random(f"{tokens} {width}")
    q, k, alpha = (made(rng, tokens, width) for _ in range(3))
    v, S, beta = made(rng, tokens, 2), made(rng, width, 2), made(rng, tokens)
    given = {"alpha": alpha, "beta": beta}
    memory, answers = spec.recurrent(S, q, k, v, **given)
    chunk_memory, chunk_answers = spec.chunk(S, q, k, v, **given)
    assert (memory == chunk_memory).all()
    assert (answers == chunk_answers).all()
    for t in range(tokens):
        for m in range(width):
            for column in range(2):
                at = {"n": width, "size": tokens, "t": t, "m": m}
                at |= {"alpha": entries(alpha), "k": entries(k), "q": entries(q[t])}
                at |= {"beta": entries(beta), "v": entries(v[:, column])}
                end, one = sides(at | {"s": entries(S[:, column])})
                assert end == (memory[m, column],) * 2
                assert one == (answers[t, column],) * 2


@pytest.mark.parametrize(("tokens", "width"), SIZES)
def test_substitution_and_decay_are_those_of_the_spec(tokens, width):
    rng = random.Random(f"{width} {tokens}")
    k, alpha = made(rng, tokens, width), made(rng, tokens, width)
    v, beta = made(rng, tokens, 1), made(rng, tokens)
    Gamma = spec.cumulative(alpha)
    W, U = spec.wy(k, v, Gamma, beta)
    A = spec.scores(k, k, Gamma, diagonal=False)
    for right, found in ((v[:, 0], U[:, 0]), ((Gamma * k)[:, 0], W[:, 0])):
        given = [entries(beta), entries(A), entries(right)]
        ours = call(substitution.SOLVE, [*given, tokens])
        assert [ours(j) for j in range(tokens)] == list(found)
    for i in range(tokens):
        for j in range(i + 1):
            between = spec.decay(alpha, j, i)[0]
            assert call(decay.DECAY, [entries(alpha[:, 0]), j, i + 1]) == between


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (4, 1, 2)])
def test_any_cut_into_chunks_is_the_recurrence(sizes):
    rng, tokens, width = random.Random(str(sizes)), sum(sizes), 2
    q, k, alpha = (made(rng, tokens, width) for _ in range(3))
    v, S, beta = made(rng, tokens, 1), made(rng, width, 1), made(rng, tokens)
    memory, _ = spec.recurrent(S, q, k, v, alpha=alpha, beta=beta)
    parts, _ = spec.chunked(S, q, k, v, alpha=alpha, beta=beta, sizes=sizes)
    given = {"alpha": entries(alpha), "k": entries(k), "beta": entries(beta)}
    given |= {"v": entries(v[:, 0]), "s": entries(S[:, 0]), "n": width}
    given |= {"cut": sizes[0], "t": tokens - sizes[0]}
    for row in range(width):
        variables, body = opened(chunks.cut_anywhere())
        env = {x: (given | {"i": row})[str(x.data).split("#")[0]] for x in variables}
        found = [evaluate(side, env) for side in body.args[1].args]
        assert found == [memory[row, 0]] * 2 == [parts[row, 0]] * 2
