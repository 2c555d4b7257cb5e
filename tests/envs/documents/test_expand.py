"""Topics expand into a graph: no cycles, nodes shared, the same each time."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.envs.documents import expand, facts, world
from k3.envs.documents.facts import Fact


def known(links):
    return {
        (s, r): Fact(subject=s, relation=r, value=v, document="d", passage=p, said=v)
        for s, r, v in links
        for p in [f"{s} {r} {v}"]
    }


def is_acyclic(graph):
    """Kahn's algorithm: nodes without parents are taken away until none is left."""
    counts = graph.parents()
    ready = [key for key, count in counts.items() if count == 0]
    taken = 0
    while ready:
        taken += 1
        for after in graph.behind[ready.pop()]:
            counts[after] -= 1
            if counts[after] == 0:
                ready.append(after)
    return taken == len(graph.nodes)


WORDS = st.sampled_from("abcdef")


@settings(max_examples=60)
@given(
    links=st.lists(st.tuples(WORDS, st.sampled_from("xyz"), WORDS), max_size=16),
    topics=st.lists(WORDS, min_size=1, max_size=3, unique=True),
    depth=st.integers(1, 5),
)
def test_it_has_no_cycle_whatever_the_facts(links, topics, depth):
    found = known(links)
    graph = expand.expand(topics, found, depth)
    assert is_acyclic(graph)
    assert graph == expand.expand(topics, found, depth)
    for path in graph.paths(min(depth, 3)):
        assert path[0].subject in topics
        assert len(set(map(id, path))) == len(path)
        for before, after in itertools.pairwise(path):
            assert before.value == after.subject


def test_a_cycle_of_facts_is_cut_once():
    graph = expand.expand(["a"], known([("a", "x", "b"), ("b", "x", "a")]), 4)
    assert graph.behind == {("a", "x"): (("b", "x"),), ("b", "x"): ()}
    assert expand.expand(["a"], known([("a", "x", "a")]), 4).behind == {("a", "x"): ()}


def test_topics_that_lead_to_one_subject_share_its_node():
    found = known([("a", "x", "c"), ("b", "x", "c"), ("c", "y", "d"), ("d", "y", "e")])
    graph = expand.expand(["a", "b"], found, 3)
    assert graph.parents()["c", "y"] == 2
    one, other = graph.paths(3)
    assert one[1] is other[1]
    assert one[2] is other[2]
    assert expand.passages([one, other]) == ["a x c", "c y d", "d y e", "b x c"]


def test_depth_is_how_far_it_expands():
    found = known([("a", "x", "b"), ("b", "x", "c"), ("c", "x", "d")])
    sizes = [len(expand.expand(["a"], found, depth).nodes) for depth in (1, 2, 3, 9)]
    assert sizes == [1, 2, 3, 3]
    graph = expand.expand(["a"], found, 3)
    assert [expand.asked(p) for p in graph.paths(2)] == ["the x of the x of a"]
    assert graph.paths(4) == []


@pytest.mark.parametrize("seed", range(5))
def test_made_up_worlds_share_nodes(seed):
    who, documents = world.people(random.Random(seed))
    found = [fact for d in documents for fact in facts.of_sentences(d)]
    graph = expand.expand(who[:4], facts.unambiguous(found), 4)
    assert is_acyclic(graph)
    assert max(graph.parents().values()) >= 2
    assert all(graph.paths(depth) for depth in (1, 2, 3))
