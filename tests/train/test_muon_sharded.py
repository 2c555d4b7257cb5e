"""Muon in shards: the weights of one process, and bytes that can be counted."""

import functools
import sys
from pathlib import Path

import pytest
import torch

from k3.parallel import Mesh
from k3.train import muon_sharded
from k3.train.muon_sharded import Matrix, owners, pieces, spans

sys.path.insert(0, str(Path(__file__).parent))
import muon_on_ranks


def joined(results, at):
    return {
        n: torch.cat([result[at][n] for result in results]) for n in muon_on_ranks.CUTS
    }


def same_as_alone(results, dtype):
    want = muon_on_ranks.alone(dtype)
    for at in (0, 1):
        for name, value in joined(results, at).items():
            torch.testing.assert_close(value, want[at][name], atol=1e-5, rtol=1e-5)
    assert sum(result[2] for result in results) == want[2]


def moved_values(count):
    """Values of matrices that lie elsewhere than their owner, one way."""
    total = 0
    shapes, cuts = muon_on_ranks.SHAPES, muon_on_ranks.CUTS
    every = [m for n in cuts for m in muon_sharded.listed(n, shapes[n], cuts[n])]
    held = {n: spans(s[0], count) for n, s in shapes.items()}
    owner = owners(every, held, count)
    for m in every:
        parts = pieces(m, held[m.name])
        if len(parts) > 1 and m.name != "idle":
            far = sum(high - low for rank, low, high in parts if rank != owner[m])
            total += far * m.shape[1]
    return total


@pytest.mark.parametrize("bucket", [1, 2**24])
def test_two_ranks_are_one_process(two, bucket):
    work = functools.partial(muon_on_ranks.sharded, bucket=bucket)
    results = two(Mesh(data=2), work)
    same_as_alone(results, torch.float32)
    sent = sum(result[3] for result in results)
    # Two steps, fp32 there and back; a matrix that one rank holds does not travel.
    assert sent == 2 * 2 * 4 * moved_values(2) > 0


def test_two_ranks_send_bf16_back(two):
    work = functools.partial(muon_on_ranks.sharded, dtype=torch.bfloat16)
    results = two(Mesh(data=2), work)
    same_as_alone(results, torch.bfloat16)
    assert sum(result[3] for result in results) == 2 * (4 + 2) * moved_values(2)


@pytest.mark.slow
def test_four_ranks_are_one_process(four):
    results = four(Mesh(data=2, context=2), muon_on_ranks.sharded)
    same_as_alone(results, torch.float32)
    assert sum(result[3] for result in results) == 2 * 2 * 4 * moved_values(4)


@pytest.mark.parametrize(("rows", "ranks"), [(7, 4), (8, 4), (2, 4), (1, 1), (9, 4)])
def test_spans_are_those_of_fsdp(rows, ranks):
    chunks = [len(c) for c in torch.arange(rows).chunk(ranks)]
    got = [stop - start for start, stop in spans(rows, ranks)]
    assert got == chunks + [0] * (ranks - len(chunks))
    assert spans(rows, ranks)[-1][1] == rows


def test_work_is_shared_evenly():
    matrices = [Matrix(f"w{i}", 0, 64 + i, (64 + i, 256)) for i in range(40)]
    held = {m.name: spans(m.stop, 4) for m in matrices}
    work = [0] * 4
    for m, rank in owners(matrices, held, 4).items():
        work[rank] += m.cost
    assert max(work) < 1.05 * sum(work) / 4


def test_a_matrix_that_one_rank_holds_stays_there():
    experts = [Matrix("w1", i, i + 1, (8, 8)) for i in range(6)]
    held = {"w1": spans(6, 4)}
    assert [owners(experts, held, 4)[m] for m in experts] == [0, 0, 1, 1, 2, 2]
