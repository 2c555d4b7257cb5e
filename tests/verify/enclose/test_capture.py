"""Modules of a run with their inputs: copies, in order, and nothing left behind."""

import kills
import torch

from k3.model.attn_res import Depth
from k3.verify.enclose import capture


def test_calls_come_in_order_and_repeat_to_the_bit():
    made = kills.run(kills.model(0.3, torch.float32))
    names = [call.name for call in made[:6]]
    assert names == [
        "layers.0.input_layernorm",
        "layers.0.self_attn",
        "layers.0.mlp_res",
        "layers.0.post_attention_layernorm",
        "layers.0.mlp",
        "layers.1.self_attention_res",
    ]
    assert made[-1].name == "lm_head"
    for call in made:
        again = kills.made(call)
        assert call.got
        assert all(torch.equal(again[n], x) for n, x in call.got.items())


def test_inputs_are_those_before_the_call():
    running, made = kills.model(0.3, torch.float32), []
    state = running.init_state(1)
    for ids in ([[3, 4]], [[5]]):
        with torch.no_grad(), capture.calls(running) as calls:
            _, state = running(torch.tensor(ids), state=state)
        made.append({c.name: c for c in calls})
    first, second = (m["layers.0.self_attn"] for m in made)
    assert not first.args[1].state.any()
    assert torch.equal(second.args[1].state, first.got["state"])
    assert made[1]["layers.3.self_attn"].args[1].lens == (2,)


def test_nothing_is_left_behind():
    running, before = kills.model(0.3, torch.float32), Depth.retrieve
    kills.run(running)
    assert Depth.retrieve is before
    assert not any(m._forward_hooks for m in running.modules())
    assert not any(m._forward_pre_hooks for m in running.modules())
