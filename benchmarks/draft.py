"""What a trained draft is worth: accepted tokens, tokens/s beside plain decoding, law.

    k3 draft tiny --out DRAFT
    python benchmarks/draft.py DRAFT [--model tiny] [--k 3] [--tree 2,1,1]
        [--requests 16] [--concurrency 1 4 16] [--tokens 64] [--repeats 3]
    python benchmarks/draft.py DRAFT --law 100000 [--tree 2,2]
    python benchmarks/draft.py DRAFT --model B9 --rates 0.4 0.6 0.8

Prompts are held-out questions in chat format, answers end by themselves. Drafted and
plain decoding take turns, greedy; a rate is tokens of decoding passes over their time,
the median of the repeats. Nothing is reported of outputs that differ or of texts whose
unique bigrams are fewer than 0.3 of their tokens. `--law` compares the first four
tokens of so many samples with the target's own law. With `--rates` the draft costs what
it costs, but its tokens are the true ones at that rate: for a model without a draft.
`--clock cpu` counts this process's own seconds: on a busy machine and one thread the
nearest to what an idle one would show.
"""

import argparse
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

import draft_law
import torch
from speculate import Liar, Texts, check

import k3
from k3.checkpoint import draft as folder
from k3.config.draft import DraftConfig
from k3.data import tasks
from k3.model import Model
from k3.model.completion import GenerateOptions
from k3.model.draft import Draft
from k3.serve.draft_eagle import EagleDraft
from k3.serve.engine import Engine, EngineOptions
from k3.serve.request import Request
from k3.serve.tree import Tree

TASKS = ("chat", "tools")
LAW_PROMPT = 16
"""Tokens of a prompt whose law is written out."""
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(slots=True)
class Run:
    """What one engine did: texts, passes, and where the time of decoding went."""

    texts: Texts = field(default_factory=dict)
    tokens: int = 0
    rows: int = 0
    drafted: int = 0
    accepted: int = 0
    passes: int = 0
    seconds: float = 0.0
    drafting: float = 0.0

    @property
    def rate(self) -> float:
        """Tokens of a second of decoding."""
        return self.tokens / self.seconds

    @property
    def per_row(self) -> float:
        """Tokens that a sequence goes on by in a pass of the target."""
        return self.tokens / max(self.rows, 1)


class Timed(EagleDraft):
    """A draft that counts its own time."""

    spent, clock = 0.0, "wall"

    def propose_from(self, *given: Any) -> Any:
        """As EagleDraft does."""
        start = CLOCKS[self.clock]()
        made = super().propose_from(*given)
        self.spent += CLOCKS[self.clock]() - start
        return made


class Simulated(Timed):
    """Costs what a draft costs; its tokens are right at a stated rate."""

    def __init__(self, draft: Draft, liar: Liar) -> None:
        super().__init__(draft)
        self.liar = liar

    def propose_from(self, traces: Any, contexts: Any, k: int, chances: Any) -> Any:
        """Run the draft and forget what it says."""
        super().propose_from(traces, contexts, k, chances)
        return self.liar.propose(contexts, k)


def prompts(model: Model, name: str, count: int) -> list[tuple[int, ...]]:
    """Held-out questions as the model is asked them; random ids without a tokenizer."""
    words = model.config.text.vocab_size
    if words != k3.tokenizer("tiny").vocab_size:
        generator = torch.Generator().manual_seed(1)
        plain = model.config.media_placeholder_token_id or words
        made = torch.randint(plain, (count, 32), generator=generator).tolist()
        return [tuple(ids) for ids in made]
    tokenizer = k3.tokenizer(name)
    drawn = [tasks.named(task, tokenizer, "heldout") for task in TASKS]
    found = []
    for n in range(count):
        example = drawn[n % len(drawn)].example(n)
        first = int(example.learned.nonzero()[0])
        found.append(tuple(example.ids[:first].tolist()))
    return found


def asked(model: Model, args: argparse.Namespace) -> list[Request]:
    """The requests of a run, greedy; an answer ends where its message does."""
    ours = model.config.text.vocab_size == k3.tokenizer("tiny").vocab_size
    ends: tuple[int, ...] = ()
    if ours:
        tokenizer = k3.tokenizer(args.model)
        ends = (tokenizer.eos_id, tokenizer.special_id("<|end_of_msg|>"))
    options = GenerateOptions(
        max_tokens=args.tokens, temperature=0.0, stop_ids=ends, ignore_eos=not ours
    )
    them = prompts(model, args.model, args.requests)
    return [
        Request(id=str(n), tokens=tokens, options=options)
        for n, tokens in enumerate(them)
    ]


