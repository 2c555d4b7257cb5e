"""The engine that serves: its rounds of drafts give plain decoding's text and state."""

from collections.abc import Iterator, Sequence

import torch

from k3.model import Model
from k3.model.generate import GenerateOptions, Token
from k3.serve import CacheOptions, Engine, EngineOptions, Request
from k3.serve.draft import Chance, Proposal
from k3.verify.refine.check import Check, Setting
from k3.verify.refine.trace import Trace, state_gap, trace

HASH_TOKENS = 16


class Scripted:
    """Row i proposes i right tokens, then wrong ones: rows go back by other counts."""

    def __init__(self, text: Sequence[int], words: int) -> None:
        self.text, self.words = list(text), words

    def check(self, vocab_size: int) -> None:
        """It is made for the model."""

    def propose(
        self, contexts: list[list[int]], k: int, chances: Sequence[Chance] = ()
    ) -> list[Proposal]:
        """At most k tokens behind each context."""
        made = []
        for row, context in enumerate(contexts):
            true = self.text[len(context) : len(context) + k]
            lies = [(token + 1) % self.words for token in true]
            right = row % (k + 1)
            made.append(Proposal(tuple(true[:right] + lies[right:])))
        return made


def served(
    setting: Setting, prompt: list[int], plain: list[int], want: Trace, draft: int
) -> Iterator[Check]:
    """Rows of one batch with 0 to `draft` right tokens, through k3.serve.Engine."""
    engine = _engine(setting.model, prompt + plain, draft)
    rows, counts = _run(engine, prompt, len(plain), draft + 1)
    what = f"the serving engine, {len(rows)} rows with drafts of {draft}"
    first = next(filter(None, (_parted(i, r, plain) for i, r in rows.items())), "")
    yield Check(
        what=f"{what}: the text of plain decoding",
        kind="bits",
        ok=not first,
        detail=f"{counts[1]} of {counts[0]} drafted tokens accepted",
        first=first,
    )
    if first:
        return
    logprobs = want.rows("logits").double().log_softmax(-1)
    true = logprobs.gather(-1, torch.tensor(plain, device=logprobs.device)[:, None])
    said = [torch.tensor([t.logprob for t in row]) for row in rows.values()]
    gap = max(float((x - true[:, 0].cpu()).abs().max()) for x in said)
    bound = setting.bound * max(1.0, float(want.rows("logits").abs().max()))
    yield _within(f"{what}: its log-probabilities", gap, bound)
    yield from _stored(setting, engine, prompt + plain, what)


def _engine(model: Model, text: list[int], draft: int) -> Engine:
    options = EngineOptions(
        num_speculative_tokens=draft,
        cache=CacheOptions(
            hash_tokens=HASH_TOKENS,
            block_tokens=2 * HASH_TOKENS,
            chunk_tokens=2 * HASH_TOKENS,
            memory_bytes=1 << 28,
        ),
    )
    made = Scripted(text, model.config.text.vocab_size)
    return Engine(model, options, draft=made)


def _run(
    engine: Engine, prompt: list[int], count: int, rows: int
) -> tuple[dict[str, list[Token]], tuple[int, int]]:
    """The tokens of each request; how many were drafted, and how many accepted."""
    options = GenerateOptions(temperature=0.0, max_tokens=count, ignore_eos=True)
    found: dict[str, list[Token]] = {}
    for i in range(rows):
        found[str(i)] = []
        engine.add(Request(id=str(i), tokens=tuple(prompt), options=options))
    drafted = accepted = 0
    while engine.busy:
        for output in engine.step():
            found[output.request_id] += output.tokens
            drafted += output.drafted
            accepted += output.accepted
    return found, (drafted, accepted)


def _parted(row: str, tokens: list[Token], plain: list[int]) -> str:
    """The first token that is not plain decoding's, "" if all are."""
    ids = [t.id for t in tokens]
    if len(ids) != len(plain):
        return f"row {row}: {len(ids)} tokens against {len(plain)}"
    at = next((i for i, t in enumerate(plain) if ids[i] != t), None)
    if at is None:
        return ""
    return f"row {row}, token {at}: {ids[at]} against {plain[at]}"


def _stored(
    setting: Setting, engine: Engine, text: list[int], what: str
) -> Iterator[Check]:
    """What the engine keeps of the text, against a run over the same tokens."""
    assert engine.cache is not None
    state, at = engine.cache.restore(text)
    if at:
        model = setting.model
        cold = trace(model, text[:at], [at], model.init_state(1)).state
        gap, name = state_gap(state, cold)
        of = f"{what}: the state that it stored of {at} tokens = a run over them"
        yield _within(of, gap, setting.bound, name)


def _within(what: str, gap: float, bound: float, name: str = "") -> Check:
    detail = f"largest error {gap:.1e} (at most {bound:.0e})"
    ok = gap <= bound
    return Check(
        what=what, kind="float", ok=ok, detail=detail, first="" if ok else name
    )
