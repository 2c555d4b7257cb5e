"""Theorems about the packed steps: a graph equals its coordinates for all sizes.

Level N: decided by the normal form of `k3.graph.symbolic`, which is evidence that is
not replayed in the kernel. The coordinates are texts apart from the graphs; tests hold
their reading on floats against `k3.spec`. Wrong variants are refuted on inputs.
"""

import hashlib
import json
import time
from collections.abc import Mapping

from k3 import graph
from k3.errors import ProofError, ShapeError
from k3.graph import json_form, mutants, symbolic
from k3.graph.symbolic import whole
from k3.graph.term import Block
from k3.proof.prove import Record

ABSORBED = "absorbed_equals_expanded"
LEVEL = "N"
# Steps of the catalogue whose mutants are those of a step in coordinates.
MUTANTS = {
    "decoder": ("decoder_token",),
    "vision_embed": ("vision_embed", "vision_embed_clip"),
    ABSORBED: ("mla_step_absorbed",),
}


def names() -> list[str]:
    """The theorems about graphs, in order."""
    return [f"graph.{name}" for name in (*symbolic.coordinates, ABSORBED)]


def words(name: str) -> str:
    """What a theorem says in words."""
    step = name.removeprefix("graph.")
    if step == ABSORBED:
        return "The absorbed MLA step and the expanded one are one function."
    return f"The packed step equals its coordinates: {_block(step).says}"


def scope(name: str) -> str:
    """For what it is decided."""
    if name == "graph.decoder":
        return "all sizes ≥ 1, all real inputs and weights, four layers: one a case"
    if name == "graph.vision_encoder":
        return "all sizes ≥ 1, all real inputs and weights, two blocks"
    return "all sizes ≥ 1, all real inputs and weights"


def statement(name: str) -> str:
    """The equality with its sizes and inputs."""
    step = name.removeprefix("graph.")
    block = _block("mla_step" if step == ABSORBED else step)
    sizes = ", ".join(block.dims)
    shapes = ", ".join(f"{n} : {node.type}" for n, node in block.inputs.items())
    outputs = ", ".join(block.outputs)
    other = "mla_step_absorbed" if step == ABSORBED else f"coordinates of {step}"
    lines = f"for all sizes {sizes} ≥ 1\nfor all {shapes}"
    return f"{lines}\n  ({outputs}) of graph {block.name} = ({outputs}) of {other}"


def digest(name: str) -> str:
    """What is stated, whatever the lines of the sources: sha256 of the graphs."""
    step = name.removeprefix("graph.")
    steps = ("mla_step", "mla_step_absorbed") if step == ABSORBED else (step,)
    found = [json_form.plain(_block(s))["nodes"] for s in steps]
    bare = [[{**node, "line": ""} for node in nodes] for nodes in found]
    return hashlib.sha256(json.dumps([name, bare]).encode()).hexdigest()


def mutated(name: str) -> tuple[str, ...]:
    """The steps of the catalogue whose wrong variants are those of a theorem."""
    step = name.removeprefix("graph.")
    return MUTANTS.get(step, (step,))


def wrong_variants(name: str) -> tuple[str, ...]:
    """The names of a theorem's wrong variants."""
    steps = mutated(name)
    return tuple(m.name for m in mutants.mutants if m.step in steps)


def prove(name: str) -> Record:
    """Decide one theorem anew and refute the wrong variants of its step."""
    began = time.perf_counter()
    step = name.removeprefix("graph.")
    block = _block("mla_step" if step == ABSORBED else step)
    if step == ABSORBED:
        verdict = symbolic.same(block, graph.get("mla_step_absorbed"))
    else:
        verdict = symbolic.equals_coordinates(block, symbolic.coordinates[step])
    if verdict.equal is not True:
        raise ProofError(f"{name} is not decided: {verdict.why}")
    return Record(
        name=name,
        words=words(name),
        statement=statement(name),
        scope=scope(name),
        level=LEVEL,
        axioms=(),
        digest=digest(name),
        steps=len(block.nodes),
        seconds=time.perf_counter() - began,
        mutants={k: v for s in mutated(name) for k, v in _refuted(s).items()},
    )


def _block(step: str) -> Block:
    return whole.decoder_block() if step == "decoder" else graph.get(step)


def _refuted(step: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for mutant in mutants.mutants:
        if mutant.step != step:
            continue
        judged = mutants.judge(mutant)
        if judged is None:
            raise ProofError(
                f"the wrong variant of graph.{step} is not refuted: {mutant.name}"
            )
        refused = isinstance(judged, ShapeError)
        found[mutant.name] = f"cannot be built: {judged}" if refused else str(judged)
    return found
