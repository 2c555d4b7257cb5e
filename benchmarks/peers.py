"""K3 and other implementations of it, in turn on the same weights.

    python benchmarks/peers.py [DIR] [--dtype bfloat16] [--threads 1] [--rounds 5]
        [--llama FILE.gguf] [--mlx mlx-lm mlx-vlm] [--port FOLDER]
        [--what prefill decode] [--clock wall]

Each runs in a process of its own (benchmarks/peer) that waits while another works.
Prefill is one prompt of --tokens with the logits of its last position, decode a greedy
step after as many, train and muon a step of either over 2 by 256. --llama needs
llama-cpp-python and the checkpoint in its format (benchmarks/gguf.py, in the dtype,
experts in MXFP4); --mlx needs mlx[cpu], mlx-lm and mlx-vlm, which read DIR themselves;
--port the folder of pratikkorat26/KimiK3, which runs in fp32 alone. Prints medians in
tokens a second, and of the ratios of neighbours the median, lowest and highest. Without
a peer K3 with PyTorch's kernels is the other side.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

PEER = Path(__file__).with_name("peer")
MLX = ("mlx-lm", "mlx-vlm")


class Worker:
    """One implementation, waiting for its turn."""

    def __init__(self, name: str, kind: str, where: str, dtype: str) -> None:
        self.name, self.kind, self.where, self.dtype = name, kind, where, dtype

    def start(self, threads: int, clock: str) -> None:
        words = [self.kind, self.where, self.dtype, str(threads), clock]
        kernels = {"K3_KERNELS": "torch"} if self.name == "k3 on PyTorch" else {}
        self.process = subprocess.Popen(
            [sys.executable, str(PEER), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | kernels,
        )
        self.answer()

    def answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line:
            raise SystemExit(f"{self.name} has ended without an answer")
        return line

    def ask(self, question: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        return float(self.answer())

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def workers(args: argparse.Namespace) -> list[Worker]:
    made = [Worker("k3", "k3", args.dir, args.dtype)]
    if args.torch or not (args.llama or args.mlx or args.port):
        made.append(Worker("k3 on PyTorch", "k3", args.dir, args.dtype))
    if args.llama:
        made.append(Worker("llama.cpp", "llama", args.llama, args.dtype))
    made += [Worker(kind, kind, args.dir, args.dtype) for kind in args.mlx]
    if args.port:
        where = f"{args.port},{args.dir}"
        made.append(Worker("KimiK3 port, fp32", "port", where, "float32"))
    return made


def measure(what: str, made: list[Worker], args: argparse.Namespace) -> None:
    question, tokens = {
        "prefill": (f"prefill {args.tokens}", args.tokens),
        "decode": (f"decode 1 {args.tokens} {args.steps}", 1),
        "train": ("train 2 256", 512),
        "muon": ("muon 2 256", 512),
    }[what]
    trained = what in ("train", "muon")
    able = [w for w in made if not (trained and w.kind in ("llama", *MLX))]
    for worker in able:
        worker.ask(question)
    times = {
        w.name: found
        for w, found in zip(
            able,
            zip(
                *([w.ask(question) for w in able] for _ in range(args.rounds)),
                strict=True,
            ),
            strict=True,
        )
    }
    mine = times["k3"]
    print(f"{what}, {args.dtype}, {args.threads} thread(s), {args.clock} clock")
    for name, found in times.items():
        ratios = sorted(b / a for a, b in zip(mine, found, strict=True))
        line = f"  {name:<18} {tokens / statistics.median(found):9.1f} tok/s"
        if name != "k3":
            line += f"   k3 is {statistics.median(ratios):5.2f} times as fast"
            line += f" ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", nargs="?", default="tiny")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--llama")
    parser.add_argument("--mlx", nargs="+", choices=MLX, default=[])
    parser.add_argument("--port")
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--what", nargs="+", default=["prefill", "decode"])
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    args = parser.parse_args()
    made = workers(args)
    for worker in made:
        worker.start(args.threads, args.clock)
    for what in args.what:
        measure(what, made, args)
    for worker in made:
        worker.end()


if __name__ == "__main__":
    main()
