"""spec: tokens verified in one pass, the wrong ones taken back, are plain decoding."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from k3.model import Model
from k3.verify.refine.check import Check, Setting, exactly, skipped
from k3.verify.refine.restore import program
from k3.verify.refine.same import same
from k3.verify.refine.served import served
from k3.verify.refine.stream import LARGE
from k3.verify.refine.trace import Trace, compare

DRAFT = 3


def spec(setting: Setting) -> Iterator[Check]:
    """Speculative verification with rewind = plain decoding."""
    if setting.exact:
        yield _exactly(setting)
    prompt, count = setting.ids[: setting.tokens // 2], setting.tokens // 2
    want, plain = _plain(setting.model, prompt, count)
    for kept in range(DRAFT + 1):
        tokens, got = _speculative(setting.model, prompt, plain, kept)
        what = f"drafts of {DRAFT} with {kept} right tokens: the text of plain decoding"
        at = next((i for i, t in enumerate(plain) if tokens[i] != t), None)
        first = "" if at is None else f"token {at}: {tokens[at]} against {plain[at]}"
        yield Check(what=what, kind="bits", ok=at is None, first=first)
        yield compare(f"{what}, its logits and state", got, want, setting.bound)
    yield from served(setting, prompt, plain, want, DRAFT)


def _exactly(setting: Setting) -> Check:
    """A draft of three, two of them rejected, then others: as without the draft."""
    what = "a draft verified and rejected = decoding without it, all layers"
    if setting.too_large:
        return skipped(f"{what}, exactly", LARGE)
    a, b, c, d, e, *_ = setting.ids

    def drafted(m: Model) -> Tensor:
        _, state = m(torch.tensor([[a, b]]), state=m.init_state(1, keep_inputs=8))
        tried, state = m(torch.tensor([[c, d, e]]), state=state)
        logits, _ = m(torch.tensor([[e]]), state=state.rewind(2))
        return torch.cat([tried[0, :1], logits[0]])

    def plain(m: Model) -> Tensor:
        return m(torch.tensor([[a, b, c, e]]))[0, 2:]

    one, other = (program(setting.model, body) for body in (drafted, plain))
    return exactly(what, same(one, other, setting, inside=False))


@torch.no_grad()
def _plain(model: Model, prompt: Sequence[int], count: int) -> tuple[Trace, list[int]]:
    """Greedy tokens one by one, the logits that chose them, the state after all."""
    logits, state = model(_row(model, prompt), state=model.init_state(1))
    tokens, out, row = [], Trace(), logits[0, -1:]
    for _ in range(count):
        out.add("logits", row)
        tokens.append(int(row[0].argmax()))
        logits, state = model.step(_row(model, tokens[-1:]), state)
        row = logits[0]
    out.state = state
    return out, tokens


@torch.no_grad()
def _speculative(
    model: Model, prompt: Sequence[int], plain: Sequence[int], kept: int
) -> tuple[list[int], Trace]:
    """The same by drafts whose first `kept` tokens are those of plain decoding."""
    start = model.init_state(1, keep_inputs=DRAFT + 1)
    logits, state = model(_row(model, prompt), state=start)
    tokens: list[int] = []
    row, out = logits[0, -1:], Trace()
    while len(tokens) < len(plain):
        # The token that the last logits choose is certain; the draft goes on from it.
        certain = int(row[0].argmax())
        draft = _draft(plain, len(tokens) + 1, kept, model.config.text.vocab_size)
        out.add("logits", row)
        tokens.append(certain)
        tried, state = model(_row(model, [certain, *draft]), state=state)
        right = _accepted(tried[0], draft, len(plain) - len(tokens))
        out.add("logits", tried[0, :right])
        tokens += draft[:right]
        state = state.rewind(len(draft) - right)
        row = tried[0, right : right + 1]
    out.state = state
    return tokens, out


def _draft(plain: Sequence[int], at: int, kept: int, words: int) -> list[int]:
    """Right tokens, then wrong ones."""
    right = list(plain[at : at + DRAFT])
    right += [0] * (DRAFT - len(right))
    return right[:kept] + [(t + 1) % words for t in right[kept:]]


def _accepted(tried: Tensor, draft: Sequence[int], most: int) -> int:
    """How many tokens of a draft are what the model would have chosen itself."""
    chosen = tried.argmax(-1).tolist()
    right = 0
    while right < min(len(draft), most) and draft[right] == chosen[right]:
        right += 1
    return right


def _row(model: Model, ids: Sequence[int]) -> Tensor:
    return torch.tensor([list(ids)], device=model.device)
