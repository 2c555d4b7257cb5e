"""Decode steps after longer and longer contexts, beside the read of the rows.

    python benchmarks/context.py DIR [--dtype bfloat16] [--rounds 20]

The prompt has 512 tokens; rows behind it are drawn, for what they hold changes no time.
Processor time of one thread, medians of rounds in turn. The line through the longer
contexts says what a step takes without their rows: KDA and all else must not grow.
"""

import argparse
import dataclasses
import statistics
import time

import torch

import k3
from k3.bench import limits
from k3.kernels.native import library, pages
from k3.model import DecodeState, Model
from k3.model.cache import MLACache

CONTEXTS = (512, 8000, 16000, 32000)
ROOM = 512


def after(model: Model, start: DecodeState, tokens: int) -> tuple[DecodeState, int]:
    """A state behind so many tokens, and the bytes that its rows have."""
    state, size = start.fork(), 0
    for cache in state.caches:
        if isinstance(cache, MLACache):
            rows = cache.rows.new_empty(1, tokens + ROOM, cache.rows.shape[2]).normal_()
            pages.enlarge([rows])
            cache.rows, cache.lens = rows, (tokens,)
            size += rows[:, :tokens].nbytes
    return dataclasses.replace(state, lens=(tokens,)), size


@torch.inference_mode()
def steps(model: Model, rounds: int) -> dict[int, tuple[float, int]]:
    """Median seconds of a step after each context, and the bytes of its rows."""
    ids = torch.randint(model.config.text.vocab_size, (1, 512))
    start = model(ids, state=model.init_state(1), logits="last")[1]
    states, sizes = {}, {}
    for tokens in CONTEXTS:
        states[tokens], sizes[tokens] = after(model, start, tokens)
    times: dict[int, list[float]] = {tokens: [] for tokens in CONTEXTS}
    for _ in range(rounds):
        for tokens, held in times.items():
            for i in range(6):
                began = time.process_time()
                _, states[tokens] = model.step(ids[:, :1], states[tokens])
                if i:
                    held.append(time.process_time() - began)
    return {n: (statistics.median(held), sizes[n]) for n, held in times.items()}


def show(found: dict[int, tuple[float, int]]) -> None:
    """A line for each context: the time, what it grew by, and a read of as much."""
    first, least = found[CONTEXTS[0]]
    for tokens, (seconds, size) in found.items():
        floor = limits.best(limits.reading(max(size - least, 4096)), 5, "cpu")
        print(
            f"after {tokens:6d}: {seconds * 1e3:6.2f} ms, "
            f"{(seconds - first) * 1e3:5.2f} more for {(size - least) / 1e6:5.1f} MB "
            f"(a read {floor * 1e3:5.2f} ms)"
        )
    (near, some), (far, all_) = found[CONTEXTS[1]], found[CONTEXTS[-1]]
    rest = near - (far - near) * some / (all_ - some)
    print(
        f"without rows: {rest * 1e3:.2f} ms, {rest / first:.2f} of after {CONTEXTS[0]}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dir")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if library.load() is None:
        raise SystemExit(f"nothing to time: {library.absent()}")
    dtype = getattr(torch, args.dtype)
    torch.manual_seed(0)
    show(steps(k3.load(args.dir, dtype=dtype), args.rounds))


if __name__ == "__main__":
    main()
