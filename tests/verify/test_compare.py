"""k3.verify.compare: a wrong model is found out, at the first wrong tensor."""

from pathlib import Path

import numpy as np
import pytest
import torch

from k3.errors import CheckpointError, RequestError
from k3.verify.compare import compare, seeded_model
from k3.verify.golden import Golden

FILE = Path(__file__).parents[1] / "golden" / "text14.npz"


@pytest.fixture
def golden():
    return Golden.load(FILE)


@pytest.fixture
def model(golden):
    return seeded_model(golden, dtype=torch.float32)


def changed(golden, **arrays):
    return Golden(golden.path, golden.arrays | arrays)


def test_one_wrong_weight_is_found_at_the_layer_that_has_it(model, golden):
    layer = model.language_model.model.layers[5]
    with torch.no_grad():
        layer.self_attn.b_proj.weight.mul_(1.5)
    report = compare(model, golden)
    assert not report.ok
    assert report.first.name == "layers.5.self_attn"
    assert [entry.name for entry in report.entries if entry.ok][-1] == (
        "layers.4.out_prefix"
    )


def test_a_tolerance_can_be_given(model, golden):
    assert not compare(model, golden, tolerance=1e-9).ok
    with torch.no_grad():
        model.language_model.lm_head.weight.mul_(1.001)
    assert not compare(model, golden).ok
    assert compare(model, golden, tolerance=1e-2).ok


def test_nan_is_a_difference_on_either_side(model, golden):
    poisoned = golden["logits_full"].copy()
    poisoned[3, 7] = np.nan
    report = compare(model, changed(golden, logits_full=poisoned))
    assert report.first.name == "logits_full"
    assert report.first.at == (3, 7)
    with torch.no_grad():
        model.language_model.lm_head.weight[9] = np.nan
    assert compare(model, golden).first.name == "logits_prefill"


def test_keys_that_nothing_computes_are_named(model, golden):
    extra = changed(
        golden, **{"logit_full": np.zeros(3), "layers.0.gate": np.zeros((37, 5))}
    )
    report = compare(model, extra)
    assert sorted(report.unknown) == ["layers.0.gate", "logit_full"]


def test_a_file_with_nothing_to_compare_is_refused(model, golden):
    only = Golden(golden.path, {"ids": golden["ids"]})
    with pytest.raises(CheckpointError, match="at least one tensor to reproduce"):
        compare(model, only)


def test_numbers_of_another_vocabulary_are_refused(model, golden):
    with pytest.raises(RequestError, match="ids holds token 999, the model has 256"):
        compare(model, changed(golden, ids=np.array([1, 999])))


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("logits_full", (43, 255), "the model's is 256 wide"),
        ("layers.3.self_attn", (37, 48), "the model's is 40 wide"),
        ("layers.14.self_attn", (37, 40), "the model has 14 layers"),
        ("proj_0", (6, 48), "the model's is 40 wide"),
    ],
)
def test_numbers_of_another_model_are_refused_once(model, golden, name, shape, message):
    other = changed(golden, **{name: np.zeros(shape)})
    with pytest.raises(RequestError, match="must be of the same model") as caught:
        compare(model, other)
    assert message in str(caught.value)
    assert name in str(caught.value)


def test_another_shape_is_a_difference_with_both_shapes(model, golden):
    shorter = golden["logits_full"][:-1]
    entry = compare(model, changed(golden, logits_full=shorter)).first
    assert "got (43, 256), expected (42, 256)" in entry.line()


@pytest.mark.parametrize("tolerance", [float("nan"), -1e-9, float("inf")])
def test_a_tolerance_that_bounds_nothing_is_refused(model, golden, tolerance):
    with pytest.raises(RequestError, match="must be at least 0 and finite: got"):
        compare(model, golden, tolerance=tolerance)
