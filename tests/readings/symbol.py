"""The symbolic reading of the spec: sympy expressions."""

import numpy as np
import sympy

from k3.spec import ops

S = sympy.Expr

ops.exp.register(S, sympy.exp)
ops.log.register(S, sympy.log)
ops.sqrt.register(S, sympy.sqrt)
ops.tanh.register(S, sympy.tanh)
ops.lift.register(S, lambda like, value: sympy.Rational(str(value)))


def array(name, *shape):
    """Real symbols name_i_j."""
    out = np.empty(shape, dtype=object)
    for at in np.ndindex(*shape):
        out[at] = sympy.Symbol("_".join([name, *map(str, at)]), real=True)
    return out


def zero(x):
    """Whether every entry is zero as a rational function."""
    return all(sympy.cancel(sympy.together(entry)) == 0 for entry in np.ravel(x))
