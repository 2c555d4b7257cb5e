"""A graph as a PyTorch program: readable source with one line a node, and its function.

One rule a primitive in `RULES`. Shapes and indices are checked when the program runs.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from k3.errors import ShapeError
from k3.graph.bind import bind
from k3.graph.dims import Dim, Sizes, show, show_shape, value
from k3.graph.term import Block, Term

Rule = Callable[[Term, Sequence[str]], str]

# Names that the source of a program uses itself, those of its nodes included.
RESERVED = re.compile(
    r"inputs|sizes|dtype|device|torch|functional|bilinear|within|float|\w*_\d+|v\d+_"
)


@dataclass(frozen=True, slots=True)
class Program:
    """A lowered block: call it with tensors by name to get its outputs by name."""

    block: Block
    source: str
    function: Callable[..., dict[str, Tensor]]

    def __call__(
        self, inputs: Mapping[str, Tensor], sizes: Sizes | None = None
    ) -> dict[str, Tensor]:
        """Run on tensors of one real dtype and device; gradients flow through.

        Raises: ShapeError if an input is missing, does not fit, or indexes outside.
        """
        wanted = {n: inputs[n] for n in self.block.inputs if n in inputs}
        shapes = {n: tuple(t.shape) for n, t in wanted.items()}
        known = bind(self.block, shapes, sizes or {})
        for name, node in self.block.inputs.items():
            if node.type.domain is not None:
                within(wanted[name], value(node.type.domain, known), node.line)
        real = [t for t in wanted.values() if t.is_floating_point()]
        like = real[0] if real else torch.zeros(())
        return self.function(wanted, known, like.dtype, like.device)


def lower(block: Block) -> Program:
    """The program of a block."""
    text = source(block)
    space: dict[str, Any] = {
        "torch": torch,
        "functional": functional,
        "bilinear": bilinear,
        "within": within,
    }
    exec(compile(text, f"<{block.name} lowered>", "exec"), space)
    return Program(block, text, space["program"])


def source(block: Block) -> str:
    """Python source of `program(inputs, sizes, dtype, device)`."""
    taken = [name for name in block.dims if RESERVED.fullmatch(name)]
    if taken:
        raise ShapeError(
            f"a dimension must not have a name of the program: got {', '.join(taken)}; "
            f"rename it"
        )
    lines = ["def program(inputs, sizes, dtype, device):"]
    lines += [f"    {f'{block.name}: {block.says}'!r}"]
    lines += [f"    {name} = sizes[{name!r}]" for name in block.dims]
    names: dict[int, str] = {}
    for i, node in enumerate(block.nodes):
        names[id(node)] = f"{node.label}_{i}" if node.label else f"v{i}_"
        body = RULES[node.op](node, [names[id(a)] for a in node.args])
        note = f"{show_shape(node.shape)} {node.line}"
        lines.append(f"    {names[id(node)]} = {body}  # {note}")
    outputs = [f"{name!r}: {names[id(t)]}" for name, t in block.outputs.items()]
    return "\n".join([*lines, f"    return {{{', '.join(outputs)}}}", ""])


def bilinear(out: int, table: int, dtype: Any, device: Any) -> Tensor:
    """[out table]: weights of a bilinear stretch, half-pixel centres, clamped."""
    at = (torch.arange(out, dtype=torch.float64) + 0.5) * table / out - 0.5
    at = at.clamp(min=0)
    low = at.floor().long().clamp(max=table - 1)
    high, share = (low + 1).clamp(max=table - 1), at - low
    eye = torch.eye(table, dtype=torch.float64)
    both = eye[low] * (1 - share)[:, None] + eye[high] * share[:, None]
    return both.to(dtype=dtype, device=device)


def within(index: Tensor, bound: int, line: str) -> Tensor:
    """The same integers; ShapeError if one is not in 0 .. bound - 1."""
    if index.numel() and not bool(((index >= 0) & (index < bound)).all()):
        raise ShapeError(
            f"indices must lie in 0..{bound - 1}: got {int(index.min())}.."
            f"{int(index.max())} at {line}; give indices of that axis"
        )
    return index


def _shape(dims: Sequence[Dim]) -> str:
    return "(" + "".join(f"{show(d)}, " for d in dims) + ")"


def _call(name: str) -> Rule:
    return lambda node, args: f"{name}({', '.join(args)})"


def _infix(sign: str) -> Rule:
    return lambda node, args: f"{args[0]} {sign} {args[1]}"


def _constant(node: Term, args: Sequence[str]) -> str:
    number = node.attrs["value"]
    if node.dtype == "int":
        return f"torch.tensor({int(number)}, device=device)"
    return f"torch.tensor({float(number)!r}, dtype=dtype, device=device)"


def _unit_rms(node: Term, args: Sequence[str]) -> str:
    x, eps = args[0], float(node.attrs["eps"])
    return f"{x} * torch.rsqrt(({x} * {x}).mean(-1, keepdim=True) + {eps!r})"


def _l2_norm(node: Term, args: Sequence[str]) -> str:
    x, eps = args[0], float(node.attrs["eps"])
    return f"{x} * torch.rsqrt(({x} * {x}).sum(-1, keepdim=True) + {eps!r})"


def _gelu(node: Term, args: Sequence[str]) -> str:
    kind = "tanh" if node.attrs["kind"] == "tanh" else "none"
    return f"functional.gelu({args[0]}, approximate={kind!r})"


def _broadcast(node: Term, args: Sequence[str]) -> str:
    axes = node.attrs["axes"]
    ones: list[Dim] = [d if i in axes else 1 for i, d in enumerate(node.shape)]
    return f"{args[0]}.reshape({_shape(ones)}).expand({_shape(node.shape)})"


def _slice(node: Term, args: Sequence[str]) -> str:
    axis, start, size = (node.attrs[n] for n in ("axis", "start", "size"))
    return f"{args[0]}.narrow({axis}, {show(start)}, {show(size)})"


def _listed(name: str) -> Rule:
    return lambda node, args: f"{name}([{', '.join(args)}], dim={node.attrs['axis']})"


def _over(name: str) -> Rule:
    return lambda node, args: f"{args[0]}.{name}(dim={list(node.attrs['axes'])})"


def _order(node: Term, args: Sequence[str]) -> str:
    # torch.topk leaves ties open; a stable sort gives the lower index first.
    return f"torch.sort({args[0]}, dim=-1, descending=True, stable=True).indices"


def _positions(node: Term, args: Sequence[str]) -> str:
    return f"torch.arange({show(node.attrs['dim'])}, dtype=dtype, device=device)"


RULES: dict[str, Rule] = {
    "input": lambda node, args: f"inputs[{node.attrs['name']!r}]",
    "constant": _constant,
    "size": lambda node, args: (
        f"torch.tensor(float({show(node.attrs['dim'])}), dtype=dtype, device=device)"
    ),
    "positions": _positions,
    "bilinear": lambda node, args: (
        f"bilinear({', '.join(show(d) for d in node.shape)}, dtype, device)"
    ),
    "add": _infix("+"),
    "sub": _infix("-"),
    "mul": _infix("*"),
    "div": _infix("/"),
    "neg": lambda node, args: f"-{args[0]}",
    "scale": lambda node, args: f"{args[0]} * {float(node.attrs['factor'])!r}",
    "exp": _call("torch.exp"),
    "log": _call("torch.log"),
    "sqrt": _call("torch.sqrt"),
    "tanh": _call("torch.tanh"),
    "sigmoid": _call("torch.sigmoid"),
    "silu": _call("functional.silu"),
    "softplus": _call("functional.softplus"),
    "gelu": _gelu,
    "sin": _call("torch.sin"),
    "cos": _call("torch.cos"),
    "softmax": lambda node, args: f"torch.softmax({args[0]}, dim=-1)",
    "unit_rms": _unit_rms,
    "rms_norm": lambda node, args: f"{_unit_rms(node, args)} * {args[1]}",
    "l2_norm": _l2_norm,
    "contract": lambda node, args: (
        f"torch.einsum({node.attrs['axes']!r}, {', '.join(args)})"
    ),
    "matmul": _infix("@"),
    "outer": lambda node, args: f"torch.tensordot({args[0]}, {args[1]}, dims=0)",
    "permute": lambda node, args: f"{args[0]}.permute({list(node.attrs['order'])})",
    "reshape": lambda node, args: f"{args[0]}.reshape({_shape(node.shape)})",
    "broadcast": _broadcast,
    "concat": _listed("torch.cat"),
    "slice": _slice,
    "stack": _listed("torch.stack"),
    "flip": lambda node, args: f"{args[0]}.flip({node.attrs['axis']})",
    "sum": _over("sum"),
    "mean": _over("mean"),
    "gather": lambda node, args: f"{args[0]}[{':, ' * node.attrs['axis']}{args[1]}]",
    "topk": lambda node, args: f"{_order(node, args)}[..., : {show(node.attrs['k'])}]",
    "argsort": _order,
    "one_hot": lambda node, args: (
        f"functional.one_hot({args[0]}, {show(node.shape[-1])}).to(dtype)"
    ),
    "where": _call("torch.where"),
    "equal": _infix("=="),
    "less": _infix("<"),
    "count": lambda node, args: f"{args[0]}.long()",
    "before": lambda node, args: f"{args[0]}.cumsum(-1) - {args[0]}",
    "within": lambda node, args: (
        f"within({args[0]}, {show(node.attrs['domain'])}, {node.line!r})"
    ),
}
