"""Packed documents against the same documents alone, in the model that is shipped."""

import pytest
import torch
import torch.nn.functional as F

from k3 import recipes
from k3.data.examples import Example
from k3.data.packing import concatenate, pack
from k3.model import Model

TOKENS = 90
LENGTHS = [1, 3, 37, 29]


@pytest.fixture(scope="module")
def model():
    return Model(recipes.tiny().config, dtype=torch.float32).init_weights(7)


@pytest.fixture(scope="module")
def documents():
    """A quarter of the tokens is not learned, in an order of no meaning."""
    draw = torch.Generator().manual_seed(1)
    found = []
    for length in LENGTHS:
        learned = torch.rand(length, generator=draw) > 0.25
        learned[0] = False
        ids = torch.randint(1000, (length,), generator=draw)
        found.append(Example(ids=ids, learned=learned, domain="d"))
    return found


def total(model, row, taps=None):
    """The sum of the losses of what is learned, and the logits."""
    logits = model(row.ids, cu_seqlens=row.cu_seqlens, taps=taps)
    loss = F.cross_entropy(
        logits[row.learned], row.targets[row.learned], reduction="sum"
    )
    return loss, logits


def gradients(model, *losses):
    wanted = [p for p in model.parameters() if p.requires_grad]
    return torch.autograd.grad(sum(losses), wanted, allow_unused=True)


def close(found, wanted):
    """Of gradients: within 2e-5 of the largest of each parameter."""
    for a, b in zip(found, wanted, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.isfinite().all()
            assert (a - b).abs().max() <= 2e-5 * b.abs().max().clamp(min=1e-3)


@pytest.fixture(scope="module")
def alone(model, documents):
    """Loss, logits of each document and gradients of the sum, one document a call."""
    rows = [pack([document], len(document), 0) for document in documents]
    found = [total(model, row) for row in rows]
    grads = gradients(model, *(loss for loss, _ in found))
    whole = sum(loss.detach() for loss, _ in found)
    return float(whole), [x.detach() for _, x in found], grads


def test_a_packed_row_is_its_documents(model, documents, alone, unchecked):
    row = pack(documents, TOKENS, 0)
    loss, logits = total(model, row)
    for part, want in zip(
        logits[0].split([*LENGTHS, TOKENS - 70]), alone[1], strict=False
    ):
        torch.testing.assert_close(part, want[0], rtol=0, atol=2e-5)
    assert float(loss.detach()) == pytest.approx(alone[0], rel=1e-6)
    close(gradients(model, loss), alone[2])


def test_joined_rows_are_their_documents(model, documents, alone, unchecked):
    row = concatenate([pack(documents[:2], 11, 0), pack(documents[2:], 70, 0)])
    loss, _ = total(model, row)
    assert float(loss.detach()) == pytest.approx(alone[0], rel=1e-6)
    close(gradients(model, loss), alone[2])


def test_nothing_passes_a_boundary(model, documents, unchecked):
    """Memory, convolution window and attention begin anew: exact zeros outside."""
    row, taps = pack(documents, TOKENS, 0), {}
    _, logits = total(model, row, taps)
    start, stop = row.cu_seqlens[2:4].tolist()
    here = F.cross_entropy(logits[0, start:stop], row.targets[0, start:stop])
    (grad,) = torch.autograd.grad(here, taps["embed_tokens"])
    assert grad[0, start].any()
    assert not grad[0, :start].any()
    assert not grad[0, stop:].any()


def test_masked_positions_and_padding_contribute_exactly_nothing(
    model, documents, unchecked
):
    row, taps = pack(documents, TOKENS, 0), {}
    loss, logits = total(model, row, taps)
    at_logits, at_input = torch.autograd.grad(loss, (logits, taps["embed_tokens"]))
    assert at_logits[row.learned].any(-1).all()
    assert not at_logits[~row.learned].any()
    assert not at_input[~row.real].any()
    other = row.targets.clone()
    other[~row.learned] = 5
    again = F.cross_entropy(logits[row.learned], other[row.learned], reduction="sum")
    assert torch.equal(again, loss)


def test_report_44_padding_behind_the_last_document_changes_no_gradient(
    model, documents, alone, poisoned, unchecked
):
    for tokens in (70, 71, 90):
        loss, _ = total(model, pack(documents, tokens, 3))
        close(gradients(model, loss), alone[2])