def measure(engine: Engine, requests: list[Request], clock: str = "wall") -> Run:
    """Run all requests; only passes that decode are timed."""
    now = CLOCKS[clock]
    run, decode = Run(texts={r.id: [] for r in requests}), engine.passes.decode

    def timed(lane: Any) -> None:
        rows = len(lane.batch.rows)
        start = now()
        decode(lane)
        if rows:
            run.seconds += now() - start
            run.rows, run.passes = run.rows + rows, run.passes + 1

    engine.passes.decode = timed  # type: ignore[method-assign]
    for request in requests:
        engine.add(request)
    while engine.busy:
        for output in engine.step():
            text = run.texts[output.request_id]
            # The first token is the prompt's.
            run.tokens += len(output.tokens) - (not text)
            text += [token.id for token in output.tokens]
            run.drafted += output.drafted
            run.accepted += output.accepted
    run.drafting = getattr(engine.draft, "spent", 0.0)
    return run


def drafted(model: Model, draft: EagleDraft | None, k: int, seats: int) -> Engine:
    """An engine with so many seats; None decodes plainly."""
    options = EngineOptions(
        max_num_seqs=seats, num_speculative_tokens=k if draft else 0
    )
    return Engine(model, options, draft=draft)


def compare(model: Model, make: Any, k: int, args: argparse.Namespace) -> None:
    """Print a row for each concurrency: plain and drafted decoding in turn."""
    requests = asked(model, args)
    for seats in args.concurrency:
        plain, fast = [], []
        for _ in range(args.repeats):
            plain.append(measure(drafted(model, None, 0, seats), requests, args.clock))
            made = make(plain[-1].texts, requests)
            made.clock = args.clock
            fast.append(measure(drafted(model, made, k, seats), requests, args.clock))
            check(plain[-1].texts, fast[-1].texts)
        a = statistics.median(run.rate for run in plain)
        b = statistics.median(run.rate for run in fast)
        one, two = plain[-1], fast[-1]
        print(
            f"{seats:11} {two.accepted / max(two.drafted, 1):8.3f} "
            f"{two.per_row:10.2f} {a:11.1f} {b:11.1f} {b / a:7.2f} "
            f"{1e3 * one.seconds / one.passes:9.2f} "
            f"{1e3 * (two.seconds - two.drafting) / two.passes:9.2f} "
            f"{1e3 * two.drafting / two.passes:9.2f}",
            flush=True,
        )


def report(model: Model, trained: Draft, args: argparse.Namespace) -> None:
    """The table of each draft: begun, trained as a chain, trained as a tree."""
    print("concurrency accepted tokens/row plain tok/s draft tok/s speedup", end=" ")
    print("plain ms  verify ms draft ms")
    begun = Draft(trained.config, torch.float32).start_(model).requires_grad_(False)
    cases: list[tuple[str, Draft, Tree | None, int]] = [
        (f"before training, chain of {args.k}", begun, None, args.k),
        (f"trained, chain of {args.k}", trained, None, args.k),
    ]
    if args.tree:
        tree = Tree.of([int(n) for n in args.tree.split(",")])
        cases.append((f"trained, tree {args.tree}", trained, tree, tree.depth))
    for name, draft, shape, k in cases:
        print(name)

        def make(
            texts: Texts,
            requests: list[Request],
            given: tuple[Draft, Tree | None] = (draft, shape),
        ) -> Timed:
            return Timed(*given)

        compare(model, make, k, args)


def simulate(model: Model, args: argparse.Namespace) -> None:
    """The table of a draft that is right at stated rates and costs its time."""
    text = model.config.text
    taps = (0, text.num_hidden_layers // 2, -1)
    config = DraftConfig(text=text, taps_of="layer", taps=taps)
    begun = Draft(config, torch.float32)
    begun.start_(model).requires_grad_(False)
    print("concurrency accepted tokens/row plain tok/s draft tok/s speedup", end=" ")
    print("plain ms  verify ms draft ms")
    for right in args.rates:
        print(f"right at a rate of {right}")

        def make(texts: Texts, requests: list[Request], right: float = right) -> Any:
            # The true tokens go on for a round behind the end.
            whole = [[*r.tokens, *texts[r.id], *[0] * args.k] for r in requests]
            return Simulated(begun, Liar(whole, right, text.vocab_size))

        compare(model, make, args.k, args)


def main() -> None:
    """Parse the command line and print what is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("draft")
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--k", type=int, default=3)
    parser.add_argument("--tree", default="")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--requests", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall")
    parser.add_argument("--law", type=int, default=0)
    parser.add_argument("--rates", type=float, nargs="*", default=[])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = k3.load(args.model, dtype=getattr(torch, args.dtype))
    print(f"{args.model} {args.dtype}, {args.threads} thread(s)")
    if args.rates:
        simulate(model, args)
        return
    trained = folder.load(args.draft, dtype=torch.float32)
    if args.law:
        tree = Tree.of([int(n) for n in args.tree.split(",")]) if args.tree else None
        prompt = prompts(model, args.model, 1)[0][-LAW_PROMPT:]
        shape = tree.depth if tree else args.k
        made = EagleDraft(trained, tree)
        print(draft_law.compare(model, made, shape, prompt, args.law))
        return
    report(model, trained, args)


if __name__ == "__main__":
    main()
