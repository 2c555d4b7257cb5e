"""A small engine, and runs of requests on it, for the tests of serving."""

from collections.abc import Callable, Iterable
from typing import Any

from small import ids

from k3.config import sizes
from k3.model import Model
from k3.model.completion import GenerateOptions, Token
from k3.serve import CacheOptions
from k3.serve.engine import Engine, EngineOptions
from k3.serve.request import Output, Request

CACHE = CacheOptions(
    hash_tokens=16, block_tokens=32, chunk_tokens=32, memory_bytes=2**22
)
TOLERANCE = 2e-5
"""Of a log-probability, fp32: what batching may change."""


def engine(net: Model, *, draft: Any = None, **options: Any):
    """An engine of few seats and short steps."""
    few = {"max_num_seqs": 4, "max_num_batched_tokens": 40, "cache": CACHE}
    them = {k: options.pop(k) for k in ("tokenizer", "weights") if k in options}
    return Engine(net, EngineOptions(**(few | options)), draft=draft, **them)


def request(name: str, length: int = 20, *, n: int = 1, **options: Any) -> Request:
    """A random prompt, and 12 tokens to go on unless `options` say otherwise."""
    them: dict[str, Any] = {
        key: options.pop(key)
        for key in ("images", "pixels", "grids", "salt", "constraint")
        if key in options
    }
    for key in ("prompt_logprobs", "tokens"):
        if key in options:
            them[key] = options.pop(key)
    seed = int.from_bytes(name.encode()[:4], "little")
    them.setdefault("tokens", tuple(ids(length, seed=seed).tolist()))
    asked = {"max_tokens": 12, "ignore_eos": True, "seed": seed} | options
    return Request(id=name, n=n, options=GenerateOptions(**asked), **them)


Got = dict[tuple[str, int], list[Output]]


def run(
    made: Engine,
    requests: Iterable[Request] = (),
    *,
    each: Callable[[int], None] = lambda step: None,
    steps: int = 1000,
) -> Got:
    """Add requests and step until nothing is left; outputs by request and sample."""
    for one in requests:
        made.add(one)
    got: Got = {}
    for step in range(steps):
        if not made.busy:
            return got
        each(step)
        for output in made.step():
            got.setdefault((output.request_id, output.index), []).append(output)
    raise AssertionError(f"the engine is still busy after {steps} steps")


def tokens(outputs: list[Output]) -> list[Token]:
    """All tokens of one sample."""
    return [token for output in outputs for token in output.tokens]


def same(got: list[Output], want: list[Output]) -> None:
    """Equal tokens, text and end; log-probabilities as close as batching allows."""
    a, b = tokens(got), tokens(want)
    assert [t.id for t in a] == [t.id for t in b]
    assert [t.text for t in a] == [t.text for t in b]
    assert got[-1].finish == want[-1].finish
    for x, y in zip(a, b, strict=True):
        assert abs(x.logprob - y.logprob) <= TOLERANCE


def bytes_of(net: Model, rows: int, length: int) -> int:
    """Bytes of the states of some sequences of one length."""
    return rows * sizes.state_bytes(net.config, length, net.dtype.itemsize)
