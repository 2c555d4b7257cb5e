"""Teachers: the numbers of the pairs of domains and efforts, one by one."""

from itertools import product

from k3.logic.falsify import evaluate
from k3.proof import teachers


def test_each_number_names_one_pair_of_domain_and_effort():
    pairs = list(product(range(teachers.DOMAINS), range(teachers.EFFORTS)))
    assert len(pairs) == 9
    for number, (domain, effort) in enumerate(pairs):
        at = {teachers.n: number}
        assert evaluate(teachers.THIRD, at) == domain
        assert evaluate(teachers.n - teachers.THIRD * 3, at) == effort
