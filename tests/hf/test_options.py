"""Options of transformers' callers: taken, without effect, refused."""

import pytest
import torch

from k3.errors import RequestError
from k3.hf import options


def test_loading_options_that_count():
    asked = options.read((), {"dtype": "float32", "device_map": {"": "meta"}})
    assert asked == options.Loading(
        torch.float32, torch.device("meta"), "packed", False
    )
    asked = options.read((), {"torch_dtype": "auto", "trust_remote_code": True})
    assert asked.dtype is None
    assert options.read((), {"token": "x", "max_memory": None}).experts == "packed"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"load_in_8bit": True}, "from_pretrained takes .*got load_in_8bit"),
        ({"device_map": "balanced"}, "device_map is one device: got 'balanced'"),
        ({"device_map": {"a": 0}}, "device_map is one device"),
        ({"dtype": "fp99"}, "dtype is 'auto', a torch dtype or its name: got 'fp99'"),
        ({"attn_implementation": "sdpa"}, "one implementation of attention"),
    ],
)
def test_loading_options_that_are_refused(given, message):
    with pytest.raises(RequestError, match=message):
        options.read((), given)


def test_saving_options():
    assert options.saving({}) == {"experts": None}
    assert options.saving({"is_main_process": False}) is None
    assert options.saving({"max_shard_size": "2 GiB"})["max_shard_bytes"] == 2**31
    assert options.shard_bytes(7) == 7
    assert options.shard_bytes("5GB") == 5 * 10**9
    for given, message in (
        ({"push_to_hub": True}, "save_pretrained takes .*got push_to_hub"),
        ({"safe_serialization": False}, "checkpoints are safetensors"),
        ({"max_shard_size": "much"}, "max_shard_size is bytes or a text"),
    ):
        with pytest.raises(RequestError, match=message):
            options.saving(given)


def test_sampling_takes_its_options_and_k3s_defaults():
    given = {"temperature": 0.5, "max_new_tokens": 3}
    assert options.sampling(given).temperature == 0.5
    assert given == {"max_new_tokens": 3}
    assert options.sampling({}).top_p == 0.95
    assert options.sampling({"do_sample": False}).temperature == 0
