"""The tower: primes p0 > p1 > ... with p[i+1] = (p[i] - 1) / 2, and values in it.

A value is a tuple of residues, one a level. Ring operations act level by level;
exp(x)[i] = g_i ^ x[i+1] is a homomorphism from addition to multiplication, and costs
one level. Uninterpreted functions are keyed hashes of the residue of level 0.
"""

import random
from fractions import Fraction

import torch
from torch import Tensor

from k3.errors import RequestError
from k3.verify.exact.field import Field

# Each is -1 modulo 8 and the small primes, so those have square roots at every level.
CHAINS = {
    31: (2015133119, 1007566559, 503783279, 251891639),
    50: (
        947627122041599,
        473813561020799,
        236906780510399,
        118453390255199,
        59226695127599,
        29613347563799,
    ),
}
_WORD = (1 << 64) - 1
_KEEP = (1 << 62) - 1
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_GOLDEN = 0x9E3779B97F4A7C15
WINDOW = 13
"""Bits of an exponent that one table of powers covers."""


def mix(x: int, key: int) -> int:
    """A keyed 62-bit mixing hash (splitmix64's finalizer twice) of a residue."""
    z = (x * _GOLDEN + key) & _WORD
    for _ in range(2):
        for shift, factor in _STEPS:
            z = ((z ^ (z >> shift)) * factor) & _WORD
        z ^= z >> 31
    return z & _KEEP


def _signed(x: int) -> int:
    x &= _WORD
    return x - (1 << 64) if x >> 63 else x


def _shifted(z: Tensor, k: int) -> Tensor:
    return (z >> k) & ((1 << (64 - k)) - 1)


def mix_tensor(x: Tensor, key: int) -> Tensor:
    """`mix` on int64 tensors, whose products wrap modulo 2^64."""
    z = x * _signed(_GOLDEN) + _signed(key)
    for _ in range(2):
        for shift, factor in _STEPS:
            z = (z ^ _shifted(z, shift)) * _signed(factor)
        z = z ^ _shifted(z, 31)
    return z & _KEEP


class Tower:
    """All that depends on the seed: bases of exp, keys of hashes, read constants."""

    def __init__(
        self, bits: int = 50, levels: int = 3, seed: int = 0, *, theory: bool = False
    ) -> None:
        if bits not in CHAINS or not 2 <= levels <= len(CHAINS[bits]):
            raise RequestError(
                "a tower has bits=31 with 2..4 levels or bits=50 with 2..6: got "
                f"bits={bits}, levels={levels}"
            )
        self.primes = CHAINS[bits][:levels]
        self.levels, self.seed = levels, seed
        self.theory = theory
        """Whether sigmoid and tanh are read through exp, and sqrt as a power."""
        self.fields: list[Field] = [Field(p) for p in self.primes]
        rng = random.Random(f"exact-{bits}-{levels}-{seed}")
        # Squares, so that their order is the next prime.
        self.base = [pow(rng.randrange(2, p - 1), 2, p) for p in self.primes]
        self.known: dict[object, tuple[int, ...]] = {}
        """Residues of constants already read."""
        self.computed: list[float] = []
        """Constants that are no literal, in rising order."""
        self.readings: dict[float, str] = {}
        """What each literal was read as, where that is not itself."""
        self._keys: dict[tuple[str, int], int] = {}
        self._tables: dict[int, list[Tensor]] = {}

    def key(self, tag: str, level: int) -> int:
        """The hash key of one function at one level."""
        at = tag, level
        if at not in self._keys:
            rng = random.Random(f"{self.seed}|{tag}|{level}")
            self._keys[at] = rng.getrandbits(64)
        return self._keys[at]

    def oracle_int(self, tag: str, x: int) -> tuple[int, ...]:
        """The random function `tag` at a residue of level 0, on Python integers."""
        return tuple(mix(x, self.key(tag, i)) % p for i, p in enumerate(self.primes))

    def oracle(self, tag: str, x: Tensor) -> list[Tensor]:
        """The random function `tag` at residues of level 0, fresh at all levels."""
        return [
            torch.remainder(mix_tensor(x, self.key(tag, i)), p)
            for i, p in enumerate(self.primes)
        ]

    def rational(self, value: Fraction) -> tuple[int, ...]:
        """The residues of a rational number."""
        above, below = value.numerator, value.denominator
        return tuple(above * pow(below, -1, p) % p for p in self.primes)

    def root(self, value: Fraction) -> tuple[int, ...]:
        """A square root: the one that is itself a square, or a random function's."""
        v = self.rational(value)
        pairs = list(zip(v, self.primes, strict=True))
        if all(pow(x, (p - 1) // 2, p) == 1 for x, p in pairs):
            return tuple(pow(x, (p + 1) // 4, p) for x, p in pairs)
        return self.oracle_int("sqrt", v[0])

    def root_power(self, i: int) -> int:
        """The power map of level i that is a square root of squares."""
        return (self.primes[i] + 1) // 4

    def constant(self, i: int, values: list[int]) -> Tensor:
        """Residues of level i as a tensor."""
        return torch.tensor(values, dtype=torch.int64)

    def power(self, i: int, e: Tensor) -> Tensor:
        """g_i ^ e modulo p_i for residues e of level i + 1, by tables of powers."""
        field, out = self.fields[i], None
        for j, row in enumerate(self._table(i)):
            y = row[(e >> (WINDOW * j)) & ((1 << WINDOW) - 1)]
            out = y if out is None else field.mul(out, y)
        assert out is not None
        return out

    def _table(self, i: int) -> list[Tensor]:
        if i not in self._tables:
            field, rows, b = self.fields[i], [], self.base[i]
            for _ in range(-(-field.bits // WINDOW)):
                row = torch.ones(1, dtype=torch.int64)
                while len(row) < 1 << WINDOW:
                    step = torch.tensor(pow(b, len(row), field.p))
                    row = torch.cat([row, field.mul(row, step)])
                rows.append(row)
                b = pow(b, 1 << WINDOW, field.p)
            self._tables[i] = rows
        return self._tables[i]

    def count(self, tag: str, x: Tensor) -> None:
        """Told of every call of a random function or exp; the degree run counts."""
