"""Threads of one core each, and the old count afterwards."""

import torch

from k3.train import workers


def test_pool_gives_threads_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with workers.pool(2) as pool:
            assert (
                list(pool.map(lambda _: torch.get_num_threads(), range(4))) == [1] * 4
            )
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
