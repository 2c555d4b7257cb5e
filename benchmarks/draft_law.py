"""Whether drafted text has the target's law: chi-square over its first tokens.

python benchmarks/draft.py DRAFT --law 100000
"""

import torch

from k3.kernels import sample
from k3.model import Model
from k3.model.completion import GenerateOptions
from k3.serve.draft import Draft
from k3.serve.engine import Engine, EngineOptions
from k3.serve.request import Request

LENGTH = 4
"""Tokens: the prompt's own, then a block of two and the one that follows it."""
LEAST = 5.0
"""Samples that a cell expects; rarer texts share one."""
SAMPLES = 64
Text = tuple[int, ...]


def law(model: Model, prompt: Text, least: float) -> dict[Text, float]:
    """The chance of every text of LENGTH tokens that is at least so likely."""
    found: dict[Text, float] = {(): 1.0}
    rule = GenerateOptions().sampling
    for _ in range(LENGTH):
        texts, after = list(found), {}
        for at in range(0, len(texts), 256):
            part = texts[at : at + 256]
            ids = torch.tensor([[*prompt, *text] for text in part])
            with torch.inference_mode():
                logits = model(ids)
            assert isinstance(logits, torch.Tensor)
            laws = sample.distribution(logits[:, -1], [rule] * len(part))
            for text, row in zip(part, laws * _column(found, part), strict=True):
                likely = (row >= least).nonzero()[:, 0].tolist()
                after |= {(*text, token): float(row[token]) for token in likely}
        found = after
    return found


def _column(found: dict[Text, float], texts: list[Text]) -> torch.Tensor:
    return torch.tensor([[found[text]] for text in texts], dtype=torch.float64)


def samples(engine: Engine, prompt: Text, count: int) -> dict[Text, int]:
    """How often each text of LENGTH tokens came, each sample with its own numbers."""
    found: dict[Text, int] = {}
    for start in range(0, count, SAMPLES):
        options = GenerateOptions(max_tokens=LENGTH, seed=start, ignore_eos=True)
        n = min(SAMPLES, count - start)
        engine.add(Request(id=str(start), tokens=prompt, options=options, n=n))
        texts: dict[int, list[int]] = {}
        while engine.busy:
            for output in engine.step():
                text = texts.setdefault(output.index, [])
                text += [token.id for token in output.tokens]
        for text in texts.values():
            found[tuple(text)] = found.get(tuple(text), 0) + 1
    return found


def chi_square(
    found: dict[Text, int], wanted: dict[Text, float], count: int
) -> tuple[float, int]:
    """The statistic and its degrees of freedom; rare texts are one cell."""
    cells = [(count * p, found.get(text, 0)) for text, p in wanted.items()]
    rest = count * (1 - sum(wanted.values()))
    cells.append((rest, count - sum(n for _, n in cells)))
    value = sum((n - want) ** 2 / max(want, 1e-9) for want, n in cells)
    return value, len(cells) - 1


def compare(model: Model, draft: Draft, k: int, prompt: Text, count: int) -> str:
    """Sample with drafts, and say how far the counts are from the law."""
    options = EngineOptions(max_num_seqs=SAMPLES, num_speculative_tokens=k, cache=None)
    engine = Engine(model, options, draft=draft)
    found = samples(engine, prompt, count)
    value, degrees = chi_square(found, law(model, prompt, LEAST / count), count)
    if not degrees:
        raise SystemExit(f"no text is likely enough to come {LEAST} times: take more")
    away = (value - degrees) / (2 * degrees) ** 0.5
    accepted = engine.counts.accepted_tokens / max(engine.counts.drafted_tokens, 1)
    return (
        f"{count} samples of {LENGTH} tokens: chi-square {value:.1f} with {degrees} "
        f"degrees of freedom, {away:+.2f} deviations; {accepted:.3f} accepted"
    )
