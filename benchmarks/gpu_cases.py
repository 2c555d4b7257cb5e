"""What benchmarks/gpu.py runs: each kernel's inputs, forms, reference, least work."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from k3.kernels import attn_res, choose, fla, kda, moe, mx, situ

Run = Callable[[dict[str, Tensor]], list[Tensor]]
CAPS = (4.0, 25.0)
EPS = 1e-5


@dataclass(frozen=True)
class Case:
    """One kernel: `make(sizes)` draws on the CPU, a form runs on what it drew.

    `forms` has the kernel first and PyTorch's form last; the reference is PyTorch's
    form of the same inputs in float64. `work(inputs)` is the bytes and the operations
    that no form can do without. `allowed` is the largest error over the largest value.
    """

    name: str
    make: Callable[[tuple[int, ...]], dict[str, Tensor]]
    forms: dict[str, Run]
    work: Callable[[dict[str, Tensor]], tuple[float, float]]
    allowed: float
    check: tuple[tuple[int, ...], ...]
    timed: tuple[int, ...]
    tiny: tuple[int, ...]


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape)


def size_of(*tensors: Tensor) -> float:
    return float(sum(x.numel() * x.element_size() for x in tensors))


def with_gradients(run: Run) -> Run:
    """The results, and the gradients of all floating inputs."""

    def both(given: dict[str, Tensor]) -> list[Tensor]:
        leaves = {
            name: x.detach().requires_grad_(x.is_floating_point())
            for name, x in given.items()
        }
        outs = run(leaves)
        wanted = [x for x in leaves.values() if x.requires_grad]
        loss = sum((y.float() if y.dtype != torch.float64 else y).sum() for y in outs)
        return [*outs, *torch.autograd.grad(loss, wanted)]

    return both


def by_torch(run: Run) -> Run:
    def plain(given: dict[str, Tensor]) -> list[Tensor]:
        with choose.use("torch"):
            return run(given)

    return plain


def situ_case(dtype: torch.dtype, allowed: float, *, grad: bool) -> Case:
    from k3.kernels.triton import situ as triton

    def make(sizes: tuple[int, ...]) -> dict[str, Tensor]:
        return {"gate": draw(*sizes).to(dtype), "up": draw(*sizes).to(dtype)}

    def ours(x: dict[str, Tensor]) -> list[Tensor]:
        return [triton.situ(x["gate"], x["up"], *CAPS)]

    def torchs(x: dict[str, Tensor]) -> list[Tensor]:
        return [situ.situ(x["gate"], x["up"], *CAPS)]

    def work(x: dict[str, Tensor]) -> tuple[float, float]:
        return size_of(*x.values()) * (4.0 if grad else 1.5), 0.0

    forms = {"triton": ours, "torch": by_torch(torchs)}
    if grad:
        forms = {name: with_gradients(run) for name, run in forms.items()}
    sizes = ((7, 333), (1, 1)), (8192, 6144), (5, 100)
    return Case(title("SiTU", dtype, grad), make, forms, work, allowed, *sizes)


def mix_case(allowed: float, *, grad: bool) -> Case:
    from k3.kernels.triton import attn_res as triton

    def make(sizes: tuple[int, ...]) -> dict[str, Tensor]:
        n, S, D = sizes
        blocks = draw(n, S, D)
        scale = attn_res.inverse_rms(blocks, EPS)
        query = draw(D) / D**0.5
        return {
            "blocks": blocks,
            "scale": scale,
            "prefix": draw(n, D),
            "query": query,
        }

    def ours(x: dict[str, Tensor]) -> list[Tensor]:
        return [triton.mix(*x.values(), EPS)]

    def torchs(x: dict[str, Tensor]) -> list[Tensor]:
        return [attn_res.mix(*x.values(), EPS)]

    def work(x: dict[str, Tensor]) -> tuple[float, float]:
        sources, row = size_of(x["blocks"], x["prefix"]), size_of(x["prefix"])
        return (3 * sources + 2 * row if grad else sources + row), 0.0

    forms = {"triton": ours, "torch": by_torch(torchs)}
    if grad:
        forms = {name: with_gradients(run) for name, run in forms.items()}
    sizes = ((3, 1, 5), (17, 6, 333)), (4096, 8, 7168), (5, 3, 70)
    name = title("AttnRes mixing", torch.float32, grad)
    return Case(name, make, forms, work, allowed, *sizes)


def mx_case(dtype: torch.dtype, allowed: float, rows: int) -> Case:
    from k3.kernels.triton import mx as triton

    def make(sizes: tuple[int, ...]) -> dict[str, Tensor]:
        B, R, C = sizes
        packed, scale = mx.encode(draw(R, C) / C**0.5)
        return {"x": draw(B, C).to(dtype), "packed": packed, "scale": scale}

    def ours(x: dict[str, Tensor]) -> list[Tensor]:
        return [triton.product(*x.values())]

    def torchs(x: dict[str, Tensor]) -> list[Tensor]:
        decoded = mx.decode(x["packed"], x["scale"], x["x"].dtype)
        return [F.linear(x["x"], decoded)]

    def work(x: dict[str, Tensor]) -> tuple[float, float]:
        (B, C), R = x["x"].shape, len(x["packed"])
        return size_of(*x.values()), 2.0 * B * C * R

    forms = {"triton": ours, "torch": by_torch(torchs)}
    sizes = ((rows, 33, 160), (3, 70, 32)), (rows, 7168, 7168), (rows, 40, 64)
    name = title(f"MXFP4 product, {rows} rows", dtype, False)
    return Case(name, make, forms, work, allowed, *sizes)


def experts_case(
    dtype: torch.dtype, allowed: float, rows: int, *, packed: bool
) -> Case:
    from k3.kernels.triton import experts as triton

    def make(sizes: tuple[int, ...]) -> dict[str, Tensor]:
        T, k, E, L, wide = sizes
        made = {"z": draw(T, L).to(dtype), "index": draw(T, E).topk(k).indices}
        made["weights"] = torch.rand(T, k)
        for i, shape in enumerate(((wide, L), (L, wide), (wide, L)), 1):
            # One expert's numbers serve all: drawing and packing them takes long.
            one = mx.encode(draw(*shape) / shape[1] ** 0.5)
            bytes_, scale = (x.expand(E, *x.shape).contiguous() for x in one)
            made |= {f"w{i}": bytes_, f"s{i}": scale}
            if not packed:
                dense = mx.decode(*one, dtype).expand(E, *shape).contiguous()
                made = {n: x for n, x in made.items() if n != f"s{i}"}
                made[f"w{i}"] = dense
        return made

    def ours(x: dict[str, Tensor]) -> list[Tensor]:
        stacks = {n: y for n, y in x.items() if n[0] in "ws" and n != "weights"}
        return [triton.combine(x["z"], x["index"], x["weights"], stacks, CAPS)]

    def work(x: dict[str, Tensor]) -> tuple[float, float]:
        used, each = x["index"].unique(), len(x["w1"])
        stacks = size_of(*(y for n, y in x.items() if n[0] in "ws" and n != "weights"))
        L, wide = x["z"].shape[1], x["w1"].shape[1]
        return stacks * len(used) / each, 6.0 * x["index"].numel() * L * wide

    forms = {"triton": ours, "torch": by_torch(experts_by_torch)}
    sizes = ((5, 3, 11, 96, 160), (33, 2, 3, 32, 64)), (rows, 16, 128, 3584, 3072)
    kind = "MXFP4" if packed else "dense"
    name = title(f"{kind} experts, {rows} tokens", dtype, False)
    tiny = (min(rows, 4), 2, 5, 32, 64)
    return Case(name, make, forms, work, allowed, *sizes, tiny)


def experts_by_torch(x: dict[str, Tensor]) -> list[Tensor]:
    """moe.combine over experts decoded one by one."""
    z = x["z"]

    def matrix(i: int, e: int) -> Tensor:
        if f"s{i}" not in x:
            return x[f"w{i}"][e].to(z.dtype)
        return mx.decode(x[f"w{i}"][e], x[f"s{i}"][e], z.dtype)

    def expert(e: int, rows: Tensor) -> Tensor:
        w1, w2, w3 = (matrix(i, e) for i in (1, 2, 3))
        return F.linear(situ.situ(F.linear(rows, w1), F.linear(rows, w3), *CAPS), w2)

    return [moe.combine(z, x["index"], x["weights"], expert)]


def kda_case(allowed: float, *, narrow: bool, grad: bool) -> Case:
    def make(sizes: tuple[int, ...]) -> dict[str, Tensor]:
        made = kda_inputs(sizes)
        if narrow:
            made |= {n: made[n].bfloat16().float() for n in "qkv"}
        return made

    def ours(x: dict[str, Tensor]) -> list[Tensor]:
        *tokens, state = x.values()
        lens = (len(tokens[0]),)
        return list(fla.chunk(*tokens, state=state, lens=lens, narrow=narrow))

    def torchs(x: dict[str, Tensor]) -> list[Tensor]:
        *tokens, state = x.values()
        return list(kda.chunk(*tokens, state=state, lens=(len(tokens[0]),)))

    forms = {"fla": ours, "torch": by_torch(torchs)}
    if grad:
        forms = {name: with_gradients(run) for name, run in forms.items()}
    sizes = ((100, 3, 64), (257, 2, 128)), (8192, 96, 128), (20, 2, 16)
    dtype = torch.bfloat16 if narrow else torch.float32
    work = kda_work(3.0 if grad else 1.0)
    return Case(title("KDA chunk", dtype, grad), make, forms, work, allowed, *sizes)


def kda_step_case(allowed: float) -> Case:
    def ours(x: dict[str, Tensor]) -> list[Tensor]:
        *tokens, state = x.values()
        return list(fla.step(*tokens, state=state))

    def torchs(x: dict[str, Tensor]) -> list[Tensor]:
        *tokens, state = x.values()
        return list(kda.step(*tokens, state=state))

    def make(sizes: tuple[int, ...]) -> dict[str, Tensor]:
        return kda_inputs(sizes) | {"state": draw(*sizes, sizes[-1])}

    forms = {"fla": ours, "torch": by_torch(torchs)}
    sizes = ((3, 2, 64), (1, 5, 128)), (64, 96, 128), (3, 2, 16)
    name = title("KDA step", torch.float32, False)
    return Case(name, make, forms, kda_work(1.0), allowed, *sizes)


def kda_inputs(sizes: tuple[int, ...]) -> dict[str, Tensor]:
    """T tokens of H heads of K, gates in (-5, 0), the memory of one sequence."""
    T, H, K = sizes
    q, k = (F.normalize(draw(*sizes), dim=-1) for _ in range(2))
    g, beta = -5 * torch.sigmoid(draw(*sizes)), torch.sigmoid(draw(T, H))
    names = ("q", "k", "v", "g", "beta", "state")
    made = q * K**-0.5, k, draw(*sizes), g, beta, draw(1, H, K, K)
    return dict(zip(names, made, strict=True))


def kda_work(times: float) -> Callable[[dict[str, Tensor]], tuple[float, float]]:
    """Everything read and written once; six operations an element of the memory."""

    def work(x: dict[str, Tensor]) -> tuple[float, float]:
        moved = size_of(*x.values()) + size_of(x["v"], x["state"])
        return times * moved, 0.0

    return work


def title(name: str, dtype: torch.dtype, grad: bool) -> str:
    kind = "bf16" if dtype == torch.bfloat16 else "fp32"
    return f"{name}, {kind}{', with gradients' if grad else ''}"


def cases() -> list[Case]:
    """Every kernel, the cheap ones first."""
    wide, half = torch.float32, torch.bfloat16
    found: list[Any] = [
        *(situ_case(wide, 5e-6, grad=grad) for grad in (False, True)),
        *(situ_case(half, 1e-2, grad=grad) for grad in (False, True)),
        *(mix_case(5e-6, grad=grad) for grad in (False, True)),
        *(mx_case(wide, 1e-5, rows) for rows in (1, 64)),
        *(mx_case(half, 1e-2, rows) for rows in (1, 64)),
        experts_case(wide, 1e-5, 1, packed=True),
        *(experts_case(half, 3e-2, rows, packed=True) for rows in (1, 64, 4096)),
        experts_case(half, 3e-2, 64, packed=False),
        kda_step_case(1e-5),
        *(kda_case(5e-3, narrow=False, grad=grad) for grad in (False, True)),
        *(kda_case(2e-2, narrow=True, grad=grad) for grad in (False, True)),
    ]
    return found
