"""Prints what the normal form says of every step and of every mutant, as JSON."""

import itertools
import json

import numpy as np

import k3.graph as graph
from k3.errors import ShapeError
from k3.graph import draw
from k3.graph.dims import parse_shape
from k3.graph.mutants import mutants
from k3.graph.references import references
from k3.graph.symbolic import coordinates, equals_coordinates
from k3.graph.symbolic.floats import Floats
from k3.graph.symbolic.whole import decoder_block


def step(name):
    return decoder_block() if name == "decoder" else graph.get(name)


def judged(block, name):
    verdict = equals_coordinates(block, coordinates[name])
    return [verdict.equal, verdict.why]


def of_mutant(mutant):
    try:
        return judged(mutant.make(), mutant.step)
    except ShapeError as refused:
        return [None, str(refused)]


def error(name, seed):
    """How far the coordinates on floats are from the spec, relative to its size."""
    block = step(name)
    given = {"T": seed, "P": seed, "N": 1 + seed, "D": 2 + seed, "E": 3, "A": 1 + seed}
    given |= {"h2": 1, "w2": 1 + seed % 2, "Hp": 2, "Wp": 2, "e": 2, "d": 1, "t": 2}
    sizes = {n: s for n, s in draw.sizes(block, given).items() if n in block.dims}
    env = draw.draw(block, sizes, seed)
    if name in references:
        wanted = references[name](env, sizes)
    else:
        wanted = graph.evaluate(block, env, sizes)
    reading = Floats(env, sizes)
    outputs = coordinates[name](reading)
    assert outputs.keys() == wanted.keys()
    worst = 0.0
    for output, (shape, entries) in outputs.items():
        axes = [reading.places(d) for d in parse_shape(shape)]
        value = np.asarray(wanted[output])
        got = np.array([entries(*at) for at in itertools.product(*axes)])
        gap = abs(got.reshape(value.shape) - value) / (1 + abs(value))
        worst = max(worst, float(gap.max(initial=0)))
    return worst


if __name__ == "__main__":
    steps = {name: judged(step(name), name) for name in coordinates}
    wrong = {
        f"{m.step}: {m.name}": of_mutant(m) for m in mutants if m.step in coordinates
    }
    errors = {name: [error(name, seed) for seed in range(3)] for name in coordinates}
    print(json.dumps({"steps": steps, "mutants": wrong, "errors": errors}))
