"""KDA alone beside ggml's kernel and the torch forms: 8 heads of 128, in turn.

    python benchmarks/kda_ggml.py [--tokens 4096] [--threads 1] [--repeats 5]
        [--clock wall]

Inputs are the same; ggml is llama-cpp-python's (its CPU library by ctypes), fla the
naive chunk form of fla-core in PyTorch. Prints tokens/s (medians) and how many times as
fast the native form is. A form that is not installed is named and left out.
"""

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch
from kda import HEADS, SIZE, forward, inputs
from torch import Tensor

from k3.kernels import choose

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
Run = Callable[[], Tensor]
F32 = 0


class Ggml:
    """ggml_gated_delta_net over tensors of ours."""

    def __init__(self, made: list[Tensor], threads: int) -> None:
        from llama_cpp import llama_cpp

        base = ctypes.CDLL(_library(llama_cpp, "ggml-base"))
        self.cpu = ctypes.CDLL(_library(llama_cpp, "ggml-cpu"))
        self.base, self.threads = base, threads
        for name in ("init", "new_tensor_4d", "gated_delta_net", "new_graph"):
            getattr(base, f"ggml_{name}").restype = ctypes.c_void_p
        base.ggml_get_data.restype = ctypes.c_void_p
        base.ggml_nbytes.restype = ctypes.c_size_t
        self.context = base.ggml_init(Memory(2**30, None, False))
        self.tokens = len(made[0])
        self.out = self.build(made)

    def build(self, made: list[Tensor]) -> Any:
        q, k, v, g, beta, state = made
        wide = (SIZE, HEADS, self.tokens, 1)
        narrow, square = (1, HEADS, self.tokens, 1), (SIZE, SIZE, HEADS, 1)
        # ggml scales queries itself, ours come scaled.
        held = [self.tensor(x, wide) for x in (q * SIZE**0.5, k, v, g)]
        held += [self.tensor(beta, narrow), self.tensor(state, square)]
        pointers = [ctypes.c_void_p(x) for x in (self.context, *held)]
        out = self.base.ggml_gated_delta_net(*pointers, ctypes.c_int64(1))
        self.graph = self.base.ggml_new_graph(ctypes.c_void_p(self.context))
        self.base.ggml_build_forward_expand(
            ctypes.c_void_p(self.graph), ctypes.c_void_p(out)
        )
        return out

    def tensor(self, x: Tensor, sizes: tuple[int, ...]) -> int:
        shape = [ctypes.c_int64(n) for n in sizes]
        made = self.base.ggml_new_tensor_4d(
            ctypes.c_void_p(self.context), ctypes.c_int(F32), *shape
        )
        x = x.contiguous()
        where = self.base.ggml_get_data(ctypes.c_void_p(made))
        ctypes.memmove(where, x.data_ptr(), x.nbytes)
        return made

    def __call__(self) -> Tensor:
        code = self.cpu.ggml_graph_compute_with_ctx(
            ctypes.c_void_p(self.context), ctypes.c_void_p(self.graph), self.threads
        )
        assert code == 0
        size = self.tokens * HEADS * SIZE
        where = self.base.ggml_get_data(ctypes.c_void_p(self.out))
        found = (ctypes.c_float * size).from_address(where)
        return torch.frombuffer(found, dtype=torch.float32)


class Memory(ctypes.Structure):
    """ggml_init_params."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("buffer", ctypes.c_void_p),
        ("no_alloc", ctypes.c_bool),
    )


def _library(api: Any, name: str) -> str:
    return str(api._base_path / f"lib{name}.so")


def _fla() -> Any:
    """fla's torch forms by their file: its package imports triton."""
    spec = find_spec("fla")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0])
    found = spec_from_file_location("naive", folder / "ops" / "kda" / "naive.py")
    assert found is not None
    assert found.loader is not None
    made = module_from_spec(found)
    found.loader.exec_module(made)
    return made


def forms(made: list[Tensor], threads: int) -> dict[str, Run]:
    def ours(name: str) -> Run:
        def run() -> Tensor:
            with choose.use(name):
                return forward(made)

        return run

    found: dict[str, Run] = {
        "native": ours("native"),
        "torch, chunks of 16": ours("torch"),
    }
    if find_spec("fla"):
        naive_chunk_kda = _fla().naive_chunk_kda
        q, k, v, g, beta = (x[None] for x in made[:5])
        start = made[5].transpose(-1, -2)

        def fla() -> Tensor:
            return naive_chunk_kda(
                q, k, v, g, beta, scale=1.0, initial_state=start, chunk_size=16
            )[0]

        found["fla, torch form"] = fla
    else:
        print("fla-core is not installed")
    if find_spec("llama_cpp"):
        found["ggml"] = Ggml(made, threads)
    else:
        print("llama-cpp-python is not installed")
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    now = CLOCKS[args.clock]
    made = inputs(args.tokens)
    runs = forms(made, args.threads)
    times: dict[str, list[float]] = {name: [] for name in runs}
    first = runs["native"]().flatten().clone()
    for name, run in runs.items():
        gap = (run().flatten() - first).abs().max() / first.abs().max()
        print(f"{name:<20} differs from native by {gap:.1e}")
    for _ in range(args.repeats):
        for name, run in runs.items():
            start = now()
            run()
            times[name].append(now() - start)
    print(f"{args.tokens} tokens, {args.threads} thread(s), {args.clock} clock")
    for name, found in times.items():
        pairs = zip(found, times["native"], strict=True)
        ratio = statistics.median(b / a for b, a in pairs)
        rate = args.tokens / statistics.median(found)
        print(f"{name:<20} {rate:9,.0f} tok/s   native is {ratio:5.2f} times as fast")


if __name__ == "__main__":
    main()
