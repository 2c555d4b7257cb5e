"""Each shipped kernel and module beside the spec function it claims to compute."""

from k3.verify.exact.pairs.pair import Pair as Pair

__all__ = ["Pair"]
