"""The break-even curve of drafting: tokens/s with and without, by acceptance.

    python benchmarks/speculate.py [DIR] [--dtype bfloat16] [--threads 1] [--k 4]
        [--tokens 48] [--repeats 3] [--concurrency 1 4 16] [--rates 0 0.2 ... 1]

The draft knows what the model goes on with and lies at a stated rate, so a model
of random weights will do. Drafted and plain runs take turns; the rate is tokens of
decoding steps over their time, the median of the repeats. Refuses to report texts
whose unique bigrams are fewer than 0.3 of their tokens, and outputs that differ.
"""

import argparse
import random
import statistics
import time
from collections.abc import Sequence
from itertools import pairwise

import torch

import k3
from k3.model import Model
from k3.model.completion import GenerateOptions
from k3.serve.draft import Proposal
from k3.serve.engine import Engine, EngineOptions
from k3.serve.request import Request

LEAST_UNIQUE = 0.3
Texts = dict[str, list[int]]


class Liar:
    """Proposes the true continuation; each token is another one at a stated rate."""

    def __init__(self, texts: Sequence[list[int]], right: float, words: int) -> None:
        self.texts = {tuple(text[:16]): text for text in texts}
        self.right, self.words = right, words
        self.chance = random.Random(0)

    def check(self, vocab_size: int) -> None:
        """It is for the model that wrote the texts."""

    def propose(
        self, contexts: list[list[int]], k: int, chances: object = ()
    ) -> list[Proposal]:
        """At most k tokens behind each context."""
        return [self._one(context, k) for context in contexts]

    def _one(self, context: list[int], k: int) -> Proposal:
        true = self.texts[tuple(context[:16])][len(context) : len(context) + k]
        said = (
            token if self.chance.random() < self.right else (token + 1) % self.words
            for token in true
        )
        return Proposal(tuple(said))


def unique_bigrams(texts: Sequence[list[int]]) -> float:
    """Different pairs of neighbours over tokens, the least of all texts of two."""
    shares = [len(set(pairwise(text))) / len(text) for text in texts if len(text) > 1]
    return min(shares, default=0.0)


def check(wanted: Texts, got: Texts) -> None:
    """Refuse outputs that drafting has changed, and texts that repeat themselves."""
    if wanted != got:
        raise SystemExit("drafting has changed the output: nothing is reported")
    share = unique_bigrams(list(wanted.values()))
    if share < LEAST_UNIQUE:
        raise SystemExit(
            f"unique bigrams are {share:.2f} of the tokens, at least {LEAST_UNIQUE} "
            "are needed: acceptance on a loop says nothing; take other prompts"
        )


def measure(engine: Engine, requests: Sequence[Request]) -> tuple[Texts, float, float]:
    """The tokens of each request, tokens/s of decoding, and the share accepted."""
    for request in requests:
        engine.add(request)
    texts: Texts = {request.id: [] for request in requests}
    spent, count, drafted, accepted = 0.0, 0, 0, 0
    while engine.busy:
        decodes = not (engine.waiting or engine.short.prefilling)
        start = time.perf_counter()
        outputs = engine.step()
        if decodes:
            spent += time.perf_counter() - start
            count += sum(len(output.tokens) for output in outputs)
        for output in outputs:
            texts[output.request_id] += [token.id for token in output.tokens]
            drafted, accepted = drafted + output.drafted, accepted + output.accepted
    return texts, count / spent, accepted / max(drafted, 1)


def compare(model: Model, args: argparse.Namespace, concurrency: int) -> None:
    """Print one row for each rate of truth beside decoding without a draft."""
    words, seeds = model.config.text.vocab_size, torch.Generator().manual_seed(1)
    prompts = torch.randint(words, (concurrency, 16), generator=seeds).tolist()

    def asked(extra: int = 0) -> list[Request]:
        options = GenerateOptions(
            max_tokens=args.tokens + extra, temperature=0.0, ignore_eos=True
        )
        return [
            Request(id=str(i), tokens=tuple(prompt), options=options)
            for i, prompt in enumerate(prompts)
        ]

    def engine(draft: Liar | None = None) -> Engine:
        k = args.k if draft else 0
        options = EngineOptions(max_num_seqs=concurrency, num_speculative_tokens=k)
        return Engine(model, options, draft=draft)

    known, _, _ = measure(engine(), asked(args.k))
    whole = [[*prompt, *known[str(i)]] for i, prompt in enumerate(prompts)]
    for right in args.rates:
        plain, fast, share = [], [], 0.0
        for _ in range(args.repeats):
            wanted, rate, _ = measure(engine(), asked())
            plain.append(rate)
            got, rate, share = measure(engine(Liar(whole, right, words)), asked())
            fast.append(rate)
            check(wanted, got)
        a, b = statistics.median(plain), statistics.median(fast)
        print(
            f"{concurrency:11} {right:6.2f} {share:9.2f} {a:12.1f} {b:12.1f} "
            f"{b / a:8.2f}",
            flush=True,
        )


def main() -> None:
    """Parse the command line and print the curve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("dir", nargs="?", default="tiny")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 4, 16])
    rates = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    parser.add_argument("--rates", type=float, nargs="+", default=rates)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = k3.load(args.dir, dtype=getattr(torch, args.dtype))
    print(f"{args.dir} {args.dtype}, k = {args.k}, {args.threads} thread(s)")
    print("concurrency  truth  accepted  plain tok/s  draft tok/s  speedup")
    for concurrency in args.concurrency:
        compare(model, args, concurrency)


if __name__ == "__main__":
    main()
