"""k3 compare: verdict, first difference, exit code."""

import numpy as np
import pytest

TEXT14 = "tests/golden/text14.npz"


def test_the_released_numbers_agree(k3, golden):
    found = k3("compare", golden, f"{golden}/golden.npz")
    assert found.code == 0
    assert found.out.splitlines()[-1] == "all agree"


@pytest.mark.parametrize("model", [[], ["-"]])
def test_the_file_can_name_its_weights(k3, golden, model):
    found = k3("compare", *model, f"{golden}/../text14.npz", "--json")
    assert found.code == 0
    assert found.json["ok"] is True
    assert len(found.json["entries"]) == 31


def test_past_the_tolerance_is_exit_1_and_names_the_first(k3, golden):
    found = k3("compare", golden, f"{golden}/golden.npz", "--tolerance", "1e-9")
    assert found.code == 1
    assert found.out.splitlines()[-1] == "first difference: proj_0"
    assert "DIFF proj_0" in found.out


def test_keys_that_were_not_compared_are_named(k3, golden, tmp_path):
    with np.load(f"{golden}/golden.npz") as file:
        np.savez(tmp_path / "more.npz", logits=np.zeros(2), **file)
    found = k3("compare", golden, tmp_path / "more.npz")
    assert "not compared: logits" in found.out


def test_a_file_without_weights_needs_a_model(k3, golden):
    found = k3("compare", f"{golden}/golden.npz")
    assert found.code == 2
    assert "must hold config" in found.err


def test_three_names_are_too_many(k3):
    assert "compare takes [MODEL] GOLDEN.npz" in k3("compare", "a", "b", "c").err


def test_a_folder_alone_is_told_which_file_to_add(k3, golden):
    found = k3("compare", golden)
    assert found.code == 2
    assert f"add it: k3 compare {golden} {golden}/golden.npz" in found.err
    assert "add it: k3 compare tiny GOLDEN.npz, a file" in k3("compare", "tiny").err


def test_the_file_comes_last(k3, golden):
    found = k3("compare", f"{golden}/golden.npz", golden)
    assert f"write k3 compare {golden} {golden}/golden.npz" in found.err


def test_numbers_of_another_model_are_said_once(k3, golden):
    found = k3("compare", "tiny", f"{golden}/golden.npz")
    assert (found.code, found.out) == (2, "")
    assert "golden numbers must be of the same model" in found.err
