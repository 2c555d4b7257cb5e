"""Prints what the normal form says of every step and of every mutant, as JSON."""

import json

import k3.graph as graph
from k3.errors import ShapeError
from k3.graph.mutants import mutants
from k3.graph.symbolic import coordinates, equals_coordinates
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


if __name__ == "__main__":
    steps = {name: judged(step(name), name) for name in coordinates}
    wrong = {
        f"{m.step}: {m.name}": of_mutant(m) for m in mutants if m.step in coordinates
    }
    print(json.dumps({"steps": steps, "mutants": wrong}))
