"""Every rule: what a machine makes of numbers in a ball lies in the ball of the result.

So does what the operation means over the real numbers, here in float64.
"""

import pytest
import torch
import torch.nn.functional as F

from k3.verify.enclose.ball import Ball, Unsupported
from k3.verify.enclose.mode import BallMode, written
from k3.verify.enclose.rounding import Rounding

DTYPES = [torch.float32, torch.bfloat16, torch.float64]
MASK = torch.tensor([[True, False, True, True, False]])
ROWS = torch.tensor([0, 2, 0])


def in_place(a, b):
    y = a * 1.0
    y[1:] = b[1:]
    y.add_(0.3)
    return y.mul_(b)


def below(a, b):
    """A square system of 3 with 5 right sides."""
    return torch.linalg.solve_triangular(
        (a @ b.mT).float(), b.float(), upper=False, unitriangular=True
    )


PROGRAMS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - 2.5 * b,
    "rsub": lambda a, b: 1.1 - a,
    "mul": lambda a, b: a * b,
    "scalar": lambda a, b: a * 0.1 + 1e-5,
    "div": lambda a, b: a / (b.square() + 0.7),
    "square": lambda a, b: a.square() - b**3,
    "addcmul": lambda a, b: torch.addcmul(a, a, b),
    "sum": lambda a, b: a.sum(-1) * b.mean(),
    "mean": lambda a, b: a.mean(-1, keepdim=True),
    "cumsum": lambda a, b: a.cumsum(-1),
    "matmul": lambda a, b: a @ b.mT,
    "batched": lambda a, b: a.expand(2, 3, 5) @ b.mT.expand(2, 5, 3),
    "vector": lambda a, b: a @ b[0],
    "linear": lambda a, b: F.linear(a, b),
    "exp": lambda a, b: a.exp(),
    "sigmoid": lambda a, b: torch.sigmoid(3 * a),
    "tanh": lambda a, b: torch.tanh(a / 4),
    "silu": lambda a, b: F.silu(4 * a),
    "softplus": lambda a, b: F.softplus(9 * a),
    "gelu": lambda a, b: F.gelu(a) + F.gelu(b, approximate="tanh"),
    "rsqrt": lambda a, b: torch.rsqrt(a.square().sum(-1, keepdim=True) + 1e-6),
    "sqrt": lambda a, b: torch.sqrt(a.square() + 0.1),
    "norm": lambda a, b: torch.linalg.vector_norm(a, dim=-1),
    "rms_norm": lambda a, b: F.rms_norm(a, (5,), None, 1e-5),
    "softmax": lambda a, b: torch.softmax(a, -1),
    "masked": lambda a, b: torch.softmax(a.masked_fill(MASK, -torch.inf), -1),
    "logsumexp": lambda a, b: torch.logsumexp(a, -1),
    "logaddexp": lambda a, b: torch.logaddexp(a, b),
    "sin": lambda a, b: torch.sin(3 * a) * torch.cos(b),
    "amax": lambda a, b: a.amax(-1) - b.amin(-1),
    "where": lambda a, b: torch.where(MASK, a, b),
    "pad": lambda a, b: F.pad(a, (1, 2)) + 1,
    "clamp": lambda a, b: a.clamp(-0.5, 0.5) / b.abs().clamp_min(0.25),
    "power": lambda a, b: 10.0 ** (-a / 4) + a.expm1(),
    "bilinear": lambda a, b: F.interpolate(a[None, None], (4, 7), mode="bilinear"),
    "index_add": lambda a, b: a.index_add(0, ROWS, b),
    "moved": lambda a, b: torch.cat([a.T, b.T], -1)[1:3].tril().flip(0),
    "cast": lambda a, b: a.bfloat16().float() + b.float(),
    "neg": lambda a, b: -a.neg() + torch.zeros_like(a) + a.new_zeros(1),
    "in place": in_place,
    "solve": below,
    "attention": lambda a, b: F.scaled_dot_product_attention(
        a[None, None], b[None, None], b[None, None], is_causal=True, scale=0.3
    ),
}


