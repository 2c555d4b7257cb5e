"""The native kernels beside their floors and PyTorch's forms.

    python benchmarks/native.py [DIR] [--threads 1] [--experts packed] [--repeats 9]

Products with one row are held against a streaming read of as many bytes in the same
minute, products with many rows and a prompt's attention against a loop of products in
registers; PyTorch runs the same work in turn. With DIR, decode steps of that checkpoint
(batch 1 and 8, after 512 tokens) and prefill of 512 follow, in bf16 and fp32. Times are
the shortest of --repeats, shares are of the floor; refuses to run without the native
kernels.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import roof
import torch
import torch.nn.functional as F

import k3
from k3.bench import floors, limits
from k3.config import sizes
from k3.kernels import choose, mla, moe, mx
from k3.kernels.native import experts, gemm, library, pages, product
from k3.kernels.situ import situ
from k3.model import Model

READ = 64 * 2**20
CAPS = (4.0, 25.0)
Run = Callable[[], object]


def in_turn(runs: list[Run], repeats: int) -> list[float]:
    """The shortest time of each, one after the other in every round."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(repeats):
        for run, held in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            held.append(time.perf_counter() - start)
    return [min(held) for held in times]


def line(name: str, seconds: float, floor: float, torch_s: float) -> None:
    print(
        f"{name:<38} {seconds * 1e3:9.3f} ms   floor {floor * 1e3:8.3f} ms   "
        f"share {floor / seconds:4.2f}   torch / native {torch_s / seconds:5.2f}",
        flush=True,
    )


def peak(dtype: torch.dtype) -> float:
    """Operations a second from registers; bf16 has two products a lane."""
    narrow = dtype == torch.bfloat16 and library.level() == "avx512bf16"
    return roof.own_flops_per_s() * (2 if narrow else 1)


