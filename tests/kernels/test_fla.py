"""fla-core's KDA behind our signatures: its conventions, held by its naive forms."""

import ast
import importlib.util
from pathlib import Path

import pytest
import torch
from small import gap

from k3.kernels import choose, fla, kda

H, K, V = 3, 5, 7


def naive():
    """fla's own plain form, loaded by its file: the package itself needs Triton."""
    found = importlib.util.find_spec("fla")
    assert found is not None, "the extra test holds fla-core"
    path = Path(found.submodule_search_locations[0]) / "ops/kda/naive.py"
    spec = importlib.util.spec_from_file_location("fla_naive_for_kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.naive_recurrent_kda


class Theirs:
    """fla.ops.kda as its docstrings describe it, over its naive form."""

    def __init__(self):
        self.naive, self.calls = naive(), []

    def chunk_kda(self, *tokens, cu_seqlens, cu_seqlens_cpu, **options):
        assert torch.equal(cu_seqlens, cu_seqlens_cpu)
        self.calls.append(([x.dtype for x in tokens], cu_seqlens, options))
        given = options["initial_state"]
        assert len(given) == len(cu_seqlens) - 1
        outs, finals = [], []
        for i in range(len(given)):
            here = slice(int(cu_seqlens[i]), int(cu_seqlens[i + 1]))
            assert here.stop > here.start, "a sequence of no tokens is left undefined"
            options = options | {"initial_state": given[i : i + 1]}
            out, final = self.one([x[:, here] for x in tokens], **options)
            outs.append(out)
            finals.append(final)
        return torch.cat(outs, 1), torch.cat(finals)

    def fused_recurrent_kda(self, *tokens, **options):
        self.calls.append(([x.dtype for x in tokens], None, options))
        return self.one(tokens, **options)

    def one(self, tokens, *, initial_state, state_v_first, **options):
        assert initial_state.dtype == torch.float32
        given = initial_state.mT if state_v_first else initial_state
        out, final = self.naive(*tokens, initial_state=given, **options)
        return out, final.mT if state_v_first else final


@pytest.fixture
def theirs(monkeypatch):
    made = Theirs()
    monkeypatch.setattr(fla, "_operations", lambda: made)
    return made


def made(T, S):
    generator = torch.Generator().manual_seed(T)
    q, k, g = (torch.randn(T, H, K, generator=generator) for _ in range(3))
    v = torch.randn(T, H, V, generator=generator)
    beta = torch.rand(T, H, generator=generator)
    state = torch.randn(S, H, V, K, generator=generator)
    k = torch.nn.functional.normalize(k, dim=-1)
    return [q, k, v, -g.abs(), beta, state]


@pytest.mark.parametrize("lens", [(5,), (1, 4, 2), (0, 3, 0, 4)])
def test_chunk_is_ours_in_values_and_gradients(theirs, lens):
    results = []
    for form in (lambda *a, **o: fla.chunk(*a, narrow=False, **o), kda.chunk):
        leaves = [x.requires_grad_() for x in made(sum(lens), len(lens))]
        *tokens, state = leaves
        with choose.use("torch"):
            out, final = form(*tokens, state=state, lens=lens)
        loss = (out * out.detach().cos()).sum() + final.square().sum()
        results.append(
            [out, final, *torch.autograd.grad(loss, leaves, allow_unused=True)]
        )
    for got, want in zip(*results, strict=True):
        assert (got is None) == (want is None)
        assert got is None or gap(got, want) < 1e-5


def test_step_is_ours(theirs):
    *tokens, state = made(4, 4)
    with choose.use("torch"):
        wanted = kda.step(*tokens, state=state)
    for got, want in zip(fla.step(*tokens, state=state), wanted, strict=True):
        assert gap(got, want) < 1e-6


def test_what_is_asked_for_by_name(theirs):
    *tokens, state = made(6, 2)
    fla.chunk(*tokens, state=state, lens=(2, 4), narrow=True)
    out, _ = fla.chunk(*tokens, state=state, lens=(2, 4), narrow=False)
    assert out.dtype == torch.float32
    (narrow, starts, options), (wide, again, _) = theirs.calls
    assert narrow == [torch.bfloat16] * 3 + [torch.float32] * 2
    assert wide == [torch.float32] * 5
    assert starts.tolist() == [0, 2, 6]
    assert starts is again, "fla keeps what it makes of a tensor by its identity"
    assert options["scale"] == 1.0
    assert options["state_v_first"] is True
    assert options["output_final_state"] is True


def test_starts_made_for_inference_serve_training():
    with torch.inference_mode():
        found = fla.starts((3, 1), torch.device("cpu"))
    assert not found.is_inference()


def test_who_goes_there(theirs, monkeypatch):
    """The exact chunk stays, unless products may be rounded or fla was asked for."""
    monkeypatch.setattr(choose, "_on_cuda", lambda tensors, dtypes: True)
    monkeypatch.setattr(choose, "native", lambda *tensors, **options: False)
    *tokens, state = made(4, 1)

    def went(**options):
        before = len(theirs.calls)
        kda.chunk(*tokens, state=state, lens=(4,), **options)
        return len(theirs.calls) > before

    assert not went()
    assert went(narrow=True)
    torch.set_float32_matmul_precision("high")
    try:
        assert went()
    finally:
        torch.set_float32_matmul_precision("highest")
    monkeypatch.setattr(choose, "asked", lambda: "fla")
    assert went()
    monkeypatch.setattr(fla, "MAX_KEY", K - 1)
    assert not went()


def test_a_step_whose_gradient_is_wanted_stays(theirs, monkeypatch):
    monkeypatch.setattr(choose, "_on_cuda", lambda tensors, dtypes: True)
    monkeypatch.setattr(choose, "native", lambda *tensors, **options: False)
    *tokens, state = made(2, 2)
    kda.step(*tokens, state=state)
    assert len(theirs.calls) == 1
    kda.step(*tokens, state=state.requires_grad_())
    assert len(theirs.calls) == 1


def test_its_signature_has_what_is_passed():
    """The names in the installed fla-core, read without importing it."""
    root = Path(importlib.util.find_spec("fla").submodule_search_locations[0])
    wanted = {"scale", "initial_state", "output_final_state", "state_v_first"}
    files = {"chunk_kda": "chunk.py", "fused_recurrent_kda": "fused_recurrent.py"}
    for name, file in files.items():
        tree = ast.parse((root / "ops/kda" / file).read_text())
        node = next(
            n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name
        )
        names = [a.arg for a in node.args.args]
        assert names[:5] == ["q", "k", "v", "g", "beta"]
        assert wanted <= set(names)
        assert {"cu_seqlens", "cu_seqlens_cpu"} <= set(names) or name != "chunk_kda"


def test_no_token_is_not_shown_to_it(theirs):
    *tokens, state = made(0, 2)
    for out, final in (
        fla.chunk(*tokens, state=state, lens=(0, 0), narrow=False),
        fla.step(*made(0, 0)[:5], state=state[:0]),
    ):
        assert out.shape == (0, H, V)
        assert torch.equal(final, state[: len(final)])
    assert not theirs.calls
