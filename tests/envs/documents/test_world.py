"""A made-up world: everything is said once, in documents that differ by the seed."""

import random

from k3.envs.documents import facts, world


def test_the_same_seed_tells_the_same_and_each_fact_once():
    who, documents = world.people(random.Random(3))
    assert (who, documents) == world.people(random.Random(3))
    assert documents != world.people(random.Random(4))[1]
    assert len(documents) == world.DOCUMENTS
    found = [fact for d in documents for fact in facts.of_sentences(d)]
    assert len(facts.unambiguous(found)) == len(found)
    assert all((name, "town") in facts.unambiguous(found) for name in who)
