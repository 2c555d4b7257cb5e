"""Mutants of the MLA layer: kernels.mla, model.mla and its cache."""

from mutants.patch import Edit, Mutant

HERE = "self_attn"


def layer(name, function, old, new):
    return Mutant(name, Edit(f"k3.model.mla:MLA.{function}", old, new), HERE)


def kernel(name, function, old, new, on="decoder", at=HERE):
    return Mutant(name, Edit(f"k3.kernels.mla:{function}", old, new), at, on)


MUTANTS = [
    layer(
        "query latent norm missing",
        "forward",
        "self.q_a_layernorm(a)",
        "a",
    ),
    layer(
        "row latent norm missing",
        "_rows",
        "self.kv_a_layernorm(c[..., : self.latent])",
        "c[..., : self.latent]",
    ),
    layer(
        "norm over latent and shared key",
        "_rows",
        "latent = self",
        "c = torch.nn.functional.normalize(c, dim=-1)\n    latent = self",
    ),
    layer(
        "scale 1/sqrt(content)",
        "_expanded",
        "mla.attend_heads(q, kv, shared, self.scale)",
        "mla.attend_heads(q, kv, shared, self.nope**-0.5)",
    ),
    kernel(
        "values before keys in kv_b",
        "heads",
        "kv[..., :nope], shared], -1), kv[..., nope:]",
        "kv[..., -nope:], shared], -1), kv[..., :-nope]",
    ),
    layer(
        "query heads interleaved",
        "forward",
        "q.unflatten(-1, (self.heads, -1)).transpose(1, 2)",
        "q.unflatten(-1, (-1, self.heads)).permute(0, 3, 1, 2)",
    ),
    layer(
        "absorbed output takes key rows",
        "_absorbed",
        "out @ W[:, self.nope :].mT",
        "out @ W[:, : self.V].mT",
    ),
    layer(
        "MLA output gate missing",
        "forward",
        "(out * torch.sigmoid(precision.wide(gate)))",
        "out",
    ),
    kernel(
        "mask sees the next token",
        "attend",
        "is_causal=True",
        "attn_mask=torch.ones(T, S, dtype=torch.bool).tril(1)",
    ),
    kernel(
        "absorbed mask sees the next token",
        "_over_rows",
        "tril(S - T)",
        "tril(S - T + 1)",
    ),
    kernel(
        "absorbed mask hides the token itself",
        "_over_rows",
        "tril(S - T)",
        "tril(S - T - 1)",
    ),
    kernel(
        "parts of the context joined without weights",
        "merge",
        "left + right, lse",
        "(left + right) / 2, lse",
        "passes",
        "out",
    ),
    Mutant(
        "new rows overwrite the oldest",
        Edit(
            "k3.model.cache:MLACache.append",
            "self.rows[:, self.lens[0] : after[0]] = new",
            "self.rows[:, : after[0] - self.lens[0]] = new",
        ),
        HERE,
    ),
    Mutant(
        "rewind moves the rows",
        Edit(
            "k3.model.cache:MLACache.rewind",
            "zip(self.lens, n, strict=True))",
            "zip(self.lens, n, strict=True))\n    self.rows = self.rows.roll(1, 1)",
        ),
        HERE,
        "draft",
    ),
]
