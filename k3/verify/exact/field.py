"""Arithmetic modulo one prime below 2^31 or 2^50, on int64 tensors of residues."""

from collections.abc import Sequence

import torch
from torch import Tensor


class Field:
    """Z/p with residues in [0, p). Every operation is exact."""

    def __init__(self, p: int) -> None:
        self.p, self.small = p, p < 1 << 31
        self.bits = p.bit_length()
        self._inverse = 1.0 / p

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        """a + b."""
        r = a + b
        return torch.where(r >= self.p, r - self.p, r)

    def sub(self, a: Tensor, b: Tensor) -> Tensor:
        """a - b."""
        r = a - b
        return torch.where(r < 0, r + self.p, r)

    def neg(self, a: Tensor) -> Tensor:
        """-a."""
        return torch.where(a == 0, a, self.p - a)

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        """a b, by a float64 quotient where the product does not fit in 64 bits."""
        if self.small:
            return torch.remainder(a * b, self.p)
        q = (a.double() * b.double() * self._inverse).floor().long()
        # The products wrap modulo 2^64; the true value lies in (-2p, 2p).
        return torch.remainder(a * b - q * self.p, self.p)

    def scale(self, a: Tensor, factor: int) -> Tensor:
        """Multiply by one integer."""
        return self.mul(a, torch.tensor(factor % self.p))

    @property
    def terms(self) -> int:
        """How many residues may be added before reducing."""
        return 1 << (62 - self.bits)

    def sum(self, x: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
        """Sum over one or several axes."""
        dims = dim if isinstance(dim, Sequence) else [dim]
        for d in sorted({d % x.dim() for d in dims}, reverse=True):
            pieces = [
                torch.remainder(part.sum(d, keepdim=True), self.p)
                for part in x.split(self.terms, d)
            ]
            whole = torch.cat(pieces, d).sum(d, keepdim=keepdim)
            x = torch.remainder(whole, self.p)
        return x

    def cumsum(self, x: Tensor, dim: int) -> Tensor:
        """Running sum over an axis."""
        if x.shape[dim] <= self.terms:
            return torch.remainder(x.cumsum(dim), self.p)
        return self._running(x, dim, self.add)

    def cumprod(self, x: Tensor, dim: int) -> Tensor:
        """Running product over an axis."""
        return self._running(x, dim, self.mul)

    @staticmethod
    def _running(x: Tensor, dim: int, op) -> Tensor:  # type: ignore[no-untyped-def]
        rows = list(x.unbind(dim))
        for i in range(1, len(rows)):
            rows[i] = op(rows[i - 1], rows[i])
        return torch.stack(rows, dim) if rows else x

    def pow(self, a: Tensor, e: int) -> Tensor:
        """a^e for e >= 0."""
        r = torch.ones_like(a)
        while e:
            if e & 1:
                r = self.mul(r, a)
            e >>= 1
            if e:
                a = self.mul(a, a)
        return r

    def inv(self, a: Tensor) -> Tensor:
        """1 / a, and 0 for 0."""
        return self.pow(a, self.p - 2)

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """a @ b by float64 products of 16- or 17-bit limbs, each below 2^53."""
        width, n = (16, 2) if self.small else (17, 3)
        mask = (1 << width) - 1
        left = [((a >> (width * i)) & mask).double() for i in range(n)]
        right = [((b >> (width * i)) & mask).double() for i in range(n)]
        assert n * a.shape[-1] << (2 * width) < 1 << 53
        columns: list[Tensor | None] = [None] * (2 * n - 1)
        for i in range(n):
            for j in range(n):
                x, held = left[i] @ right[j], columns[i + j]
                columns[i + j] = x if held is None else held + x
        out = None
        for column in reversed(columns):
            assert column is not None
            x = torch.remainder(column.long(), self.p)
            out = x if out is None else self.add(self.scale(out, 1 << width), x)
        assert out is not None
        return out

    def index_add(self, x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """x with rows of src added at positions of an axis."""
        for at in range(0, index.shape[0], self.terms):
            part = slice(at, at + self.terms)
            rows = src.narrow(dim, at, len(index[part]))
            x = torch.remainder(x.index_add(dim, index[part], rows), self.p)
        return x

    def scatter_add(self, x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """x with entries of src added where index points along an axis."""
        assert index.shape[dim] <= self.terms
        return torch.remainder(x.scatter_add(dim, index, src), self.p)

    def index_put(self, x: Tensor, index: object, src: Tensor) -> Tensor:
        """x with src added at indexed places."""
        assert src.numel() <= self.terms
        return torch.remainder(x.index_put(index, src, True), self.p)  # type: ignore[arg-type]
