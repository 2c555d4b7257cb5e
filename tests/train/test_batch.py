"""Loss and gradients do not depend on how rows are shared, cut or packed."""

import dataclasses

import pytest
import small
import torch
import torch.nn.functional as F
import toy

from k3.config import K3Config
from k3.data import packing
from k3.data.examples import Example
from k3.train import batch, pretrain, workers
from k3.train.balance import Balance


@pytest.fixture
def model():
    model = pretrain.fresh(toy.recipe())
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.add_(
                    0.05 * torch.randn(p.shape, generator=torch.manual_seed(p.numel()))
                )
    return model


def document(length, seed, domain="text", unlearned=(), words=300):
    ids = torch.randint(0, words, (length,), generator=torch.manual_seed(seed))
    learned = torch.ones(length, dtype=torch.bool)
    learned[[0, *unlearned]] = False
    return Example(ids=ids, learned=learned, domain=domain)


@pytest.fixture
def documents():
    return [
        document(17, 1),
        document(5, 2, "chat", unlearned=[1, 2]),
        document(18, 3),
        document(9, 4, "chat", unlearned=[8]),
        document(3, 5),
    ]


@pytest.fixture
def rows(documents):
    """Three rows of 24 tokens; the first two end in padding."""
    names = ["text", "chat"]
    first, second, third = documents[:2], documents[2:3], documents[3:]
    third = [*third, document(12, 6)]
    return [packing.pack(part, 24, 555, names) for part in (first, second, third)]


def run(model, rows, num_workers=1, micro_batch=1, weight=0.0):
    parameters = [p for p in model.parameters() if p.requires_grad]
    counts = batch.count(rows, mtp=bool(weight))
    objective = batch.Objective(counts, Balance(model, "sign"), weight)
    with workers.pool(num_workers) as pool:
        passes = batch.passes(rows, micro_batch)
        return batch.run(model, parameters, passes, pool, objective)


def same(a, b):
    return all(
        x is y is None or torch.equal(x, y)
        for x, y in zip(a.gradients, b.gradients, strict=True)
    )


