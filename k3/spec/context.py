"""Context parallelism of KDA, Eq. 17: segments as affine maps of the memory.

A summary (M, B) stands for S -> M S + B with M [K K] and B [K V].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from k3.spec import kda, ops
from k3.spec.ops import Array


@dataclass(frozen=True, slots=True)
class Summary:
    """The affine map S -> M S + B of a segment of tokens."""

    M: Array
    B: Array


def act(summary: Summary, S: Array) -> Array:
    """Eq. 17: the memory after a segment, M S + B. [K V]."""
    return summary.M @ S + summary.B


def token(k: Array, v: Array, alpha: Array, beta: Array) -> Summary:
    """Eq. 1 as a summary: ((I - beta k k^T) Diag(alpha), beta k v^T)."""
    return Summary(kda.transition(k, alpha, beta), beta * ops.outer(k, v))


def nothing(like: Array) -> Summary:
    """The summary of no token, S -> S, for a memory like [K V]."""
    return Summary(kda.identity(like[:, 0]), like * 0)


def compose(earlier: Summary, later: Summary) -> Summary:
    """Eq. 17: first `earlier`, then `later`: (M2 M1, M2 B1 + B2)."""
    return Summary(later.M @ earlier.M, act(later, earlier.B))


def segment(k: Array, v: Array, alpha: Array, beta: Array) -> Summary:
    """Eq. 17: the summary of T >= 1 tokens, k, alpha [T K], v [T V], beta [T]."""
    steps = [token(k[t], v[t], alpha[t], beta[t]) for t in range(len(k))]
    return reduce(compose, steps)


def starts(S: Array, summaries: Sequence[Summary]) -> list[Array]:
    """Eq. 17: the memory at which each rank's segment starts, and the last one.

    The scan S_{r+1} = M_r S_r + B_r in rank order, from S [K V]; one more entry than
    there are summaries.
    """
    out = [S]
    for summary in summaries:
        out.append(act(summary, out[-1]))
    return out


def tree(summaries: Sequence[Summary]) -> list[Summary]:
    """Eq. 17 as a parallel prefix: entry r summarizes ranks 0..r, in log2 R rounds."""
    out, reach = list(summaries), 1
    while reach < len(out):
        joined = [compose(out[r - reach], out[r]) for r in range(reach, len(out))]
        out = out[:reach] + joined
        reach *= 2
    return out


def parallel(
    S: Array,
    parts: Sequence[tuple[Array, Array, Array, Array, Array]],
) -> tuple[Array, Array]:
    """Eq. 17: ranks hold (q, k, v, alpha, beta) of consecutive tokens, none empty.

    Each makes its summary alone, the scan gives its start, and it runs Eq. 1 from
    there. Returns the last memory [K V] and all outputs [T V]: kda.recurrent.
    """
    summaries = [segment(k, v, alpha, beta) for _, k, v, alpha, beta in parts]
    out = []
    for start, (q, k, v, alpha, beta) in zip(starts(S, summaries), parts, strict=False):
        out.append(kda.recurrent(start, q, k, v, alpha=alpha, beta=beta)[1])
    return starts(S, summaries)[-1], ops.concat(out)
