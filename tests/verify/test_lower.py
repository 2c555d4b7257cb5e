"""The lowered program against the graph's own evaluation, and its gradients."""

import numpy as np
import pytest
import torch

import k3.graph as graph
from k3.errors import ShapeError
from k3.graph import draw, shapes
from k3.graph import primitives as p
from k3.graph.term import Block
from k3.verify.lower import RULES, lower, source


def tensors(env, dtype=torch.float64):
    out = {n: torch.as_tensor(x) for n, x in env.items()}
    return {n: x.to(dtype) if x.is_floating_point() else x for n, x in out.items()}


def test_every_primitive_has_a_line():
    assert RULES.keys() == shapes.RULES.keys()


@pytest.mark.parametrize("name", graph.catalogue)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_program_is_the_graph(name, seed):
    block = graph.get(name)
    sizes = draw.sizes(block, {"T": seed, "P": seed, "N": 1 + seed, "w2": 1 + seed})
    sizes = {n: sizes[n] for n in block.dims}
    env = draw.draw(block, sizes, seed)
    wanted = graph.evaluate(block, env, sizes)
    got = lower(block)(tensors(env), sizes)
    assert got.keys() == wanted.keys()
    for output, value in wanted.items():
        assert tuple(got[output].shape) == value.shape
        np.testing.assert_allclose(got[output], value, rtol=1e-10, atol=1e-11)


def test_gradients_flow_to_every_real_input():
    block = graph.get("layer_kda_sparse")
    sizes = draw.sizes(block)
    env = tensors(draw.draw(block, sizes, 1))
    for value in env.values():
        value.requires_grad_()
    out = lower(block)(env, sizes)
    sum(value.sum() for value in out.values()).backward()
    for name, value in env.items():
        # The bias only chooses; nothing of its value enters the mixture.
        if name.endswith("e_score_correction_bias"):
            assert value.grad is None
        else:
            assert value.grad.any(), name


def test_single_precision():
    block = graph.get("mla_step")
    sizes = draw.sizes(block)
    env = draw.draw(block, sizes, 2)
    got = lower(block)(tensors(env, torch.float32), sizes)
    assert got["y"].dtype == torch.float32
    wanted = graph.evaluate(block, env, sizes)["y"]
    np.testing.assert_allclose(got["y"], wanted, rtol=2e-4, atol=2e-5)


def test_source_is_readable():
    text = source(graph.get("kda_update"))
    assert text.startswith("def program(inputs, sizes, dtype, device):")
    assert "torch.einsum('hk,hkv->hkv', " in text
    assert "# [H, K, V] k3/graph/kda.py:" in text


def test_ties_go_to_the_lower_index():
    scores = p.real("scores", "E")
    program = lower(
        Block("demo", "", {"i": p.topk(scores, "A"), "j": p.argsort(scores)})
    )
    got = program({"scores": torch.tensor([1.0, 3, 3, 2, 3])}, {"A": 2})
    assert got["i"].tolist() == [1, 2]
    assert got["j"].tolist() == [1, 2, 4, 3, 0]


REST = {
    "log": lambda a: p.log(a * a + 1),
    "matmul": lambda a: p.matmul(a, p.permute(a, 1, 0)),
    "argsort": p.argsort,
    "one_hot": lambda a: p.one_hot(p.topk(a, 1)),
    "softplus": p.softplus,
    "neg": lambda a: -a,
    "less": lambda a: p.where(p.less(a, -a), a, p.exp(a)),
    "gather": lambda a: p.gather(a, p.topk(p.mean(a, 0), 2), axis=1),
}


@pytest.mark.parametrize("name", REST)
def test_primitives_that_few_steps_use(name):
    block = Block(name, "", {"y": REST[name](p.real("a", "H, K"))})
    env = {"a": np.random.default_rng(0).normal(size=(2, 3))}
    wanted = graph.evaluate(block, env)["y"]
    np.testing.assert_allclose(lower(block)(tensors(env))["y"], wanted, rtol=1e-12)


def test_inputs_are_checked():
    block = graph.get("splice")
    sizes = draw.sizes(block)
    env = tensors(draw.draw(block, sizes, 0))
    program = lower(block)
    with pytest.raises(ShapeError, match="needs every input: missing ids"):
        program({n: x for n, x in env.items() if n != "ids"}, sizes)
    with pytest.raises(ShapeError, match=r"input features must have shape \[I, D\]"):
        program({**env, "features": torch.zeros(6, 4, dtype=torch.float64)}, sizes)
    with pytest.raises(ShapeError, match=r"indices must lie in 0\.\.6: got 0\.\.7"):
        program({**env, "ids": torch.tensor([0, 7, 1, 1, 1])[: sizes["T"]]}, sizes)
    short = {
        **env,
        "ids": torch.zeros(sizes["T"]).long(),
        "placeholder": torch.tensor(0),
    }
    with pytest.raises(ShapeError, match=r"0\.\.0: got 0\.\.3 at k3/graph/splice.py"):
        program({**short, "features": env["features"][:1]}, {**sizes, "I": 1})


def test_names_of_the_program_are_not_dimensions():
    block = Block("demo", "", {"y": p.exp(p.real("x", "torch"))})
    with pytest.raises(ShapeError, match="name of the program: got torch; rename"):
        source(block)
