"""Of many ranks that fail, one says why."""

import groups_on_ranks
import pytest

from k3.errors import K3Error
from k3.parallel import Mesh, failure


def test_the_first_rank_that_fails_is_heard_and_the_others_end_quietly(two):
    first, second = two(Mesh(data=2), groups_on_ranks.fail)
    assert second == ("K3Error", "rank 1 is wrong")
    assert first == ("SystemExit", str(failure.CODE))


def test_alone_a_failure_is_what_it_is():
    with pytest.raises(K3Error, match="as it is"), failure.told_once():
        raise K3Error("as it is")
