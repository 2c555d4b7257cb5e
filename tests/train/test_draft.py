"""Draft training: the loss is the spec's, places are right, and it falls."""

import json

import pytest
import torch
from small import config, ids, model

from k3.checkpoint import draft as folder
from k3.config.draft import DraftConfig
from k3.data.packing import PADDING, Row
from k3.errors import RequestError
from k3.model.draft import Draft
from k3.train import draft as training


def row(lens, seed=1, padding=0):
    T = sum(lens) + padding
    domains = torch.zeros(1, T, dtype=torch.uint8)
    domains[:, T - padding :] = PADDING
    tokens = ids(1, T, seed=seed)
    ends = torch.tensor([0, *lens, *([padding] if padding else [])]).cumsum(0)
    learned = domains != PADDING
    return Row(
        ids=tokens, targets=tokens, learned=learned, domains=domains, cu_seqlens=ends
    )


@pytest.fixture(scope="module")
def net():
    return model(made=config(attn_res_block_size=1)).requires_grad_(False)


def fresh(net, **options):
    made = DraftConfig(text=net.config.text, num_speculative_steps=3, **options)
    return Draft(made, torch.float32).start_(net)


def test_the_loss_is_minus_log_of_the_overlap():
    p, q = torch.tensor([[0.7, 0.2, 0.1]]), torch.tensor([[0.5, 0.1, 0.4]])
    got = training.likelihood_loss(p.log(), q.log(), torch.arange(3))
    assert torch.allclose(got, -torch.tensor([0.7]).log())
    # Of the draft's two tokens one is the target's: min(0.2, 0.5) + min(0.1, 0.5).
    half = torch.tensor([[0.5, 0.5]])
    got = training.likelihood_loss(p.log(), half.log(), torch.tensor([1, 2]))
    assert torch.allclose(got, -torch.tensor([0.3]).log())


def test_without_overlap_the_loss_is_infinite_and_the_place_is_left_out(
    net, monkeypatch
):
    logits = torch.tensor([[0.0, -torch.inf]])
    apart = training.likelihood_loss(logits, logits.flip(-1), torch.arange(2))
    assert apart.tolist() == [torch.inf]
    # The target writes token 0 for sure, which is none of the draft's two.
    draft = fresh(net, draft_vocab_size=2)
    draft.d2t.fill_(1)
    sure = torch.full((1, 6, 61), -torch.inf)
    sure[..., 0] = 0
    read = torch.zeros(1, 6, 78)
    monkeypatch.setattr(training, "_target", lambda *args: (sure, read))
    found = training.overlap(net, draft, row([6]), 2)
    assert found.apart == 5 + 4
    assert (float(found.loss.detach()), found.rates) == (0.0, [0.0, 0.0])


def test_places_stay_inside_their_sequence_and_out_of_padding(net):
    packed = row([4, 1, 3], padding=4)
    lens = (4, 1, 3, 4)
    assert training._places(packed, lens, 0).tolist() == [0, 1, 2, 5, 6]
    assert training._places(packed, lens, 1).tolist() == [0, 1, 5]
    assert training._places(packed, lens, 2).tolist() == [0]


def test_packed_is_each_alone(net):
    draft = fresh(net)
    both = row([6, 6], padding=3)
    first = row([6])
    object.__setattr__(first, "ids", both.ids[:, :6])
    second = row([6])
    object.__setattr__(second, "ids", both.ids[:, 6:12])
    got = training.overlap(net, draft, both, 3)
    alone = [training.overlap(net, draft, one, 3) for one in (first, second)]
    mean = sum(float(one.loss.detach()) for one in alone) / 2
    assert float(got.loss.detach()) == pytest.approx(mean, rel=1e-5)


def test_it_falls_the_target_stays_and_the_folder_is_loaded(net, tmp_path):
    before = {name: p.clone() for name, p in net.named_parameters()}
    draft = fresh(net)
    options = training.DraftOptions(steps=25, learning_rate=1e-2, log_steps=5)
    records = training.run(
        net, draft, lambda step: [row([14], seed=step % 3)], options, out=tmp_path
    )
    assert records[-1]["loss"] < 0.8 * records[0]["loss"]
    assert records[-1]["overlap_1"] > records[0]["overlap_1"]
    assert all(torch.equal(before[n], p) for n, p in net.named_parameters())
    read = folder.load(tmp_path)
    assert torch.equal(read.fc.weight, draft.fc.weight)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [5, 10, 15, 20, 25]


def test_a_loss_that_is_not_finite_ends_it(net):
    draft = fresh(net)
    with torch.no_grad():
        draft.fc.weight.fill_(torch.nan)
    options = training.DraftOptions(steps=1)
    with pytest.raises(RequestError, match="loss must be finite: got nan"):
        training.run(net, draft, lambda step: [row([5])], options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"steps": 0}, "steps must be at least 1: got 0"),
        ({"log_steps": 0}, "log_steps must be at least 1"),
        ({"learning_rate": 2.0}, "learning_rate must be above 0 and below 1: got 2.0"),
    ],
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(RequestError, match=sentence):
        training.DraftOptions(**options)
