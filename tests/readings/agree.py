"""Fast against spec: the same numbers and the same gradients in float64."""

import torch

TOLERANCE = 1e-10


def close(fast, slow, tolerance=TOLERANCE, what=""):
    """Largest difference at most `tolerance` of the larger of 1 and the spec's size."""
    assert fast.shape == slow.shape, (what, fast.shape, slow.shape)
    if not slow.numel():
        return
    gap = (fast - slow).abs().max()
    assert gap <= tolerance * slow.abs().max().clamp(min=1), (what, gap.item())


def same(fast, slow, inputs, tolerance=TOLERANCE):
    """Outputs of two functions of tensors, and gradients of random sums of them."""
    fast_in = [x.detach().clone().requires_grad_() for x in inputs]
    slow_in = [x.detach().clone().requires_grad_() for x in inputs]
    fast_out, slow_out = _tuple(fast(*fast_in)), _tuple(slow(*slow_in))
    assert len(fast_out) == len(slow_out)
    weights = [torch.randn_like(x) for x in slow_out]
    for one, other in zip(fast_out, slow_out, strict=True):
        close(one, other, tolerance, "output")
    for outs in (fast_out, slow_out):
        sum((w * x).sum() for w, x in zip(weights, outs, strict=True)).backward()
    for i, (one, other) in enumerate(zip(fast_in, slow_in, strict=True)):
        assert (one.grad is None) == (other.grad is None), f"gradient {i}"
        if one.grad is not None:
            close(one.grad, other.grad, tolerance, f"gradient {i}")


def _tuple(x):
    return x if isinstance(x, tuple) else (x,)
