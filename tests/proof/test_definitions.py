"""The definitions in statements compute what plain Python computes."""

import math
import random
from fractions import Fraction

import pytest

from k3.logic import interval
from k3.logic.falsify import call, evaluate
from k3.logic.sorts import INT, REAL, fun, list_of
from k3.logic.syntax import var
from k3.proof import (
    attn_res,
    balance,
    kda,
    lists,
    mla,
    moe,
    muon,
    mx,
    mx_block,
    rl,
    rounding,
    scan,
    situ,
    speculate,
    streaming,
    threshold,
    update,
    window,
)
from k3.proof.sums import SUM

SIZES = (1, 3, 7)


def numbers(rng, size):
    return tuple(Fraction(rng.randint(-9, 9), rng.randint(1, 4)) for _ in range(size))


@pytest.mark.parametrize("size", SIZES)
def test_scans_and_layers(size):
    rng = random.Random(size)

    def step(s, x):
        return f"State{(int(s[-1]) * 2 + int(x[-1])) % 5}", f"Output{int(s[-1])}"

    tokens = tuple(f"Token{rng.randrange(4)}" for _ in range(size))
    s, outputs = "State1", []
    for t in tokens:
        s, y = step(s, t)
        outputs.append(y)
    assert call(scan.RUN, [step, "State1", tokens]) == (s, tuple(outputs))

    def apply(layer, s, x):
        return f"State{(int(s[-1]) + int(x[-1])) % 3}", f"{x[:-1]}{int(layer[-1]) + 1}"

    layers = tuple(f"Layer{i}" for i in range(3))
    states = ["State0", "State1", "State2"]
    values = tuple(f"Value{rng.randrange(3)}" for _ in range(size))
    after, out = list(states), []
    for x in values:
        for i, layer in enumerate(layers):
            after[i], x = apply(layer, after[i], x)
        out.append(x)
    whole = call(streaming.BY_LAYERS, [apply, layers, tuple(states), values])
    assert whole == (tuple(after), tuple(out))


@pytest.mark.parametrize("size", SIZES)
def test_lists_and_sums(size):
    rng = random.Random(size)
    xs, ys = numbers(rng, size), numbers(rng, 2)
    assert call(lists.append(REAL), [xs, ys]) == xs + ys
    assert call(lists.length(REAL), [xs]) == size
    assert call(lists.snoc(REAL), [xs, ys[0]]) == (*xs, ys[0])
    assert call(lists.mapped(REAL, REAL), [abs, xs]) == tuple(map(abs, xs))
    assert call(lists.total(REAL), [lambda x: x * x, xs]) == sum(x * x for x in xs)
    assert [call(lists.entry(REAL), [None, xs, i]) for i in range(size)] == list(xs)
    assert call(lists.entry(REAL), ["blank", xs, size]) == "blank"
    assert call(SUM, [lambda i: xs[i], size]) == sum(xs)


@pytest.mark.parametrize("size", SIZES)
def test_top_k(size):
    rng = random.Random(size)
    experts = tuple((Fraction(rng.randint(0, 3)), i) for i in range(size))
    wanted = tuple(sorted(experts, key=lambda e: (-e[0], e[1])))
    assert call(moe.RANK, [experts]) == wanted
    for k in range(size + 1):
        assert call(moe.TAKE, [k, wanted]) == wanted[:k]
        assert call(moe.DROP, [k, wanted]) == wanted[k:]
    assert call(moe.RANKED, [wanted])
    assert call(moe.COUNT, [experts[0], experts + experts]) == 2


@pytest.mark.parametrize("size", SIZES)
def test_balance_counts_and_objective(size):
    margins = numbers(random.Random(size), size)
    theta, load = margins[0], Fraction(3, 2)
    xs, at = var("xs", list_of(REAL)), var("at", REAL)
    env = {xs: margins, at: theta}
    above = sum(m > theta for m in margins)
    assert evaluate(balance.above(at, xs), env) == above
    assert evaluate(balance.at_least(at, xs), env) == sum(m >= theta for m in margins)
    wanted = load * theta + sum(max(m - theta, 0) for m in margins)
    assert call(balance.OBJECTIVE, [load, theta, margins]) == wanted
    gaps = [m - theta for m in margins if m > theta]
    assert call(balance.GAP_ABOVE, [theta, margins]) == min([Fraction(1), *gaps])


@pytest.mark.parametrize("size", SIZES)
def test_threshold(size):
    """The least margin with at most `load` margins above it."""
    margins = numbers(random.Random(size), size)
    for half in range(2 * size + 1):
        load = Fraction(half, 2)
        few = [m for m in margins if sum(x > m for x in margins) <= load]
        wanted = min([*few, max([Fraction(0), *margins])])
        assert call(threshold.THRESHOLD, [load, margins]) == wanted


@pytest.mark.parametrize("size", SIZES)
def test_acceptance_and_distance(size):
    rng = random.Random(size)
    tokens = tuple(zip(numbers(rng, size), numbers(rng, size), strict=True))
    env = {speculate.tokens: tokens}
    assert evaluate(speculate.ACCEPTANCE, env) == sum(map(min, tokens))
    assert evaluate(speculate.DISTANCE, env) == sum(abs(p - q) for p, q in tokens)