def one_row(
    dtype: torch.dtype, packed: bool, batch: int, repeats: int, columns: int = 2048
) -> None:
    """A product that streams READ bytes of weights."""
    bits = 4.25 if packed else 8 * dtype.itemsize
    rows = int(READ * 8 / bits / columns)
    scale = None
    if packed:
        weight = torch.randint(256, (rows, columns // 2)).to(torch.uint8)
        scale = torch.randint(120, 130, (rows, columns // 32)).to(torch.uint8)
        dense = mx.decode(weight, scale, dtype)
    else:
        weight = dense = torch.randn(rows, columns).to(dtype)
    pages.enlarge([weight, dense])
    x = torch.randn(batch, columns).to(dtype)
    native, other, floor = in_turn(
        [
            lambda: product.product(x, weight, scale),
            lambda: F.linear(x, dense),
            limits.reading(READ),
        ],
        repeats,
    )
    kind = f"MXFP4 x {str(dtype)[6:]}" if packed else str(dtype)[6:]
    line(f"{batch} row(s) of {columns}, {kind}", native, floor, other)


def many_rows(matrices: int, repeats: int) -> None:
    """512 rows by matrices of 512 by 512, packed once for all of them, in fp32."""
    x, *weights = torch.randn(matrices + 1, 512, 512)
    runs: list[Run] = [
        lambda: gemm.products(x, weights),
        lambda: [F.linear(x, w) for w in weights],
    ]
    native, other = in_turn(runs, 4 * repeats)
    floor = 2 * 512**3 * matrices / peak(torch.float32)
    line(f"512 rows by {matrices} of 512, float32", native, floor, other)


def prompt(dtype: torch.dtype, repeats: int) -> None:
    """Attention of 512 tokens: 8 heads, keys of 64 and 32 shared, values of 64."""
    T, H, nope, rope, V = 512, 8, 64, 32, 64
    q = torch.randn(1, H, T, nope + rope).to(dtype)
    kv = torch.randn(1, T, H, nope + V).to(dtype)
    shared = torch.randn(1, T, rope).to(dtype)

    def run(kind: str) -> None:
        with choose.use(kind), torch.inference_mode():
            mla.attend_heads(q, kv, shared, 0.1)

    native, other = in_turn([lambda: run("native"), lambda: run("torch")], repeats)
    floor = H * T * (T + 1) * (nope + rope + V) / peak(dtype)
    line(f"attention of 512, 8 heads, {str(dtype)[6:]}", native, floor, other)


def many_experts(packed: bool, repeats: int) -> None:
    """256 experts by 512 tokens: latent 1,024, width 512, top-8, bf16."""
    E, L, W, n, k = 256, 1024, 512, 512, 8
    dense = {
        "w1": torch.randn(E, W, L).mul(L**-0.5),
        "w2": torch.randn(E, L, W).mul(W**-0.5),
        "w3": torch.randn(E, W, L).mul(L**-0.5),
    }
    narrow = {name: w.bfloat16() for name, w in dense.items()}
    stacks = narrow
    if packed:
        coded = {name: mx.encode(w) for name, w in dense.items()}
        stacks = {name: w for name, (w, _) in coded.items()}
        stacks |= {"s" + name[1]: scale for name, (_, scale) in coded.items()}
    z = torch.randn(n, L).bfloat16()
    index = torch.rand(n, E).argsort(-1)[:, :k].contiguous()
    weights = torch.rand(n, k)

    def expert(e: int, x: torch.Tensor) -> torch.Tensor:
        w1, w2, w3 = (weight(name, e) for name in ("w1", "w2", "w3"))
        return F.linear(situ(F.linear(x, w1), F.linear(x, w3), *CAPS), w2)

    def weight(name: str, e: int) -> torch.Tensor:
        if not packed:
            return narrow[name][e]
        return mx.decode(*(x[e] for x in coded[name]), torch.bfloat16)

    def loop() -> None:
        with choose.use("torch"):
            moe.combine(z, index, weights, expert)

    run = [lambda: experts.combine(z, index, weights, stacks, CAPS), loop]
    native, other = in_turn(run, repeats)
    floor = 6 * n * k * L * W / peak(torch.bfloat16)
    kind = "MXFP4" if packed else "bf16"
    line(f"256 experts, 512 tokens, {kind}", native, floor, other)


@torch.inference_mode()
def decode(model: Model, batch: int, steps: int) -> tuple[float, float, float]:
    """Median seconds of a native step, of PyTorch's and of a read, in turn."""
    words = model.config.text.vocab_size
    ids = torch.randint(words, (batch, 512))
    logits, first = model(ids, state=model.init_state(batch), logits="last")
    states = {"native": first.fork(), "torch": first}
    token = logits[:, -1].argmax(-1, keepdim=True)
    times: dict[str, list[float]] = {"native": [], "torch": [], "read": []}
    read = limits.reading(READ)
    for _ in range(steps):
        start = time.perf_counter()
        read()
        times["read"].append(time.perf_counter() - start)
        for kind, held in list(times.items())[:2]:
            with choose.use(kind):
                start = time.perf_counter()
                _, states[kind] = model.step(token, states[kind])
                held.append(time.perf_counter() - start)
    native, other, floor = (statistics.median(held[3:]) for held in times.values())
    return native, other, floor / READ * floors.weight_bytes(model)


@torch.inference_mode()
def prefill(model: Model, repeats: int) -> tuple[float, float]:
    ids = torch.randint(model.config.text.vocab_size, (1, 512))

    def run(kind: str) -> None:
        with choose.use(kind):
            model(ids, state=model.init_state(1), logits="last")

    native, other = in_turn([lambda: run("native"), lambda: run("torch")], repeats)
    return native, other


def checkpoint(path: str, held: str, repeats: int) -> None:
    for dtype in (torch.bfloat16, torch.float32):
        model = k3.load(path, dtype=dtype, experts=held)
        active = floors.weight_bytes(model)
        kind = f"{str(dtype)[6:]}, {held}"
        first = decode(model, 1, 25)
        line(f"decode, {kind}", first[0], first[2], first[1])
        print(f"{'':<38} {1 / first[0]:9.1f} tok/s   {active / 1e6:.0f} MB a token")
        eight = decode(model, 8, 10)
        line(f"decode of 8, {kind}", eight[0], eight[2], eight[1])
        print(f"{'':<38} {8 * first[0] / eight[0]:9.2f} times the tokens/s of 1")
        work = 2 * sizes.parameters(model.config).active * 512
        native, other = prefill(model, max(repeats // 2, 3))
        line(f"prefill of 512, {kind}", native, work / peak(dtype), other)
        print(f"{'':<38} {512 / native:9.1f} tok/s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dir", nargs="?")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--experts", default="packed")
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if library.load() is None:
        raise SystemExit(f"nothing to time: {library.absent()}")
    torch.manual_seed(0)
    print(f"{library.level()}, {args.threads} thread(s)")
    if args.dir:
        checkpoint(args.dir, args.experts, args.repeats)
        return
    for dtype in (torch.bfloat16, torch.float32):
        for batch in (1, 8):
            one_row(dtype, False, batch, args.repeats)
            one_row(dtype, True, batch, args.repeats)
            for columns in (1024, 256):
                one_row(dtype, True, batch, args.repeats, columns)
        prompt(dtype, args.repeats)
    for matrices in (1, 3):
        many_rows(matrices, args.repeats)
    for packed in (False, True):
        many_experts(packed, args.repeats)


if __name__ == "__main__":
    main()
