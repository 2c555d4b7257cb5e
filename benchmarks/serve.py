"""The engine: throughput by concurrency, and time to first token with a shared prefix.

    python benchmarks/serve.py [DIR] [--threads 1] [--dtype float32]
        [--experts packed] [--concurrency 8] [--prompt 128] [--tokens 32]
        [--prefix 2048] [--repeats 5] [--clock wall]

Throughput: requests of --prompt tokens that decode --tokens each, alone and
--concurrency together, taken in turn; the ratio is of tokens decoded a second after
the last prompt has been run. First token: a prompt of --prefix tokens, cold, and one
that shares its first 90 % with it, taken in turn. Prints medians and every ratio's
range. With `--clock cpu` the seconds are those of the process, which others on the
machine disturb less. Refuses to run when the golden numbers are not reached.
"""

import argparse
import statistics
import time

import golden
import torch

import k3
from k3.model import Model
from k3.model.completion import GenerateOptions
from k3.serve import CacheOptions
from k3.serve.engine import Engine, EngineOptions
from k3.serve.request import Request

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


class Bench:
    """One engine, and prompts that nobody has asked before."""

    def __init__(self, model: Model, args: argparse.Namespace) -> None:
        cache = CacheOptions(
            hash_tokens=args.hash_tokens,
            block_tokens=args.chunk,
            chunk_tokens=args.chunk,
            memory_bytes=2**28,
        )
        self.args, self.count, self.now = args, 0, CLOCKS[args.clock]
        options = EngineOptions(max_num_seqs=64, cache=cache)
        self.engine = Engine(model, options)
        self.generator = torch.Generator().manual_seed(0)
        self.words = model.config.text.vocab_size

    def prompt(self, tokens: int) -> tuple[int, ...]:
        drawn = torch.randint(self.words - 16, (tokens,), generator=self.generator)
        return tuple(drawn.tolist())

    def add(self, tokens: tuple[int, ...], count: int) -> None:
        options = GenerateOptions(max_tokens=count, ignore_eos=True, temperature=0.0)
        self.count += 1
        self.engine.add(Request(id=str(self.count), tokens=tokens, options=options))

    def decode_rate(self, concurrency: int) -> float:
        """Tokens a second once every prompt has given its first."""
        for _ in range(concurrency):
            self.add(self.prompt(self.args.prompt), self.args.tokens)
        first: set[str] = set()
        while len(first) < concurrency:
            first |= {output.request_id for output in self.engine.step()}
        start, made = self.now(), 0
        while self.engine.busy:
            made += sum(len(output.tokens) for output in self.engine.step())
        return made / (self.now() - start)

    def first_token_s(self, tokens: tuple[int, ...]) -> float:
        """Seconds from a request to its only token."""
        start = self.now()
        self.add(tokens, 1)
        while self.engine.busy:
            self.engine.step()
        return self.now() - start


def report(name: str, unit: str, base: list[float], other: list[float]) -> None:
    ratios = sorted(b / a for a, b in zip(base, other, strict=True))
    print(
        f"{name}: {statistics.median(base):.4g} and {statistics.median(other):.4g} "
        f"{unit}; ratio {statistics.median(ratios):.2f} "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
    )


def throughput(bench: Bench) -> None:
    args, rates = bench.args, ([], [])
    for _ in range(args.repeats):
        rates[0].append(bench.decode_rate(1))
        rates[1].append(bench.decode_rate(args.concurrency))
    report(f"decode, 1 and {args.concurrency} at once", "tok/s", *rates)


def first_token(bench: Bench) -> None:
    args, times = bench.args, ([], [])
    for _ in range(args.repeats):
        tokens = bench.prompt(args.prefix)
        shared = tokens[: args.prefix * 9 // 10]
        cold = bench.first_token_s(tokens)
        bench.first_token_s((*shared, *bench.prompt(args.prefix - len(shared))))
        warm = (*shared, *bench.prompt(args.prefix - len(shared)))
        times[0].append(bench.first_token_s(warm))
        times[1].append(cold)
    report("first token, 90 % shared and cold", "s", *times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dir", nargs="?", default="tiny")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--experts", default="packed")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--prefix", type=int, default=2048)
    parser.add_argument("--hash-tokens", type=int, default=64)
    parser.add_argument("--chunk", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    golden.require()
    dtype = getattr(torch, args.dtype)
    model = k3.load(args.dir, dtype=dtype, experts=args.experts)
    print(f"{args.dir} {args.dtype} {args.experts} experts, {args.threads} thread(s)")
    print(f"{args.clock} clock")
    bench = Bench(model, args)
    throughput(bench)
    first_token(bench)


if __name__ == "__main__":
    main()
