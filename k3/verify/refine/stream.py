"""stream and chunk: a sequence token by token, or in any pieces, is the whole."""

import random
from collections.abc import Iterator, Sequence

from k3.kernels import choose
from k3.kernels import kda as kernel
from k3.verify.exact.pairs import decoder, kda
from k3.verify.refine import chain
from k3.verify.refine.check import Check, Setting, exactly, skipped
from k3.verify.refine.same import same
from k3.verify.refine.trace import Trace, compare, trace

# Exact arithmetic costs a hundred times a float run; a few tokens show every path.
EXACT_TOKENS = 4
LARGE = "the model has too many parameters for exact arithmetic"


def stream(setting: Setting) -> Iterator[Check]:
    """Token by token = whole."""
    ids = setting.ids
    if setting.exact:
        yield whole(setting, [1] * EXACT_TOKENS, "token by token = whole")
    yield chain.check(setting.model, ids[:12])
    want = trace(setting.model, ids, [len(ids)])
    got = trace(setting.model, ids, [1] * len(ids))
    yield compare("token by token = whole", got, want, setting.bound)
    yield twin(setting, want)


def twin(setting: Setting, want: Trace) -> Check:
    """The kernels that ran against PyTorch's form, which exact arithmetic sees."""
    what = "native kernels = PyTorch's form"
    if not choose.ready():
        return skipped(what, "PyTorch's form is what runs")
    with choose.use("torch"):
        got = trace(setting.model, setting.ids, [setting.tokens])
    return compare(what, want, got, setting.bound)


def chunk(setting: Setting) -> Iterator[Check]:
    """Any split into pieces = whole."""
    ids, linear = setting.ids, setting.model.config.text.linear_attn_config
    if setting.exact:
        sizes = {"heads": 1, "K": min(linear.head_dim, 16), "V": min(linear.v_dim, 16)}
        pair = kda.memory("chunk", (kernel.TILE + 1,), **sizes)
        report = pair.check(covering=False, seeds=setting.seeds)
        yield exactly("KDA's tiles of 16 tokens = Eq. 1 token by token", report)
        yield whole(setting, [2, 1, 1], "pieces of 2, 1 and 1 tokens = whole")
    want = trace(setting.model, ids, [len(ids)])
    for sizes_ in splits(len(ids), setting.seed):
        got = trace(setting.model, ids, sizes_)
        shown = ", ".join(map(str, sizes_))
        yield compare(f"pieces of {shown} tokens = whole", got, want, setting.bound)


def whole(setting: Setting, sizes: Sequence[int], what: str) -> Check:
    """Pieces against one pass in exact arithmetic over all layers."""
    if setting.too_large:
        return skipped(f"{what}, exactly", LARGE)
    ids = setting.ids[: sum(sizes)]
    pieces = decoder.chunked(setting.model, ids, sizes)
    report = same(pieces, decoder.whole(setting.model, ids), setting)
    return exactly(f"{what}, all layers, {len(ids)} tokens", report)


def splits(tokens: int, seed: int) -> list[list[int]]:
    """Splits around the tile: one short, one long, and two at random."""
    tile, drawn = kernel.TILE, random.Random(seed)
    out = [_first(tile - 1, tokens), _first(tile + 1, tokens)]
    for _ in range(2):
        count = drawn.randint(1, min(6, tokens - 1))
        cuts = sorted(drawn.sample(range(1, tokens), count))
        ends = zip([0, *cuts], [*cuts, tokens], strict=True)
        out.append([b - a for a, b in ends])
    return out


def _first(size: int, tokens: int) -> list[int]:
    head = min(size, tokens - 1)
    return [head, tokens - head]
