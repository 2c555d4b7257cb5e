"""The torch reading of the spec: float64 tensors, with gradients."""

import math

import torch

from k3.spec import ops

T = torch.Tensor

ops.exp.register(T, torch.exp)
ops.log.register(T, torch.log)
ops.sqrt.register(T, torch.sqrt)
ops.tanh.register(T, torch.tanh)
ops.erf.register(T, torch.erf)
ops.cos.register(T, torch.cos)
ops.sin.register(T, torch.sin)
ops.sigmoid.register(T, torch.sigmoid)
ops.softplus.register(T, torch.nn.functional.softplus)
ops.softmax.register(T, lambda x: torch.softmax(x, -1))
ops.log_softmax.register(T, lambda x: torch.log_softmax(x, -1))
ops.maximum.register(
    T, lambda x, y: torch.maximum(x, torch.as_tensor(y, dtype=x.dtype))
)
ops.minimum.register(
    T, lambda x, y: torch.minimum(x, torch.as_tensor(y, dtype=x.dtype))
)
ops.pi.register(T, lambda like: math.pi)
ops.lift.register(T, lambda like, value: float(value))
ops.key.register(T, lambda x: x.item())
ops.zeros.register(T, lambda like, shape: like.new_zeros(tuple(shape)))


@ops.total.register(T)
def _(x, axis=-1, keep=False):
    return x.sum(dim=axis, keepdim=keep)


@ops.stack_rule.register(T)
def _(first, items, axis):
    return torch.stack([torch.as_tensor(i, dtype=first.dtype) for i in items], axis)


@ops.concat_rule.register(T)
def _(first, items, axis):
    return torch.cat(list(items), axis)


@ops.matrix.register(T)
def _(like, rows):
    flat = [torch.as_tensor(x, dtype=like.dtype) for row in rows for x in row]
    return torch.stack(flat).reshape(len(rows), len(rows[0]))


def array(x):
    return torch.as_tensor(x, dtype=torch.float64)


def floats(x):
    return torch.as_tensor(x).detach().numpy()
