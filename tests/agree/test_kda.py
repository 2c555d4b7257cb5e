import pytest
import torch
from readings import agree, tensor  # noqa: F401

from k3.kernels import conv, norm
from k3.kernels import kda as fast
from k3.spec import kda as spec

H, K, V = 2, 5, 3


def tokens(T, sequences, low=-5.0):
    q, k = (torch.nn.functional.normalize(torch.randn(T, H, K), dim=-1) for _ in "qk")
    g = torch.rand(T, H, K) * low
    state = torch.randn(sequences, H, V, K)
    return [q, k, torch.randn(T, H, V), g, torch.rand(T, H), state]


def by_kernel(form, lens):
    """A kernel as a function of its tensors alone."""
    return lambda q, k, v, g, beta, state: form(
        q, k, v, g, beta, state=state, lens=lens
    )


def by_spec(form, lens):
    """The spec's form for each sequence and head, in the kernel's layout."""

    def run(q, k, v, g, beta, state):
        outs, states, start = [], [], 0
        for s, n in enumerate(lens):
            at = slice(start, start + n)
            pairs = [
                form(
                    state[s, h].T,
                    q[at, h],
                    k[at, h],
                    v[at, h],
                    alpha=g[at, h].exp(),
                    beta=beta[at, h],
                )
                for h in range(H)
            ]
            outs.append(torch.stack([o for _, o in pairs], 1))
            states.append(torch.stack([S.T for S, _ in pairs]))
            start += n
        return torch.cat(outs), torch.stack(states)

    return run


@pytest.mark.parametrize("lens", [(1,), (15,), (16,), (17,), (37,), (3, 20, 1)])
@pytest.mark.parametrize("form", ["recurrent", "chunk"])
def test_both_forms_are_the_recurrence(form, lens):
    kernel = getattr(fast, form)
    inputs = tokens(sum(lens), len(lens))
    agree.same(by_kernel(kernel, lens), by_spec(spec.recurrent, lens), inputs, 1e-9)


def test_chunk_is_the_chunk_form():
    lens = (16, 5)
    agree.same(
        by_kernel(fast.chunk, lens),
        by_spec(spec.chunk, lens),
        tokens(21, 2, low=-1.0),
        1e-9,
    )


def test_chunk_beyond_its_decay_range():
    lens = (20,)
    inputs = tokens(20, 1, low=-30.0)
    agree.same(by_kernel(fast.chunk, lens), by_spec(spec.recurrent, lens), inputs, 1e-9)


def test_step():
    agree.same(
        lambda *x: fast.step(*x[:5], state=x[5]),
        by_spec(spec.recurrent, (1, 1, 1)),
        tokens(3, 3),
    )


@pytest.mark.parametrize("floor", [-5.0, -2.5, None])
def test_gate(floor):
    z, A, bias = torch.randn(7, H, K), torch.rand(H), torch.randn(H, K)

    def by_head(z, A, bias):
        rows = [spec.gate(z[:, h] + bias[h], A[h], floor) for h in range(H)]
        return torch.stack(rows, 1)

    agree.same(lambda *x: fast.gate(*x, floor), by_head, [z, A, bias])


@pytest.mark.parametrize("T", [1, 2, 4, 9])
def test_short_conv(T):
    x, w = torch.randn(1, T, 6), torch.randn(6, 1, 4)
    past = torch.randn(1, 3, 6)

    def whole(x, w, past):
        rows = torch.cat([past[0], x[0]])
        y = spec.short_conv_sequence(rows, w[:, 0])[3:]
        return (y * torch.sigmoid(y))[None], rows[-3:][None]

    agree.same(conv.short_conv, whole, [x, w, past])


def test_short_conv_of_packed_sequences():
    x, w, past = torch.randn(1, 6, 5), torch.randn(5, 1, 4), torch.zeros(2, 3, 5)
    y, _ = conv.short_conv(x, w, past, (2, 4))
    for piece, got in zip(x[0].split([2, 4]), y[0].split([2, 4]), strict=True):
        wanted = spec.short_conv_sequence(piece, w[:, 0])
        agree.close(got, wanted * torch.sigmoid(wanted))


def test_l2_norm():
    from k3.spec import norm as spec_norm

    x = torch.randn(3, 7)
    x[1] = 0
    agree.same(norm.l2_norm, spec_norm.l2_norm, [x])
