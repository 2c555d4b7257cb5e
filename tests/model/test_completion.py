"""What GenerateOptions and generate refuse, with its sentence."""

import pytest
import torch
from small import model

from k3.errors import RequestError
from k3.model.generate import GenerateOptions, generate

# A user gets the sentences; the shape checks of the tests would come first.
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def net():
    return model(torch.float32)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"max_tokens": 1.5}, "max_tokens must be a whole number.*got 1.5"),
        ({"max_tokens": True}, "max_tokens must be a whole number.*got True"),
        ({"max_tokens": "3"}, "max_tokens must be a whole number.*got '3'"),
        ({"max_tokens": float("inf")}, "max_tokens must be a whole number"),
        ({"max_tokens": -1}, "max_tokens must be at least 0: got -1"),
        ({"seed": 1.0}, "seed must be a whole number"),
        ({"seed": True}, "seed must be a whole number"),
        ({"seed": 2**63}, "seed must be from 0"),
        ({"stop": "the"}, r"stop must be a tuple of texts.*got 'the'; write \('text',"),
        ({"stop": (5,)}, "stop must be a tuple of texts"),
        ({"stop": ("",)}, "stop must be a tuple of texts of at least one character"),
        ({"stop_ids": ("a",)}, "stop_ids must be a tuple of token ids"),
        ({"stop_ids": (-1,)}, "stop_ids must be a tuple of token ids"),
        ({"stop_ids": 5}, "stop_ids must be a tuple of token ids: got 5"),
        ({"ignore_eos": 1}, "ignore_eos is True or False: got 1"),
    ],
)
def test_options_of_another_kind_are_refused(fields, sentence):
    with pytest.raises(RequestError, match=sentence):
        GenerateOptions(**fields)


@pytest.mark.parametrize("prompt", [[1.5], "hello", 7, None, [True], [[1]], [None]])
def test_prompts_are_lists_of_ids(net, prompt):
    with pytest.raises(RequestError, match="a prompt is a list of token ids, generate"):
        generate(net, [prompt], GenerateOptions(max_tokens=1))


def test_stop_ids_outside_the_vocabulary_and_odd_options(net):
    with pytest.raises(RequestError, match="token ids must be from 0 to 60: got 61"):
        generate(net, [[1]], GenerateOptions(max_tokens=1, stop_ids=(61,)))
    with pytest.raises(RequestError, match="options must be GenerateOptions"):
        generate(net, [[1]], [None])
    tensors = generate(net, [torch.tensor([1, 2])], GenerateOptions(max_tokens=2))
    assert (
        tensors[0].ids == generate(net, [[1, 2]], GenerateOptions(max_tokens=2))[0].ids
    )
