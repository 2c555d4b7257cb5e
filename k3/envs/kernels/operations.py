"""The operations that kernels are written for, each with a plain loop as reference."""

from dataclasses import dataclass
from math import inf, nan


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """What is computed, on which values, and the loops that speed is measured by.

    `number` is the judge's; `c` stands for the constant in `words` and in `plain`.
    """

    number: int
    words: str
    plain: str
    values: tuple[float, float]
    weights: tuple[float, float]
    constants: tuple[float, float]
    special: tuple[tuple[float, ...], ...]
    narrow: tuple[float, float]
    """A large value and the small ones around it, which a narrow sum loses."""
    share: float
    """Of the speed of a copy, the roofline: from here on the marks are full."""


RMSNORM = Operation(
    number=0,
    words="y[i][j] = x[i][j] * w[j] / sqrt(mean of x[i][k]^2 over k + {c})",
    plain="""\
for (long i = 0; i < rows; i++) {
    float sum = 0;
    for (long j = 0; j < cols; j++) sum += x[i * cols + j] * x[i * cols + j];
    float r = 1 / sqrtf(sum / cols + (float){c});
    for (long j = 0; j < cols; j++) y[i * cols + j] = x[i * cols + j] * r * w[j];
  }""",
    values=(-2.0, 2.0),
    weights=(0.5, 1.5),
    constants=(1e-6, 1e-2),
    special=((0.0,), (1e-40, -1e-42), (3e4, -2e4), (inf,), (-inf, inf), (nan,)),
    narrow=(64.0, 0.25),
    share=0.35,
)
SOFTMAX = Operation(
    number=1,
    words="y[i] = softmax of (x[i][j] + w[j]) * {c} over j",
    plain="""\
for (long i = 0; i < rows; i++) {
    float most = -INFINITY, sum = 0;
    int nan = 0;
    for (long j = 0; j < cols; j++) {
      float z = y[i * cols + j] = (x[i * cols + j] + w[j]) * (float){c};
      nan |= isnan(z);
      if (z > most) most = z;
    }
    if (nan) most = NAN;
    for (long j = 0; j < cols; j++)
      sum += y[i * cols + j] = expf(y[i * cols + j] - most);
    for (long j = 0; j < cols; j++) y[i * cols + j] /= sum;
  }""",
    values=(-4.0, 4.0),
    weights=(-1.0, 1.0),
    constants=(0.5, 2.0),
    special=((30.0, 29.0), (-1e4, -1e5), (-inf, -inf), (inf,), (-inf, inf), (nan,)),
    narrow=(4.0, -2.0),
    # An exp a value keeps it from the roofline.
    share=0.15,
)
SCAN = Operation(
    number=2,
    words="y[i][j] = w[j] * y[i - 1][j] + {c} * x[i][j], with 0 for y[-1]",
    plain="""\
for (long j = 0; j < cols; j++) {
    float s = 0;
    for (long i = 0; i < rows; i++)
      y[i * cols + j] = s = w[j] * s + (float){c} * x[i * cols + j];
  }""",
    values=(-1.0, 1.0),
    weights=(0.5, 0.99),
    constants=(0.25, 4.0),
    special=((0.0,), (1e-40,), (3e4, -2e4), (inf,), (-inf, inf), (nan,)),
    narrow=(100.0, 0.01),
    share=0.35,
)
OPERATIONS = {"rmsnorm": RMSNORM, "softmax": SOFTMAX, "scan": SCAN}
_SIGNATURE = (
    "void kernel(const float *x, const float *w, float *y, long rows, long cols)"
)


def reference(operation: Operation, constant: float) -> str:
    """The plain loops as a C file."""
    body = operation.plain.replace("{c}", repr(constant))
    return f"#include <math.h>\n{_SIGNATURE} {{\n  {body}\n}}\n"


def copy() -> str:
    """A kernel that only moves the bytes: the roofline."""
    body = "for (long i = 0; i < rows * cols; i++) y[i] = x[i];"
    return f"{_SIGNATURE} {{\n  (void)w;\n  {body}\n}}\n"


def goal(operation: Operation, constant: float) -> str:
    """The operation and the signature, in words."""
    words = operation.words.replace("{c}", repr(constant))
    return f"`{_SIGNATURE}` computes, for fp32 x [rows cols] and w [cols]: {words}."
