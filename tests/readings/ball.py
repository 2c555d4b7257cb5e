"""The ball reading of the spec: python-flint's arb, 256 bits."""

from fractions import Fraction

import flint
import numpy as np
from flint import arb

from k3.spec import ops

flint.ctx.prec = 256


def rational(value):
    exact = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
    return arb(exact.numerator) / arb(exact.denominator)


ops.exp.register(arb, lambda x: x.exp())
ops.log.register(arb, lambda x: x.log())
ops.sqrt.register(arb, lambda x: x.sqrt())
ops.tanh.register(arb, lambda x: x.tanh())
ops.erf.register(arb, lambda x: x.erf())
ops.cos.register(arb, lambda x: x.cos())
ops.sin.register(arb, lambda x: x.sin())
ops.maximum.register(arb, lambda x, y: x.max(arb(y)))
ops.minimum.register(arb, lambda x, y: x.min(arb(y)))
ops.pi.register(arb, lambda like: arb.pi())
ops.lift.register(arb, lambda like, value: rational(value))
ops.key.register(arb, lambda x: float(x.mid()))


def array(x):
    return ops_entries(lambda v: arb(float(v)), x)


def ops_entries(function, x):
    out = np.empty(np.shape(x), dtype=object)
    for at in np.ndindex(out.shape):
        out[at] = function(x[at])
    return out


def floats(x):
    return np.vectorize(lambda v: float(arb(v).mid()), otypes=[float])(x)


def radius(x):
    """The widest ball of an answer."""
    return max(float(arb(v).rad()) for v in np.asarray(x, dtype=object).flat)