def machine_and_meaning(program, dtype, seed):
    """The ball of a result, and eight results of inputs that lie in the input balls."""
    generator = torch.Generator().manual_seed(seed)

    def draw():
        return torch.randn(3, 5, generator=generator, dtype=torch.float64)

    centre, size = (draw(), draw()), 2.0 ** torch.randint(-24, -4, (1,)).item()
    near = [[c + size * c.abs() * draw().clamp(-2, 2) for c in centre] for _ in "1234"]
    narrow = [[x.to(dtype) for x in xs] for xs in near]
    seen = [[x.double() for x in xs] for xs in narrow]
    run = BallMode(Rounding())
    balls = [
        Ball(
            run,
            c,
            torch.stack([(xs[i] - c).abs() for xs in near + seen]).amax(0),
            dtype,
        )
        for i, c in enumerate(centre)
    ]
    with torch.no_grad(), run:
        out = program(*balls)
    with torch.no_grad():
        made = [program(*xs) for xs in narrow]
        # The meaning has no casts: it is the same program on float64.
        made += [program(*xs) for xs in near] if dtype != torch.float64 else []
    return out, made


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_lie_in_the_ball(name, dtype):
    for seed in range(3):
        out, made = machine_and_meaning(PROGRAMS[name], dtype, seed)
        assert out.r.isfinite().all()
        for got in made:
            assert got.shape == out.m.shape
            assert ((got.double() - out.m).abs() <= out.r).all()


@pytest.mark.parametrize(("dtype", "bits"), [(torch.float32, 24), (torch.bfloat16, 8)])
def test_a_single_rounding_costs_what_it_costs(dtype, bits):
    run, x = BallMode(Rounding()), torch.rand(7, dtype=dtype) + 1
    out = run.lift(x) * run.lift(x)
    assert float((out.r / out.m).max()) <= 2.0**-bits * (1 + 1e-6)


def test_a_sum_of_squares_is_never_negative_however_wide_its_ball():
    run = BallMode(Rounding())
    x = Ball(run, torch.zeros(3), torch.ones(3), torch.float32)
    y = torch.rsqrt(x.square().sum(-1) + 1e-6)
    assert float(y.m + y.r) >= 1000.0
    assert torch.isfinite(y.r)
    z = x.square()
    z.sub_(1.0)
    assert torch.rsqrt(z + 0.5).r.isinf().all()


def test_a_denominator_that_may_vanish_is_unknown():
    run = BallMode(Rounding())
    x = Ball(run, torch.ones(2), torch.tensor([0.5, 1.5]), torch.float32)
    assert (1 / x).r.isinf().tolist() == [False, True]


def test_overflow_is_unknown_and_an_exact_zero_stays_exact():
    run = BallMode(Rounding())
    big = run.lift(torch.tensor([3e38, 1.0]))
    assert (big * 2).r.isinf().tolist() == [True, False]
    zero = run.lift(torch.zeros(2))
    assert (zero * big + zero).r.tolist() == [0.0, 0.0]
    small = run.lift(torch.tensor([1e-30]))
    assert float((small * small).r) >= 2.0**-126


def test_numbers_are_read_as_they_were_written():
    assert written(9.999999747378752e-06) == 1e-5
    assert written(1e-6) == 1e-6
    assert written(0.3333333432674408) == 0.3333333432674408
    assert written(float("-inf")) == float("-inf")


def test_an_operation_without_a_rule_is_named():
    run = BallMode(Rounding())
    with pytest.raises(Unsupported, match=r"aten\.erfinv.* has no rule for balls"):
        torch.erfinv(run.lift(torch.zeros(2)))
    with pytest.raises(Unsupported, match="powers 2 and 3 only: got 4"):
        run.lift(torch.zeros(2)) ** 4
    with pytest.raises(Unsupported, match="writes a ball into a plain tensor"):
        torch.zeros(2).copy_(run.lift(torch.zeros(2)))
    x = run.lift(torch.eye(2))
    with pytest.raises(Unsupported, match="unit lower triangular"):
        torch.linalg.solve_triangular(x, x, upper=True)