@pytest.mark.parametrize("size", SIZES)
def test_attn_res_counts(size):
    for layers in range(11):
        done, rest = divmod(layers, size)
        assert call(attn_res.COMPLETED, [size, layers]) == done
        assert call(attn_res.PARTIAL, [size, layers]) == rest
        assert call(muon.HEAD, [size, layers]) == done
        assert call(muon.COLUMN, [size, layers]) == rest
        outputs = [Fraction(i * i, 3) for i in range(layers)]
        split = done * size
        values = [size, outputs.__getitem__, layers]
        assert call(attn_res.COMPLETED_SUM, values) == sum(outputs[:split])
        assert call(attn_res.PARTIAL_SUM, values) == sum(outputs[split:])


@pytest.mark.parametrize("size", SIZES)
def test_attention_over_lists_and_rows(size):
    weights, contents = numbers(random.Random(size), size), numbers(random.Random(9), 9)
    keys = tuple(range(size))
    positive = [abs(w) + 1 for w in weights]
    top = sum(w * contents[k] for w, k in zip(positive, keys, strict=True))
    values = [lambda k: positive[k], lambda k: contents[k]]
    assert call(mla.OVER_LIST, [*values, keys]) == top / sum(positive)
    rows = [*values, lambda i: keys[i], size]
    assert call(mla.OVER_ROWS, rows) == top / sum(positive)


@pytest.mark.parametrize("size", SIZES)
def test_rounded_dot_products(size):
    rng = random.Random(size)
    columns = [numbers(rng, size) for _ in range(4)]
    steps = tuple(((x, y), (d, e)) for x, y, d, e in zip(*columns, strict=True))
    rounded = exact = Fraction(0)
    for (x, y), (d, e) in reversed(steps):
        rounded = (rounded + x * y * (1 + d)) * (1 + e)
        exact += x * y
    assert call(rounding.ROUNDED, [steps]) == rounded
    assert call(rounding.DOT, [steps]) == exact
    assert call(rounding.GROWTH, [Fraction(1, 8), steps]) == Fraction(9, 8) ** (
        size + 1
    )


@pytest.mark.parametrize("size", SIZES)
def test_windows(size):
    """A window rolled over tokens holds the newest of the history list."""
    rng = random.Random(size)
    start = tuple(f"old{i}" for i in range(4))
    tokens = tuple(f"new{rng.randrange(9)}" for _ in range(size))
    rows = dict(enumerate(start))
    rolled = call(window.ROLLED, [3, "blank", rows.__getitem__, tokens])
    history = call(window.HISTORY, [start, tokens])
    assert history == (*reversed(tokens), *start)
    assert [rolled(i) for i in range(3)] == list(history[:3])
    weights = numbers(rng, 3)
    packed = call(SUM, [lambda i: weights[i] * len(rolled(i)), 3])
    assert packed == sum(w * len(h) for w, h in zip(weights, history[:3], strict=True))


@pytest.mark.parametrize("size", SIZES)
def test_scale_codes(size):
    """The first power of two whose six-fold covers the largest value."""
    least = Fraction(1, 8)
    for largest in numbers(random.Random(size), 9):
        codes = [c for c in range(size) if largest <= least * 2**c * 6]
        wanted = codes[0] if codes else size
        assert call(mx_block.CODE, [least, largest, size]) == wanted


def test_e2m1_agrees_with_a_search_over_its_values():
    for n in range(-70, 71):
        x = Fraction(n, 10)
        got = call(mx.E2M1, [x])
        assert got in mx.CODES
        assert abs(got - x) == min(abs(c - x) for c in mx.CODES)
    ties = {Fraction(1, 4): 0, Fraction(3, 4): 1, Fraction(5, 2): 2, Fraction(5): 4}
    assert {x: call(mx.E2M1, [x]) for x in ties} == ties


def near(found, expected):
    middle = interval.enclose(found)
    assert math.isclose(float(middle.low), expected, rel_tol=1e-12)
    assert math.isclose(float(middle.high), expected, rel_tol=1e-12)


def test_real_functions_agree_with_floats():
    four, twenty_five = Fraction(4), Fraction(25)
    near(call(situ.SOFT_CAP, [four, Fraction(2)]), 4 * math.tanh(0.5))
    capped = 4 * math.tanh(0.5) * 25 * math.tanh(0.24)
    situ_6 = capped / (1 + math.exp(-2))
    assert round(situ_6, 6) == 9.585417
    near(call(situ.SITU, [four, twenty_five, Fraction(2), Fraction(6)]), situ_6)
    near(call(kda.RETENTION, [Fraction(-5), Fraction(0), Fraction(0)]), math.exp(-2.5))
    reward = [Fraction(5), Fraction(7, 10), Fraction(2, 25)]
    near(call(rl.REWARD, reward), math.log(0.7 / 0.08))
    assert call(rl.REWARD, [Fraction(1), *reward[1:]]) == 1


def test_the_article_numbers():
    """KDA's toy step returns 3, its scalar updates 7.4, 5.25 and 2.25."""
    s = var("S", fun(INT, INT, REAL))
    for start, alpha, beta, v, wanted in [
        (0, "1", "1", 3, "3"),
        (6, "4/5", "1/2", 10, "37/5"),
        (1, "1/2", "1/2", 10, "21/4"),
        (5, "1/2", "1/2", 2, "9/4"),
    ]:
        env = {
            update.n: 1,
            update.i: 0,
            update.j: 0,
            s: lambda i, j, start=start: Fraction(start),
            update.alpha: lambda i, a=alpha: Fraction(a),
            update.k: lambda i: Fraction(1),
            update.v: lambda j, v=v: Fraction(v),
            update.beta: Fraction(beta),
        }
        for form in (update.matrix_form, update.coordinates):
            assert evaluate(form(update.i, update.j), env) == Fraction(wanted)
