"""Each native kernel is one sound operation of torch.library, and stays PyTorch's twin.

A graph is looked at in a process of its own, without the shape checks of the tests,
which no full graph can hold.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from k3.kernels import choose, mx, situ
from k3.kernels.native import (
    attn_res,
    conv,
    experts,
    experts_training,
    kda,
    kda_layer,
    norm,
    top_k,
)
from k3.kernels.native import situ as native_situ

ROOT = Path(__file__).parents[3]


def rand(*shape, grad=True):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).requires_grad_(grad)


def tokens(n, H, K, V):
    sizes = (n, H, K), (n, H, K), (n, H, V), (n, H, K)
    q, k, v, g = (rand(*shape).detach() for shape in sizes)
    made = [q, k, v, -g.abs(), rand(n, H).sigmoid().detach()]
    return [x.requires_grad_() for x in made]


def stacks(L, F, *, grad=True):
    return [rand(5, *size, grad=grad) for size in ((F, L), (L, F), (F, L))]


def packed(L, F):
    both = [mx.encode(w) for w in stacks(L, F, grad=False)]
    return [values for values, _ in both] + [scales for _, scales in both]


def layer(n, H, K, V):
    """Projected tokens, weights, window and memory of a KDA layer, two sequences."""
    C = 2 * H * K + H * V
    rows = [rand(1, n, width, grad=False) for width in (H * K, H * K, H * V, H * K, H)]
    taps = [rand(width, 1, 4, grad=False) for width in (H * K, H * K, H * V)]
    weights = [*taps, rand(H, grad=False), rand(H * K, grad=False), rand(V, grad=False)]
    memory = [rand(2, 3, C, grad=False), rand(2, H, V, K, grad=False)]
    return [*rows, rand(1, n, H * V, grad=False), *weights, *memory]


INDEX = torch.tensor([[1, 4], [0, 1], [4, 2]])
CAPS = [4.0, 25.0]
CASES = {
    "kda": (kda, [*tokens(12, 1, 5, 3), rand(2, 1, 3, 5)], [9, 3], []),
    "kda_layer": (kda_layer, layer(7, 2, 5, 3), [4, 3], [1e-5, -5.0]),
    "short_conv": (conv, [rand(1, 7, 5), rand(4, 5), rand(2, 3, 5)], [4, 3], []),
    "situ": (native_situ, [rand(3, 5), rand(3, 5)], [], CAPS),
    "attn_res_mix": (
        attn_res,
        [rand(3, 2, 5), rand(3, 2), rand(5), rand(3, 5)],
        [],
        [1e-5],
    ),
    "rms_norm": (norm, [rand(3, 5, grad=False), rand(5, grad=False)], [], [1e-5]),
    "top_k": (top_k, [rand(3, 7, grad=False)], [2], []),
    "experts": (
        experts,
        [rand(3, 64, grad=False), INDEX, rand(3, 2, grad=False), *packed(64, 32)],
        [],
        CAPS,
    ),
    "experts_training": (
        experts_training,
        [rand(3, 6), INDEX, rand(3, 2), *stacks(6, 4)],
        [0],
        CAPS,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_is_a_sound_operator(name):
    """Fake results, gradients, and no hidden write, as torch checks them."""
    module, given, ints, floats = CASES[name]
    traced = module.OPERATION.traced
    assert traced._qualname == f"k3::{name}"
    torch.library.opcheck(traced, (given, ints, floats))


def test_results_of_strided_inputs_are_contiguous_as_promised():
    module, given, ints, floats = CASES["kda"]
    given = [x.detach().transpose(0, 1).contiguous().transpose(0, 1) for x in given]
    torch.library.opcheck(module.OPERATION.traced, (given, ints, floats))


def test_experts_apart_are_those_of_a_stack():
    """One tensor an expert, as a mapped file holds them."""
    _, given, _, floats = CASES["experts"]
    apart = [*given[:3], *(matrix for stack in given[3:] for matrix in stack)]
    run = experts.OPERATION.traced
    assert torch.equal(run(apart, [5], floats)[0], run(given, [], floats)[0])


def test_verification_sees_pytorchs_form():
    """Under a dispatch mode no operation of ours runs: what is proved does."""
    seen = []

    class Look(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **kwargs or {})

    with choose.use("native"), Look():
        situ.situ(rand(2, 3), rand(2, 3), *CAPS)
    assert "aten.tanh.default" in seen
    assert not [name for name in seen if "k3" in name]


START = f"""
import sys

