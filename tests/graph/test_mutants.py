"""Every wrong variant is refuted with a counterexample, or refused by its types."""

import numpy as np
import pytest

import k3.graph as graph
from k3.errors import ShapeError
from k3.graph.mutants import judge, mutants
from k3.graph.references import references
from k3.graph.refute import Counterexample

REFUSED = {
    ("mla_step", "keys of the value map"),
    ("mla_step", "the token does not see itself"),
    ("vision_project", "merged without the axis exchange"),
}


@pytest.mark.parametrize("mutant", mutants, ids=lambda m: f"{m.step}: {m.name}")
def test_mutant(mutant):
    found = judge(mutant)
    if (mutant.step, mutant.name) in REFUSED:
        assert isinstance(found, ShapeError)
        assert "k3/graph/" in str(found)
        return
    assert isinstance(found, Counterexample)
    # The printed inputs do give the printed values, and the right step's differ.
    wrong = graph.evaluate(mutant.make(), found.inputs, found.sizes)
    right = references[mutant.step](found.inputs, found.sizes)
    ours, theirs = wrong[found.output][found.index], right[found.output]
    theirs = np.asarray(theirs)[found.index]
    assert ours == found.graph
    assert theirs == found.reference
    assert abs(ours - theirs) > 1e-9


def test_every_kind_of_step_has_mutants():
    wanted = "expert kda_update kda_layer mla_step mla_step_absorbed attn_res"
    wanted += " attn_res_depth moe layer_first_of_block vision_embed vision_encoder"
    wanted += " layer_kda_dense layer_kda_sparse layer_mla_dense layer_mla_sparse"
    wanted += (
        " decoder_token splice vision_embed_clip vision_block vision_project draft"
    )
    assert {m.step for m in mutants} == set(wanted.split())
    assert len({(m.step, m.name) for m in mutants}) == len(mutants) >= 50
