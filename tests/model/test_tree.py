"""A tree in one pass is each of its paths run alone; what stays leaves its state."""

import pytest
import torch
from small import config, gap, ids, model, schedule, state_gap

from k3.errors import RequestError, ShapeError
from k3.model import DecodeState
from k3.model.draft import features
from k3.model.tree import Forest, Nodes

TREES = ((-1, 0, 0, 1, 1, 2, 3), (-1,), (-1, 0, 1, 1))
LENS = (5, 0, 9)
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def net():
    return model(made=config(num_hidden_layers=4, linear=schedule(4)))


def contexts():
    return [ids(n, seed=i + 3).tolist() for i, n in enumerate(LENS)]


def prepared(net, keep=4):
    """A state behind three contexts, and a token for every node."""
    states = []
    for context in contexts():
        state = net.init_state(1, keep)
        if context:
            state = net(torch.tensor([context]), state=state)[1]
        states.append(state)
    tokens = [ids(len(tree), seed=20 + i).tolist() for i, tree in enumerate(TREES)]
    return DecodeState.join(states).keeping(keep), tokens


def along(tree, node):
    path = []
    while node >= 0:
        path.append(node)
        node = tree[node]
    return path[::-1]


def said(row, path, tokens):
    return torch.tensor([[*contexts()[row], *(tokens[row][i] for i in path)]])


def test_every_node_sees_its_context_and_its_ancestors(net):
    state, tokens = prepared(net)
    taps = {}
    forest = Forest(net, state, TREES)
    logits = forest.run(torch.tensor([t for row in tokens for t in row]), taps)
    read = features(taps, (0, 2, 3))[:, 0]
    at = 0
    for row, tree in enumerate(TREES):
        for node in range(len(tree)):
            seen = {}
            alone = net(said(row, along(tree, node), tokens), taps=seen)
            assert gap(logits[at], alone[0, -1]) < 1e-5
            assert gap(read[at], features(seen, (0, 2, 3))[0, -1]) < 1e-5
            at += 1


@pytest.mark.parametrize("paths", [([0, 1, 4], [0], [0, 1, 3]), ([0], [0], [0, 1])])
def test_the_path_that_stays_leaves_its_own_state(net, paths):
    state, tokens = prepared(net)
    forest = Forest(net, state, TREES)
    forest.run(torch.tensor([t for row in tokens for t in row]))
    got = forest.take(paths)
    assert got.lens == tuple(n + len(p) for n, p in zip(LENS, paths, strict=True))
    for row, path in enumerate(paths):
        _, want = net(said(row, path, tokens), state=net.init_state(1, 4))
        mine = got.select([row])
        assert state_gap(mine, want) < 1e-5
        back = mine.rewind(len(path) - 1)
        _, want = net(said(row, path[:1], tokens), state=net.init_state(1, 4))
        assert state_gap(back, want) < 1e-5
        last = torch.tensor([[7]])
        assert gap(net.step(last, back)[0], net.step(last, want)[0]) < 1e-5
    with pytest.raises(RequestError, match="a DecodeState is spent"):
        net.step(torch.zeros(3, 1, dtype=torch.long), state)


def test_a_state_that_keeps_nothing_goes_on_and_not_back(net):
    state, tokens = prepared(net, keep=0)
    forest = Forest(net, state, TREES)
    forest.run(torch.tensor([t for row in tokens for t in row]))
    got = forest.take(([0, 2, 5], [0], [0]))
    assert got.kept == (0, 0, 0)
    _, want = net(said(0, [0, 2, 5], tokens), state=net.init_state(1))
    assert state_gap(got.select([0]), want) < 1e-5
    net.step(torch.zeros(3, 1, dtype=torch.long), got)


@pytest.mark.parametrize("wrong", [(0,), (-1, 1), (-1, -2)])
def test_a_node_comes_after_its_parent(wrong):
    with pytest.raises(ShapeError, match="a node comes after its parent: got node"):
        Nodes.of([wrong])
