"""Mutants of the KDA layer: kernels.kda, kernels.conv, kernels.norm, model.kda."""

from mutants.patch import Edit, Mutant

KERNEL, LAYER = "k3.kernels.kda:", "k3.model.kda:KDA."
HERE = "self_attn"


def kernel(name, function, old, new, on="decoder"):
    at = HERE if on in ("decoder", "draft") else "out"
    return Mutant(name, Edit(KERNEL + function, old, new), at, on)


def layer(name, function, old, new):
    return Mutant(name, Edit(LAYER + function, old, new), HERE)


def conv(name, old, new, function="short_conv"):
    return Mutant(name, Edit(f"k3.kernels.conv:{function}", old, new), HERE)


MUTANTS = [
    Mutant(
        "L2 eps outside the root",
        Edit(
            "k3.kernels.norm:l2_norm",
            "torch.rsqrt(wide.square().sum(-1, keepdim=True) + eps)",
            "(1 / (wide.square().sum(-1, keepdim=True).sqrt() + eps))",
        ),
        HERE,
    ),
    layer("k not normalised", "_project", "norm.l2_norm(k)", "precision.wide(k)"),
    layer("query scale missing", "_project", " * self.K**-0.5", ""),
    layer("beta in (0, 2)", "_project", "beta=torch.sigmoid", "beta=2 * torch.sigmoid"),
    layer(
        "value heads interleaved",
        "_project",
        ".unflatten(-1, (self.heads, self.V))",
        ".unflatten(-1, (self.V, self.heads)).mT",
    ),
    layer(
        "dt_bias in (d h) order",
        "_project",
        "self.dt_bias.view(self.heads, self.K)",
        "self.dt_bias.view(self.K, self.heads).T",
    ),
    layer(
        "q and k convolutions swapped",
        "_project",
        "(self.q_conv1d, self.k_conv1d,",
        "(self.k_conv1d, self.q_conv1d,",
    ),
    conv("taps reversed", "weight[:, 0].T", "weight[:, 0].flip(-1).T"),
    conv(
        "window one token stale",
        "rows[:, rows.shape[1] - past :]",
        "rows[:, rows.shape[1] - past - 1 : -1]",
    ),
    conv(
        "window not carried",
        "torch.cat([window.to(x.dtype), x], 1)",
        "torch.cat([torch.zeros_like(window).to(x.dtype), x], 1)",
    ),
    conv("no Swish after the convolution", "F.silu(y)", "y", "_filter"),
    conv("first tap missing", "range(1, taps", "range(2, taps", "_filter"),
    kernel(
        "softplus gate for floor sigmoid",
        "gate",
        "lower_bound * torch.sigmoid(rate * x)",
        "-rate * F.softplus(x)",
    ),
    kernel("A_log not exponentiated", "gate", "A_log.exp()", "A_log"),
    kernel(
        "dt_bias after the rate",
        "gate",
        "torch.sigmoid(rate * x)",
        "torch.sigmoid(rate * (x - dt_bias) + dt_bias)",
    ),
    kernel("gate floor of -4", "gate", "return lower_bound *", "return -4.0 *"),
    kernel("decay after the correction", "step", "(decayed @ k", "(state @ k"),
    kernel("readout before the update", "step", "(state @ q", "(decayed @ q"),
    kernel("beta missing in the step", "step", " * beta.unsqueeze(-1)", ""),
    kernel(
        "inverse cut at first order",
        "chunk",
        "torch.linalg.solve_triangular(\n        keys.tril(-1) * bt, rhs, "
        "upper=False, unitriangular=True\n    )",
        "rhs - (keys.tril(-1) * bt) @ rhs",
    ),
    kernel("own value read twice", "chunk", "queries.tril(-1)", "queries.tril()"),
    kernel("own value not read", "chunk", "read + own +", "read +"),
    kernel("beta on the values alone", "chunk", "vt], -1) * bt", "vt * bt], -1)"),
    kernel("queries not decayed", "chunk", "kt * decay, qt * decay", "kt * decay, qt"),
    kernel("state not decayed over a tile", "_scan", "S * end[here]", "S"),
    kernel("state not carried over a tile", "_scan", "S * end[here] + ", ""),
    kernel(
        "tile end decays one token off",
        "_by_product",
        "g[:, 1:].flip(1)",
        "g[:, :-1].flip(1)",
    ),
    kernel(
        "keys not decayed to the tile end",
        "_by_product",
        "k[:, :-1] * after.exp()",
        "k[:, :-1]",
    ),
    kernel(
        "steep tile counts its own decay", "_by_sums", "triu(1)", "triu(0)", "steep"
    ),
    Mutant(
        "state handed over transposed",
        Edit(
            "k3.model.cache:KDACache.read",
            "advance(q, new, self.state, lens)",
            "advance(q, new, self.state.mT.contiguous(), lens)",
        ),
        HERE,
    ),
    Mutant(
        "state not handed over",
        Edit(
            "k3.model.cache:KDACache.read",
            "advance(q, new, self.state, lens)",
            "advance(q, new, torch.zeros_like(self.state), lens)",
        ),
        HERE,
    ),
    Mutant(
        "rewind keeps the memory",
        Edit(
            "k3.model.cache:KDACache.rewind",
            "self.state, self.window = inputs.put",
            "_, self.window = inputs.put",
        ),
        HERE,
        "draft",
    ),
    Mutant(
        "rewind keeps the window",
        Edit(
            "k3.model.cache:KDACache.rewind",
            "self.state, self.window = inputs.put",
            "self.state, _ = inputs.put",
        ),
        HERE,
        "draft",
    ),
    layer(
        "KDA output gate missing",
        "_output",
        "(self.o_norm(out) * opened)",
        "self.o_norm(out)",
    ),
    layer(
        "KDA gate before the norm",
        "_output",
        "(self.o_norm(out) * opened)",
        "self.o_norm(out * opened)",
    ),
    layer("KDA output norm missing", "_output", "self.o_norm(out) *", "out *"),
    layer(
        "output gate silu for sigmoid",
        "_output",
        "torch.sigmoid(precision.wide(gate))",
        "torch.nn.functional.silu(precision.wide(gate))",
    ),
]