sys.path.insert(0, {str(ROOT / "tests")!r})
import small
import torch
from torch.nn.functional import cross_entropy

lists = dict(full_attn_layers=[3], kda_layers=[1, 2])
sizes = dict(num_hidden_layers=3, attn_res_block_size=2, linear=lists)
model, graphs = small.model(made=small.config(**sizes)), []
ids = torch.arange(40).view(2, 20)


def look(graph, _):
    graphs.append([str(node.target) for node in graph.graph.nodes])
    return graph


backend = look if sys.argv[1] == "look" else sys.argv[1]
compiled = torch.compile(model, backend=backend, fullgraph=True)


def equal(a, b):
    assert (a - b).abs().max() <= 1e-5 * b.abs().max(), (a - b).abs().max()
"""
PREFILL = """
with torch.no_grad():
    equal(compiled(ids), model(ids))
ours = [name.split(".")[1] for name in graphs[0] if name.startswith("k3.")]
names = "token_ids attn_res_mix rms_norm situ kda_layer top_k experts"
assert set(ours) == set(names.split()), ours
"""
STATE = """
def both(piece, states, **how):
    piece = piece.clone()
    found, wanted = (
        f(piece, state=s, **how) for f, s in zip((compiled, model), states)
    )
    equal(found[0], wanted[0])
    for a, b in zip(found[1].caches, wanted[1].caches):
        for name, x in a.tensors().items():
            equal(x, b.tensors()[name])
    return found[1], wanted[1]


def fresh():
    return model.init_state(2), model.init_state(2)


with torch.no_grad():
    for piece in ids[:, :9], ids[:, 1:10], ids[:, 2:19], ids[:, 1:13]:
        states = both(piece, fresh())
    before = len(graphs)
    both(ids[:, 3:15], fresh())
    assert len(graphs) == before <= 2, before
    both(ids[:, :3], states)
    both(ids, fresh(), logits="last")
    for bounds in (0, 7, 7, 20), (0, 1, 9, 20):
        want = model(ids[:1], cu_seqlens=torch.tensor(bounds))
        equal(compiled(ids[:1], cu_seqlens=bounds), want)
    try:
        compiled(ids + 60)
        raise AssertionError("ids beyond the vocabulary were taken")
    except Exception as error:
        assert "token ids must be in 0 .. 60" in str(error), error
"""
TRAINING = """
def learn(f, ids):
    model.zero_grad()
    loss = cross_entropy(f(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    named = model.named_parameters()
    found = dict((name, p.grad.clone()) for name, p in named if p.grad is not None)
    return found | dict(loss=loss.detach())


for n in 20, 20, 13, 7:
    found, want = learn(compiled, ids[:, :n]), learn(model, ids[:, :n])
    assert found.keys() == want.keys()
    for name, x in want.items():
        equal(found[name], x)
"""


def run(body, backend):
    environment = os.environ | {"JAXTYPING_DISABLE": "1", "K3_KERNELS": "native"}
    command = [sys.executable, "-c", START + body, backend]
    subprocess.run(command, env=environment, check=True)


def test_a_compiled_prefill_is_one_graph_of_operations():
    run(PREFILL, "look")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["look", "aot_eager", "inductor"])
def test_prefill_in_pieces_is_compiled_once_for_many_lengths(backend):
    run(STATE, backend)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_training_gives_the_same_gradients(backend):
    run(TRAINING, backend)
