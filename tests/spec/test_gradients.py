"""gradcheck of the differentiable spec functions that other tests do not check."""

import pytest
import torch
from readings import tensor

from k3.spec import attn_res, context, kda, norm, rl, speculate, vision
from k3.spec import vision_position as position


def law(x):
    return torch.softmax(x, -1)


CASES = {
    "rms_norm": (norm.rms_norm, (2, 3), (3,)),
    "l2_norm": (norm.l2_norm, (2, 3)),
    "probabilities": (lambda x: norm.probabilities(law(x)), (4,)),
    "gate": (kda.gate, (3,), ()),
    "soft gate": (lambda z, a: kda.gate(z, a, None), (3,), ()),
    "retention": (kda.retention, (3,), ()),
    "short_conv": (kda.short_conv_sequence, (5, 2), (2, 4)),
    "phases": (lambda q, v: attn_res.merge([attn_res.phase(q, v)]), (3,), (2, 3)),
    "segment": (
        lambda k, v, a, b: context.act(context.segment(k, v, a, b), v[:2].T @ v[:2]),
        (2, 2),
        (2, 2),
        (2, 2),
        (2,),
    ),
    "likelihood": (lambda p, q: speculate.likelihood_loss(law(p), law(q)), (4,), (4,)),
    "reward": (lambda p, q: rl.reward(law(p), law(q), 5), (4,), (4,)),
    "gelu": (vision.gelu, (3,)),
    "gelu_tanh": (vision.gelu_tanh, (3,)),
    "stretch": (lambda t: position.stretch(t, 3, 2), (2, 4, 2)),
    "rotate": (position.rotate, (2, 4), (2, 2)),
    "merge": (lambda x: vision.merge(x, (2, 2, 2)), (8, 2)),
    "attend": (
        lambda w, o, x, a: vision.attend(w, o, x, 2, a),
        (24, 3),
        (3, 8),
        (3, 3),
        (3, 2),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_gradcheck(rng, name):
    function, *shapes = CASES[name]
    inputs = [tensor.array(rng.normal(size=s)).requires_grad_() for s in shapes]
    assert torch.autograd.gradcheck(function, inputs)
