"""cache: what is restored, forked, taken back or packed goes on as if it never was."""

from collections.abc import Callable, Iterator

import torch

from k3.model import DecodeState, Model
from k3.serve import CacheOptions, PrefixCache, prefill
from k3.verify.exact.pairs import decoder
from k3.verify.exact.pairs.pair import Pair
from k3.verify.refine.check import Check, Setting, exactly, skipped
from k3.verify.refine.same import same
from k3.verify.refine.stream import LARGE
from k3.verify.refine.trace import Trace, compare, same_bits, state_gap, trace

HASH_TOKENS = 16


def cache(setting: Setting) -> Iterator[Check]:
    """Restored = cold; forks, rewinds and packed states go on as the original."""
    if setting.exact:
        yield _exactly(setting)
    yield from _restored(setting)
    yield from _moved(setting)


def _exactly(setting: Setting) -> Check:
    """Three tokens, two taken back, a fork, two others: the same as those alone."""
    what = "after a rewind and a fork = without them, all layers"
    if setting.too_large:
        return skipped(f"{what}, exactly", LARGE)
    a, b, c, d, e, *_ = setting.ids

    def moved(m: Model) -> torch.Tensor:
        _, state = m(torch.tensor([[a, b, c]]), state=m.init_state(1, keep_inputs=4))
        branch = state.rewind(2).fork()
        first, branch = m(torch.tensor([[d]]), state=branch)
        second, _ = m(torch.tensor([[e]]), state=branch)
        return torch.cat([first[0], second[0]])

    def plain(m: Model) -> torch.Tensor:
        return m(torch.tensor([[a, d, e]]))[0, 1:]

    one, other = (program(setting.model, body) for body in (moved, plain))
    return exactly(what, same(one, other, setting, inside=False))


def program(model: Model, body: Callable[[Model], torch.Tensor]) -> Pair:
    """A way of running a model, cut at its sublayers; there is no reference to it."""
    runs = decoder.Runs(model, body)
    return Pair(body.__name__, runs, body, {}, decoder.attach)


def _restored(setting: Setting) -> Iterator[Check]:
    """A prompt twice through a prefix cache, and once without it."""
    model = setting.model
    # The restored boundary must lie inside the prompt.
    ids = (setting.ids * 5)[: max(setting.tokens, 2 * HASH_TOKENS + 5)]
    options = CacheOptions(
        hash_tokens=HASH_TOKENS,
        block_tokens=2 * HASH_TOKENS,
        chunk_tokens=2 * HASH_TOKENS,
        memory_bytes=1 << 28,
    )
    held = PrefixCache(model, options)
    cold = trace(model, ids, [len(ids)])
    prefill(model, held, ids)
    warm = prefill(model, held, ids)
    got, want = Trace(), Trace()
    got.add("logits", warm.logits[0])
    want.add("logits", cold.rows("logits")[-1:])
    got.state, want.state = warm.state, cold.state
    what = f"restored at token {warm.cached_tokens} of {len(ids)} = cold"
    check = compare(what, got, want, setting.bound)
    if warm.cached_tokens:
        yield check
    else:
        first = "the second request found nothing of the first"
        yield Check(what=what, kind="float", ok=False, first=first)
    state, at = held.restore(ids)
    short = trace(model, ids, [at], model.init_state(1)).state
    assert short is not None
    gap, name = state_gap(state, short)
    yield Check(
        what=f"the restored state of {at} tokens = the state of a run over them",
        kind="float",
        ok=gap <= setting.bound,
        detail=f"largest error {gap:.1e} (at most {setting.bound:.0e})",
        first=name if gap > setting.bound else "",
    )


def _moved(setting: Setting) -> Iterator[Check]:
    """Fork and pack bit for bit; a rewind within rounding."""
    model, ids = setting.model, setting.ids
    middle = len(ids) // 2
    before = trace(model, ids, [middle], model.init_state(1, keep_inputs=8)).state
    assert before is not None
    branch, kept = before.fork(), before.fork()
    packed = DecodeState.unpack(before.pack())
    later = ids[middle:]
    plain = trace(model, later, [len(later)], before)
    forked = trace(model, later, [len(later)], branch)
    unpacked = trace(model, later, [len(later)], packed)
    assert plain.state
    assert forked.state
    assert unpacked.state
    yield same_bits("a fork goes on as the original", forked.state, plain.state)
    yield same_bits("pack, unpack, go on = go on", unpacked.state, plain.state)
    draft = trace(model, ids[:5], [5], kept).state
    assert draft is not None
    again = trace(model, later, [len(later)], draft.rewind(5))
    yield compare("five tokens taken back, then on = on", again, plain, setting.bound)
