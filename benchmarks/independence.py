"""How much of a request's result depends on what else the engine runs.

    python benchmarks/independence.py [DIR] [--dtype float32] [--experts packed]

Eight prompts of 30 to 200 tokens, 24 tokens drawn after each at temperature 1: alone
without a cache, then alone again, restored, together, and together with random
preemptions. Prints equal texts, and of the tokens up to the first that differs how
many log-probabilities are bitwise equal, and the largest difference.
"""

import argparse
import random
from collections.abc import Callable
from typing import TypeAlias

import torch

import k3
from k3.model import Model
from k3.model.completion import GenerateOptions, Token
from k3.serve import CacheOptions
from k3.serve.engine import Engine, EngineOptions
from k3.serve.request import Request

LENGTHS = (37, 64, 90, 128, 150, 200, 65, 30)
CACHE = CacheOptions(
    hash_tokens=64, block_tokens=128, chunk_tokens=128, memory_bytes=2**27
)
Texts: TypeAlias = dict[str, list[Token]]


def requests(words: int) -> list[Request]:
    made = []
    for i, length in enumerate(LENGTHS):
        generator = torch.Generator().manual_seed(1000 + i)
        tokens = torch.randint(words - 16, (length,), generator=generator).tolist()
        options = GenerateOptions(max_tokens=24, seed=i, ignore_eos=True, top_p=1.0)
        made.append(Request(id=str(i), tokens=tuple(tokens), options=options))
    return made


def run(
    engine: Engine, asked: list[Request], each: Callable[[], None] = lambda: None
) -> Texts:
    for request in asked:
        engine.add(request)
    texts: Texts = {request.id: [] for request in asked}
    while engine.busy:
        each()
        for output in engine.step():
            texts[output.request_id].extend(output.tokens)
    return texts


def alone(make: Callable[[], Engine], asked: list[Request]) -> Texts:
    return {request.id: run(make(), [request])[request.id] for request in asked}


def report(name: str, got: Texts, want: Texts) -> None:
    equal, pairs = 0, []
    for key, tokens in want.items():
        both = list(zip(got[key], tokens, strict=False))
        same = [a.id == b.id for a, b in both]
        equal += all(same) and len(got[key]) == len(tokens)
        pairs += both[: [*same, False].index(False)]
    gaps = [abs(a.logprob - b.logprob) for a, b in pairs]
    print(
        f"{name:<22} texts {equal}/{len(want)}   log-probabilities {gaps.count(0)} of "
        f"{len(gaps)} bitwise, largest difference {max(gaps):.1e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dir", nargs="?", default="tiny")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--experts", default="packed")
    args = parser.parse_args()
    torch.set_num_threads(1)
    dtype = getattr(torch, args.dtype)
    model: Model = k3.load(args.dir, dtype=dtype, experts=args.experts)
    asked = requests(model.config.text.vocab_size)

    def fresh(cache: CacheOptions | None = CACHE) -> Engine:
        return Engine(model, EngineOptions(max_num_seqs=16, cache=cache))

    print(f"{args.dir} {args.dtype} {args.experts} experts")
    want = alone(lambda: fresh(None), asked)
    report("alone again", alone(lambda: fresh(None), asked), want)
    stored = alone(fresh, asked)
    report("alone, in chunks", stored, want)
    warm = fresh()
    run(warm, asked)
    report("restored, to chunks", alone(lambda: warm, asked), stored)
    report("together", run(fresh(), asked), want)
    engine, draw = fresh(), random.Random(0)

    def preempt() -> None:
        if engine.short.active and draw.random() < 0.3:
            engine.short.send_back(draw.choice(engine.short.active))

    report("together, preempted", run(engine, asked, preempt), want)


if __name__ == "__main__":
    main()
