"""The operations of the spec, dispatched on the carrier.

Carriers here: float, Fraction, and numpy arrays of float64 or of objects. Balls, torch,
symbols and the finite field register themselves (`exp.register(arb, ...)`), from
`verify` and the tests. `lift` brings a constant to the carrier of its neighbour.
"""

from k3.spec.ops import carriers as carriers
from k3.spec.ops.operations import Array as Array
from k3.spec.ops.operations import Number as Number
from k3.spec.ops.operations import concat as concat
from k3.spec.ops.operations import concat_rule as concat_rule
from k3.spec.ops.operations import cos as cos
from k3.spec.ops.operations import erf as erf
from k3.spec.ops.operations import exp as exp
from k3.spec.ops.operations import key as key
from k3.spec.ops.operations import lift as lift
from k3.spec.ops.operations import log as log
from k3.spec.ops.operations import log_softmax as log_softmax
from k3.spec.ops.operations import log_softmax_rule as log_softmax_rule
from k3.spec.ops.operations import matrix as matrix
from k3.spec.ops.operations import maximum as maximum
from k3.spec.ops.operations import mean as mean
from k3.spec.ops.operations import minimum as minimum
from k3.spec.ops.operations import order as order
from k3.spec.ops.operations import outer as outer
from k3.spec.ops.operations import pi as pi
from k3.spec.ops.operations import reshape as reshape
from k3.spec.ops.operations import sigmoid as sigmoid
from k3.spec.ops.operations import silu as silu
from k3.spec.ops.operations import sin as sin
from k3.spec.ops.operations import softmax as softmax
from k3.spec.ops.operations import softmax_rule as softmax_rule
from k3.spec.ops.operations import softplus as softplus
from k3.spec.ops.operations import sqrt as sqrt
from k3.spec.ops.operations import stack as stack
from k3.spec.ops.operations import stack_rule as stack_rule
from k3.spec.ops.operations import tanh as tanh
from k3.spec.ops.operations import total as total
from k3.spec.ops.operations import transpose as transpose
from k3.spec.ops.operations import zeros as zeros

__all__ = [
    "Array",
    "Number",
    "carriers",
    "concat",
    "concat_rule",
    "cos",
    "erf",
    "exp",
    "key",
    "lift",
    "log",
    "log_softmax",
    "log_softmax_rule",
    "matrix",
    "maximum",
    "mean",
    "minimum",
    "order",
    "outer",
    "pi",
    "reshape",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "softmax_rule",
    "softplus",
    "sqrt",
    "stack",
    "stack_rule",
    "tanh",
    "total",
    "transpose",
    "zeros",
]
