"""Data movement: the same ATen call on the shadow and on every residue tensor.

Strides, aliasing and in-place writes are right by construction.
"""

from typing import Any

import torch
from torch import Tensor

from k3.verify.exact import nested
from k3.verify.exact.tensor import (
    ExactTensor,
    Unsupported,
    is_exact,
    log_parts,
    make_log,
    words,
)

MOVES = words(
    """
    view _unsafe_view reshape permute transpose t expand squeeze unsqueeze
    select slice split split_with_sizes unbind cat stack clone alias detach
    index index_select gather flip roll repeat copy_ copy tril triu diagonal
    as_strided take_along_dim unfold movedim contiguous index_put_
    _index_put_impl_ scatter_ scatter select_scatter slice_scatter
    slice_backward select_backward embedding expand_copy view_copy
    transpose_copy permute_copy squeeze_copy unsqueeze_copy resolve_conj
    resolve_neg repeat_interleave narrow chunk unsafe_split take diag_embed
    lift_fresh masked_scatter as_strided_ diagonal_backward unsafe_chunk
    constant_pad_nd_zero _reshape_alias
    """
)
DROP = ("dtype", "layout", "device", "pin_memory")


def move(run: Any, func: Any, args: Any, kwargs: Any) -> Any:
    """Apply a movement to an exact tensor and whatever it meets."""
    name = func._schema.name.split("::")[1]
    kwargs = {k: v for k, v in kwargs.items() if k not in DROP}
    inplace = name.endswith("_")
    if inplace and not is_exact(args[0]):
        raise Unsupported(
            f"{func} writes an exact value into a plain tensor: make the tensor inside "
            "the program, or pass it as an input"
        )

    def lift(x: Any) -> Any:
        return run.lift(x) if isinstance(x, Tensor) and x.is_floating_point() else x

    args, kwargs = nested.mapped(lift, (args, kwargs))
    exact = [x for x in nested.leaves((args, kwargs)) if is_exact(x)]
    depth = min(x.depth for x in exact)
    f = _on(func, args, kwargs, lambda x: x.f)
    each = [_on(func, args, kwargs, lambda x, i=i: x.c[i]) for i in range(depth)]
    if inplace:
        lower(args[0], depth, all(x.cell.constant for x in exact))
        return args[0]
    source = exact[0]
    still = all(x.cell.constant for x in exact)
    if isinstance(f, list | tuple):
        columns = zip(f, zip(*each, strict=True), strict=True)
        out: Any = [_wrap(source, g, list(c), still) for g, c in columns]
    else:
        out = _wrap(source, f, each, still)
    if any(x.logarithm for x in exact):
        shallow = min(len(part) for x in exact for part in log_parts(x))
        return _with_logs(func, args, kwargs, out, shallow)
    return out


def _with_logs(func: Any, args: Any, kwargs: Any, out: Any, depth: int) -> Any:
    """Both parts of x + log(y) go the same way as the value."""
    x, y = (
        [
            _on(func, args, kwargs, lambda t, i=i, part=part: log_parts(t)[part][i])
            for i in range(depth)
        ]
        for part in (0, 1)
    )
    if not isinstance(out, list):
        return make_log(out, x, y)
    return [
        make_log(t, [p[j] for p in x], [p[j] for p in y]) for j, t in enumerate(out)
    ]


def accumulates(name: str, args: Any, kwargs: Any) -> bool:
    """Whether an index_put adds, and is arithmetic."""
    flag = kwargs.get("accumulate", args[3] if len(args) > 3 else False)
    return "index_put" in name and bool(flag)


def _on(func: Any, args: Any, kwargs: Any, part: Any) -> Any:
    def pick(x: Any) -> Any:
        return part(x) if is_exact(x) else x

    return func(*nested.mapped(pick, args), **nested.mapped(pick, kwargs))


def _wrap(source: ExactTensor, f: Tensor, c: list[Tensor], still: bool) -> ExactTensor:
    alias = bool(c) and c[0].numel() > 0 and _storage(c[0]) == _storage(source.c[0])
    cell = source.cell if alias else None
    out = ExactTensor(source.run, f, c, source.dtype, cell=cell)
    if not alias:
        out.cell.constant = still
    return out


def _storage(t: Tensor) -> int:
    return t.untyped_storage().data_ptr()


def lower(t: ExactTensor, depth: int, still: bool) -> None:
    """What a write does to all views: depth only falls, a constant may end."""
    t.cell.depth = min(t.cell.depth, depth)
    t.cell.constant = t.cell.constant and still
    t.cell.written = True


def assign(t: ExactTensor, source: ExactTensor) -> None:
    """Write values into a tensor in place."""
    depth = min(t.depth, source.depth)
    to, taken = t.c, source.c
    t.f.copy_(source.f)
    for i in range(depth):
        to[i].copy_(taken[i])
    lower(t, depth, source.cell.constant)


def result_dtype(*parts: Any) -> torch.dtype:
    """The dtype a result claims: the widest among the tensors."""
    found = None
    for x in nested.leaves(parts):
        if isinstance(x, torch.dtype) and x.is_floating_point:
            return x
        if isinstance(x, Tensor) and x.is_floating_point():
            found = torch.promote_types(found, x.dtype) if found else x.dtype
    return found or torch.float32
