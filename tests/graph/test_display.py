import numpy as np
import pytest

import k3.graph as graph
from k3.errors import RequestError


def test_run_is_reproducible():
    one, other = graph.run("moe", seed=3), graph.run("moe", seed=3)
    assert one == other
    assert one != graph.run("moe", seed=4)
    assert set(one) == {"name", "sizes", "inputs", "outputs"}
    assert np.shape(one["outputs"]["y"]) == (one["sizes"]["D"],)


def test_run_takes_sizes():
    got = graph.run("mla_step", {"T": 0, "M": 1})
    assert np.shape(got["outputs"]["latents"])[0] == 1
    assert got["sizes"]["T"] == 0
    with pytest.raises(RequestError, match="expert has no dimension T; it has D, F"):
        graph.run("expert", {"T": 3})


def test_unknown_names_are_refused():
    with pytest.raises(RequestError, match=r"one of expert, kda_update.*got 'kdq'"):
        graph.show("kdq")
    with pytest.raises(RequestError, match="one of text, dot, json, latex: got 'svg'"):
        graph.show("expert", "svg")


def test_every_step_of_the_issue_is_there():
    wanted = """expert kda_layer mla_step attn_res moe layer_kda_dense layer_kda_sparse
    layer_mla_dense layer_mla_sparse decoder_token vision_embed vision_block
    vision_project vision_encoder decoder_token_image draft"""
    assert set(wanted.split()) <= set(graph.catalogue)
    assert all(block().says for block in graph.catalogue.values())