def close(a, b):
    for x, y in zip(a.gradients, b.gradients, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            scale = 1e-9 if x.dtype == torch.float64 else 1e-4
            torch.testing.assert_close(x, y, rtol=scale, atol=scale / 100)


def alone(model, documents):
    """Sum and number of losses of documents that never meet."""
    total, number = 0, 0
    for example in documents:
        logits = model(example.ids[None])[0, :-1]
        here = example.learned[1:]
        total += F.cross_entropy(logits[here], example.ids[1:][here], reduction="sum")
        number += int(here.sum())
    return total, number


def test_packed_rows_are_separate_documents(model, documents, rows):
    total, number = alone(model, [*documents, document(12, 6)])
    found = run(model, rows)
    assert batch.count(rows).next == number
    assert found.loss == pytest.approx(float(total.detach()) / number, rel=1e-5)
    parameters = [p for p in model.parameters() if p.requires_grad]
    wanted = torch.autograd.grad(total / number, parameters, allow_unused=True)
    close(found, dataclasses.replace(found, gradients=list(wanted)))


def test_accumulation_is_the_mean_over_tokens_not_over_passes(model, rows):
    """Passes have 19, 17 and 18 learned targets: their means do not average."""
    whole = run(model, rows, micro_batch=3)
    for micro_batch in (1, 2):
        found = run(model, rows, micro_batch=micro_batch)
        assert found.loss == pytest.approx(whole.loss, rel=1e-6)
        close(found, whole)
        assert torch.equal(found.tally.counts, whole.tally.counts)


def test_bits_do_not_depend_on_the_number_of_workers(model, rows):
    one = run(model, rows)
    for count in (2, 3):
        assert same(one, run(model, rows, count))


def test_what_is_not_learned_counts_exactly_nothing(model, rows):
    first = run(model, rows)
    changed = [
        dataclasses.replace(row, targets=torch.where(row.learned, row.targets, 7))
        for row in rows
    ]
    assert same(first, run(model, changed))


def test_losses_of_domains_add_up(model, rows):
    found = run(model, rows)
    sums, counts = found.domains[:, 0], found.domains[:, 1]
    assert counts[:2].tolist() == [16 + 17 + 2 + 11, 2 + 7]
    assert counts.sum() == batch.count(rows).next
    assert float(sums.sum() / counts.sum()) == pytest.approx(found.loss, rel=1e-6)


def test_report_74_loads_count_every_choice_but_those_of_padding(model, rows):
    loads = run(model, rows, 2).tally.loads
    real = 17 + 5 + 18 + 9 + 3 + 12
    assert loads.shape == (4, 8)
    assert (loads.sum(-1) == real * 2).all()


def test_only_the_first_unused_retrieval_has_no_gradient(model, rows):
    named = [n for n, p in model.named_parameters() if p.requires_grad]
    found = run(model, rows).gradients
    unused = {n for n, g in zip(named, found, strict=True) if g is None}
    prefix = "language_model.model.layers.0.self_attention_res"
    assert unused == {f"{prefix}_norm.weight", f"{prefix}_proj.weight"}


@pytest.fixture
def seeing():
    """Every part of the model: a tower, an MTP layer, weights that matter."""
    made = small.config(vision={}, num_nextn_predict_layers=1)
    return small.model(torch.float64, made)


@pytest.fixture
def pictured():
    """Documents with a clip of two pictures, without any, and with one picture."""
    found = []
    for seed, grids, length in (
        (1, [(1, 2, 4), (1, 4, 2)], 15),
        (2, [], 9),
        (3, [(2, 2, 2)], 8),
    ):
        example = document(length, seed, "seen" if grids else "text", words=57)
        rows = sum(h * w // 4 for _, h, w in grids)
        here = torch.arange(2, 2 + rows)
        ids, learned = example.ids.clone(), example.learned.clone()
        ids[here], learned[here] = small.MEDIA, False
        patches = sum(t * h * w for t, h, w in grids)
        pixels = torch.rand(patches, 3, 14, 14, generator=torch.manual_seed(seed))
        pictures = {"pixels": pixels, "grids": torch.tensor(grids)} if grids else {}
        found.append(
            Example(ids=ids, learned=learned, domain=example.domain, **pictures)
        )
    return found


def each(model, example):
    """Sums and numbers of next-token and of MTP losses of one document alone."""
    features, taps = None, {}
    if example.pixels is not None:
        features = model.encode_images(example.pixels, example.grids)
    ids = example.ids[None]
    logits = model(ids, features=features, taps=taps)[0]
    layer = model.language_model.model.layers[-1]
    further = layer(ids[:, 1:], taps["output_attn_res"][:, :-1])[0]
    sums = []
    for found, ahead in ((logits[:-1], 1), (further[:-1], 2)):
        here = example.learned[ahead:]
        losses = F.cross_entropy(found, example.ids[ahead:], reduction="none")
        sums.append((losses[here].sum(), int(here.sum())))
    return sums


def test_pictures_and_mtp_packed_are_separate_documents(seeing, pictured):
    """Gradients reach the tower; the MTP loss never looks into the next document."""
    rows = [
        packing.pack(pictured[:2], 30, 60, ["text", "seen"]),
        packing.pack(pictured[2:], 30, 60, ["text", "seen"]),
    ]
    found = run(seeing, rows, 2, weight=0.3)
    sums = [each(seeing, example) for example in pictured]
    loss, mtp = (
        sum(part[i][0] for part in sums) / sum(part[i][1] for part in sums)
        for i in (0, 1)
    )
    assert found.loss == pytest.approx(float(loss.detach()), rel=1e-12)
    assert found.mtp == pytest.approx(float(mtp.detach()), rel=1e-12)
    named = {n: p for n, p in seeing.named_parameters() if p.requires_grad}
    wanted = torch.autograd.grad(
        loss + 0.3 * mtp, list(named.values()), allow_unused=True
    )
    close(found, dataclasses.replace(found, gradients=list(wanted)))
    given = dict(zip(named, found.gradients, strict=True))
    for part in ("vision_tower", "mm_projector", "layers.7.eh_proj"):
        assert any(g is not None and g.any() for n, g in given.items() if part in n)


def test_an_mtp_layer_shares_the_vocabulary(small_mtp):
    model = pretrain.fresh(small_mtp)
    names = {n for n, _ in model.named_parameters()}
    layer, language = model.language_model.model.layers[-1], model.language_model
    assert layer.embed_tokens.weight is language.model.embed_tokens.weight
    assert layer.shared_head.head.weight is language.lm_head.weight
    assert not language.lm_head.weight.any()
    assert sum("embed_tokens" in n or "head" in n.split(".")[-2] for n in names) == 2


@pytest.fixture
def small_mtp():
    data = toy.config().to_dict()
    data["text_config"]["num_nextn_predict_layers"] = 1
    return dataclasses.replace(toy.recipe(), config=K3Config.from_dict(data))
