"""Packed depth: the logic's list state is the spec's, its packed state too."""

import random
from fractions import Fraction

import numpy as np
import pytest

from k3.logic.falsify import call, evaluate
from k3.logic.match import opened
from k3.proof import packed_depth, packed_mix
from k3.spec import attn_res as spec

SIZES = [(1, 1, 1), (2, 5, 3), (3, 7, 2), (12, 14, 2)]


def spec_state(rng, block, layers, width):
    """The spec run over layers of two sublayers, each reading its sources."""
    weights = {}

    def apply(name, completed, running):
        scale = weights.setdefault(name, Fraction(rng.randint(-3, 3), 2))
        has, value = running
        read = [*completed, *([value] if has else [])]
        pulled = sum((Fraction(k + 1) * x[0] for k, x in enumerate(read)), Fraction(1))
        return tuple(scale * pulled + j for j in range(width))

    state = spec.start(np.full(width, Fraction(1), dtype=object))
    events = []
    for layer in range(layers):
        for part in ("attention", "mlp"):
            events.append((f"{layer} {part}", part == "mlp"))
            completed = tuple(map(tuple, state.completed))
            has = state.partial is not None
            running = (has, tuple(state.partial) if has else None)
            y = apply(events[-1][0], completed, running)
            state = spec.add(state, np.array(y, dtype=object))
        state = spec.finish_layer(state, block)
    return state, apply, tuple(events)


def plus(a, b):
    return tuple(x + y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(("block", "layers", "width"), SIZES)
def test_both_states_are_that_of_the_spec(block, layers, width):
    rng = random.Random(f"{block} {layers}")
    state, apply, events = spec_state(rng, block, layers, width)
    start = (False, None)
    done, (running, size) = call(
        packed_depth.OF_LISTS, [apply, plus, block, (), start, 0, events]
    )
    packed = [apply, plus, block, lambda i: None, 0, start, 0, events]
    (rows, count), tail = call(packed_depth.OF_ROWS, packed)
    assert done == tuple(map(tuple, state.completed))
    assert tuple(rows(k) for k in range(count)) == done
    assert tail == (running, size)
    assert size == state.size
    assert running[0] == (state.partial is not None)
    if running[0]:
        assert running[1] == tuple(state.partial)


@pytest.mark.parametrize(("block", "layers", "width"), SIZES)
def test_both_mixes_are_that_of_the_spec(block, layers, width):
    rng = random.Random(f"{layers} {width}")
    state, _, _ = spec_state(rng, block, layers, width)
    sources = spec.sources(state).astype(float)
    q = np.array([rng.uniform(-1, 1) for _ in range(width)])
    expected = spec.retrieve(q, sources)
    grades = np.exp(spec.scores(q, sources))
    weights = {tuple(s): Fraction(g) for s, g in zip(sources, grades, strict=True)}
    packed = [tuple(map(float, row)) for row in state.completed]
    has = state.partial is not None
    running = (has, tuple(map(float, state.partial)) if has else None)
    given = {"e": tuple(map(float, state.embedding)), "running": running}
    given |= {"rows": packed.__getitem__, "count": len(packed)}
    given["weight"] = weights.__getitem__
    for column in range(width):
        given["content"] = lambda x: Fraction(x[column])  # noqa: B023
        variables, body = opened(packed_mix.mix_reads_rows())
        env = {v: given[str(v.data).split("#")[0]] for v in variables}
        left, right = (evaluate(side, env) for side in body.args[1].args)
        assert left == right
        assert float(left) == pytest.approx(float(expected[column]), rel=1e-9)
