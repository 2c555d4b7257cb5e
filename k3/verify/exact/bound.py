"""The degree run: the same program over degrees, and the chance of a false "equal".

A value's degree is (numerator, denominator), held as a complex number at level 0; the
other levels hold the multiplicity of an exponent. Two different rational functions of
degree d agree at a random point of a set S with probability at most 2 d / |S|; random
functions add the chance that two different arguments met. Assumed: hashes are random
functions, and exponents that differ by no integer multiple are independent.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from k3.verify.exact import run
from k3.verify.exact.field import Field
from k3.verify.exact.mode import ExactMode
from k3.verify.exact.report import Report
from k3.verify.exact.tower import Tower


class DegreeField(Field):
    """(max, +) on numerator + i denominator."""

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        """Over the common denominator."""
        top = torch.maximum(a.real + b.imag, b.real + a.imag)
        return torch.complex(top, a.imag + b.imag)

    sub = add

    def neg(self, a: Tensor) -> Tensor:
        """Degrees have no sign."""
        return a

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        """Degrees add."""
        return a + b

    def scale(self, a: Tensor, factor: int) -> Tensor:
        """Constants have degree 0."""
        return a

    def sum(self, x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
        """Over the product of all denominators."""
        below = x.imag.sum(dim, keepdim)
        if not x.numel():
            return torch.complex(below, below)
        return torch.complex(below + (x.real - x.imag).amax(dim, keepdim), below)

    def cumsum(self, x: Tensor, dim: int) -> Tensor:
        """Running sum."""
        return self._running(x, dim, self.add)

    def pow(self, a: Tensor, e: int) -> Tensor:
        """Degrees multiply."""
        return a * e

    def inv(self, a: Tensor) -> Tensor:
        """The inverse of a random value is random; others turn over."""
        fresh = (a.real <= 1) & (a.imag == 0)
        return torch.where(fresh, a, torch.complex(a.imag, a.real))

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """Sums of products."""
        return self.sum(self.mul(a[..., None], b[..., None, :, :]), -2)

    def index_add(self, x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """Row by row."""
        x = x.clone()
        for row, at in enumerate(index.tolist()):
            here = x.select(dim, at)
            here.copy_(self.add(here, src.select(dim, row)))
        return x

    def scatter_add(self, x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """Bounded by everything that is added."""
        whole = self.sum(src, dim, True)
        return self.add(x, whole.expand_as(x))

    def index_put(self, x: Tensor, index: object, src: Tensor) -> Tensor:
        """Bounded by everything that is added."""
        whole = self.sum(src.reshape(-1), 0)
        return self.add(x, whole.expand_as(x))


class WeightField(DegreeField):
    """How often an exponent counts one random value: 0 for constants."""

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        """Counts add."""
        return a + b

    sub = add

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        """A product of two values is a value of its own."""
        one = torch.ones_like(a + b)
        return torch.where(a == 0, b + 0 * a, torch.where(b == 0, a + 0 * b, one))

    def sum(self, x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
        """Counts add."""
        return x.sum(dim, keepdim)

    def pow(self, a: Tensor, e: int) -> Tensor:
        """A power is a value of its own."""
        return (a != 0).to(a.dtype)

    def inv(self, a: Tensor) -> Tensor:
        """So is an inverse."""
        return (a != 0).to(a.dtype)

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """And a sum of products."""
        kinds = (a != 0).double() @ torch.ones_like(b).real
        other = torch.ones_like(a).real @ (b != 0).double()
        return ((kinds + other) != 0).to(a.dtype)


class DegreeTower(Tower):
    """A tower whose values are degrees; it counts calls of random functions."""

    def __init__(self, levels: int) -> None:
        super().__init__(50, levels, 0)
        rest = [WeightField(p) for p in self.primes[1:]]
        self.fields = [DegreeField(self.primes[0]), *rest]
        self.calls: dict[str, tuple[int, float]] = {}

    def rational(self, value: Any) -> tuple[int, ...]:
        """Constants have degree 0."""
        return (0,) * self.levels

    def root(self, value: Any) -> tuple[int, ...]:
        """Roots of constants too."""
        return (0,) * self.levels

    def oracle_int(self, tag: str, x: int) -> tuple[int, ...]:
        """A unit, which may be inverted."""
        return (1,) * self.levels

    def constant(self, i: int, values: list[int]) -> Tensor:
        """Degree 0."""
        return torch.zeros(len(values), dtype=torch.complex128)

    def oracle(self, tag: str, x: Tensor) -> list[Tensor]:
        """A fresh value has degree 1."""
        one = torch.ones(x.shape, dtype=torch.complex128)
        return [one.clone() for _ in range(self.levels)]

    def power(self, i: int, e: Tensor) -> Tensor:
        """An exponential counts what its exponent does."""
        return torch.complex(e.real, torch.zeros_like(e.real)) if i == 0 else e * 0 + 1

    def count(self, tag: str, x: Tensor) -> None:
        """Add calls of one function, and the largest degree of an argument."""
        n, degree = self.calls.get(tag, (0, 0.0))
        here = (x.real + x.imag).max().item() if x.numel() else 0.0
        self.calls[tag] = n + x.numel(), max(degree, here)


def of(
    report: Report, program: Any, inputs: Mapping[str, Any], attach: run.Attach | None
) -> None:
    """Fill in the bound: one seed's, to the power of the seeds."""
    tower = DegreeTower(report.levels)
    ran = run.program(program, inputs, ExactMode(tower), attach)
    cuts = [x for values in ran.cuts.seen.values() for x in values]
    degrees = [0.0]
    for x in [*cuts, *ran.outputs.values()]:
        if hasattr(x, "c") and x.numel():
            degrees.append((x.c[0].real + x.c[0].imag).max().item())
    report.degree = max(degrees)
    report.calls = sum(n for n, _ in tower.calls.values())
    compared = report.compared / max(report.seeds * len(report.orders), 1)
    chances = compared * 2 * report.degree
    # Both programs call: 2n arguments of one function, (2n)^2 / 2 pairs of them.
    chances += sum(2 * n * n * 2 * degree for n, degree in tower.calls.values())
    size = Tower(report.bits, report.levels).primes[-1]
    report.bound = float(min(1.0, chances / size) ** report.seeds)
